"""Memories of training problems, such as a few good placements of each."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from streamplace.errors import FormatError
from streamplace.learn.learner import ALL, Selection
from streamplace.model.arrays import Floats, Longs

Devices = NDArray[np.int8]

EMPTY = -1.0


class ProblemMemory(Protocol):
    """Facts about training problems that last from epoch to epoch."""

    def state(self, rows: Selection = ALL) -> dict[str, NDArray[Any]]:
        """Arrays to save, of some problems."""

    def restore(self, state: Mapping[str, NDArray[Any]], rows: Selection = ALL) -> None:
        """Restore arrays that `state` returned."""


class RowMemory:
    """Arrays by name with a row for every training problem."""

    def __init__(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.arrays = arrays

    def state(self, rows: Selection = ALL) -> dict[str, NDArray[Any]]:
        """Arrays to save, of some problems."""
        return {name: array[rows].copy() for name, array in self.arrays.items()}

    def restore(self, state: Mapping[str, NDArray[Any]], rows: Selection = ALL) -> None:
        """Restore arrays that `state` returned."""
        for name, array in self.arrays.items():
            if state[name].shape != array[rows].shape:
                raise FormatError(f"the checkpoint: {name} belongs to other problems; train again")
        for name, array in self.arrays.items():
            array[rows] = state[name]


def check_places(places: NDArray[Any], devices: Longs) -> None:
    """Raise FormatError unless placements [P, …] are on devices of their problems [P].

    They come from a checkpoint, and what continues from them does not check them again.
    """
    most = devices.reshape(-1, *(1,) * (places.ndim - 1))
    if len(places) != len(most) or (places < 0).any() or (places >= most).any():
        raise FormatError("the checkpoint: its memory belongs to other problems; train again")


class BestRewards(RowMemory):
    """The best reward met of every problem."""

    def __init__(self, problems: int) -> None:
        self.rewards: Floats = np.zeros(problems)
        super().__init__({"best": self.rewards})

    def meet(self, row: int, reward: float) -> float:
        """Return the best reward of a problem, this one included."""
        self.rewards[row] = max(self.rewards[row], reward)
        return float(self.rewards[row])


class PlacementMemory(RowMemory):
    """The best placements seen of every problem, each once.

    Placements are canonical rows in operator order. Shapes: P problems, C places for each, N
    operators of the largest.
    """

    def __init__(self, problems: int, places: int, operators: int) -> None:
        self.placements: Devices = np.zeros((problems, places, operators), np.int8)
        self.rewards: Floats = np.full((problems, places), EMPTY)
        super().__init__({"memory.placements": self.placements, "memory.rewards": self.rewards})

    def add(self, row: int, placements: NDArray[Any], rewards: Floats) -> None:
        """Keep the best of the remembered placements of a problem and of new ones [S, n]."""
        n, places = placements.shape[1], self.rewards.shape[1]
        least = self.rewards[row, -1]
        better = rewards > least
        if not better.any():
            return
        candidates = np.concatenate(
            [self.placements[row, :, :n], placements[better].astype(np.int8)]
        )
        values = np.concatenate([self.rewards[row], rewards[better]])
        best = _best_distinct(candidates, values, places)
        self.rewards[row] = EMPTY
        self.rewards[row, : len(best)] = values[best]
        self.placements[row, : len(best), :n] = candidates[best]

    def replay(
        self, row: int, most: int, threshold: float, operators: int
    ) -> tuple[Devices, Floats]:
        """Best placements [≤ most, n] of a problem with a reward of the threshold or more.

        If none has it, the single best; none if nothing is remembered.
        """
        rewards = self.rewards[row, :most]
        good = int((rewards >= max(threshold, 0.0)).sum())
        count = max(good, int((rewards[:1] > EMPTY).sum()))
        return self.placements[row, :count, :operators], rewards[:count]

    def best(self, row: int) -> float:
        """Best reward known of a problem, 0 if none is."""
        return max(float(self.rewards[row, 0]), 0.0)


def _best_distinct(placements: Devices, rewards: Floats, most: int) -> Longs:
    """Rows of the best different placements, best first, of equals the first."""
    keys: set[bytes] = set()
    best: list[int] = []
    for i in np.argsort(-rewards, kind="stable").tolist():
        if rewards[i] == EMPTY or len(best) == most:
            break
        key = placements[i].tobytes()
        if key not in keys:
            keys.add(key)
            best.append(i)
    return np.array(best, np.int64)
