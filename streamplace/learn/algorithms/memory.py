"""Memories of training problems, such as a few good placements of each."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from streamplace.errors import FormatError
from streamplace.learn.learner import ALL, Selection
from streamplace.model.arrays import Floats, Longs


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
