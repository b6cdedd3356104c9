"""Memory of good placements, a few per training problem (after Liang et al. 2018)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamplace.learn.learner import ALL, Rows

Rewards = NDArray[np.float64]
Devices = NDArray[np.int8]

EMPTY = -1.0


class PlacementMemory:
    """The best placements seen of every problem, each once.

    Placements are canonical rows in operator order. Shapes: P problems, C places for each, N
    operators of the largest.

    Examples
    --------
    >>> memory = PlacementMemory(problems=1, places=2, operators=3)
    >>> memory.add(0, np.array([[0, 0], [0, 1], [0, 1]]), np.array([0.5, 0.9, 0.9]))
    >>> memory.rewards.tolist()
    [[0.9, 0.5]]
    >>> memory.replay(0, most=2, threshold=0.8, operators=2)[0].tolist()
    [[0, 1]]
    """

    def __init__(self, problems: int, places: int, operators: int) -> None:
        self.placements: Devices = np.zeros((problems, places, operators), np.int8)
        self.rewards: Rewards = np.full((problems, places), EMPTY)

    def add(self, row: int, placements: NDArray[Any], rewards: Rewards) -> None:
        """Keep the best of what is remembered of a problem and of placements [S, n]."""
        n, places = placements.shape[1], self.rewards.shape[1]
        least = self.rewards[row, -1]
        better = rewards > least
        if not better.any():
            return
        known = np.concatenate([self.placements[row, :, :n], placements[better].astype(np.int8)])
        worth = np.concatenate([self.rewards[row], rewards[better]])
        best = _best_distinct(known, worth, places)
        self.rewards[row] = EMPTY
        self.rewards[row, : len(best)] = worth[best]
        self.placements[row, : len(best), :n] = known[best]

    def replay(
        self, row: int, most: int, threshold: float, operators: int
    ) -> tuple[Devices, Rewards]:
        """Best placements [≤ most, n] of a problem with a reward of the threshold or more.

        Where none has it, the single best; where nothing is remembered, none.
        """
        rewards = self.rewards[row, :most]
        good = int((rewards >= max(threshold, 0.0)).sum())
        count = max(good, int((rewards[:1] > EMPTY).sum()))
        return self.placements[row, :count, :operators], rewards[:count]

    def best(self, row: int) -> float:
        """Best reward known of a problem, 0 where nothing is."""
        return max(float(self.rewards[row, 0]), 0.0)

    def state(self, rows: Rows = ALL) -> dict[str, NDArray[Any]]:
        """Arrays to save, of some problems."""
        return {"memory.placements": self.placements[rows], "memory.rewards": self.rewards[rows]}

    def restore(self, state: Mapping[str, NDArray[Any]], rows: Rows = ALL) -> None:
        """Take back what `state` returned."""
        self.placements[rows] = state["memory.placements"]
        self.rewards[rows] = state["memory.rewards"]


def _best_distinct(placements: Devices, rewards: Rewards, most: int) -> NDArray[np.int64]:
    """Rows of the best different placements, best first, of equals the first."""
    seen: set[bytes] = set()
    found: list[int] = []
    for i in np.argsort(-rewards, kind="stable").tolist():
        if rewards[i] == EMPTY or len(found) == most:
            break
        key = placements[i].tobytes()
        if key not in seen:
            seen.add(key)
            found.append(i)
    return np.array(found, np.int64)
