"""The best placement of every training problem so far, and its reward."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamplace.errors import FormatError
from streamplace.learn.learner import ALL, Selection
from streamplace.model.arrays import Floats, Ints, Longs

LEAST = 1e-9
"""By which a reward has to be better."""


class BestPlacements:
    """Devices of all units of every problem, None as long as there is no placement.

    Parameters
    ----------
    sizes
        [P, 2] units and devices of every problem.
    """

    def __init__(
        self, placements: Sequence[Ints | None], rewards: Sequence[float], sizes: Longs
    ) -> None:
        self.placements, self._sizes = list(placements), sizes
        self.rewards: Floats = np.array(rewards, np.float64)

    def meet(self, row: int, placement: Ints, reward: float) -> None:
        """Remember a placement that is better than the best so far."""
        if reward > self.rewards[row] + LEAST:
            self.rewards[row], self.placements[row] = reward, placement

    def state(self, rows: Selection = ALL) -> dict[str, NDArray[Any]]:
        """Rewards, and the placements one after the other."""
        chosen = [self.placements[i] for i in np.arange(len(self.placements))[rows].tolist()]
        parts = [np.empty(0, np.int32) if part is None else part for part in chosen]
        ends = np.cumsum([len(part) for part in parts])
        return {"best": self.rewards[rows].copy(), "known": np.concatenate(parts), "ends": ends}

    def restore(self, state: Mapping[str, NDArray[Any]], rows: Selection = ALL) -> None:
        """Take back what `state` returned."""
        places, ends, best = state["known"], state["ends"], state["best"]
        numbers, (units, devices) = np.arange(len(self.placements))[rows], self._sizes[rows].T
        sizes = np.diff(ends, prepend=0)
        fits = (
            best.shape == ends.shape == units.shape
            and bool(((sizes == 0) | (sizes == units)).all())
            and ends[-1] == len(places)
            and bool(((places >= 0) & (places < np.repeat(devices, sizes))).all())
        )
        if not fits:
            raise FormatError(
                "the checkpoint: its placements belong to other problems; train again"
            )
        self.rewards[rows] = best
        for i, part in zip(numbers.tolist(), np.split(places, ends[:-1]), strict=True):
            self.placements[i] = part.copy() if len(part) else None
