"""Baselines: what the rewards of a problem's samples are compared with."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamplace.errors import FormatError
from streamplace.learn.learner import ALL, Rows

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Baseline = Callable[[Floats, Flags], Floats]
"""Baseline [G, S] of every sample from the rewards [G, S] and which of them are there."""

SPREAD = 1e-3
"""Added to the deviation of rewards, so that equal rewards give no advantage."""
UNSEEN = 1e9
"""Average of a problem without samples: no reward is so large, and it is finite for files."""


def mean(rewards: Floats, valid: Flags) -> Floats:
    """Mean over all samples of a problem, as in equation 4 of the DREAM paper."""
    count = np.maximum(valid.sum(axis=1, keepdims=True), 1)
    return np.asarray(np.sum(rewards, axis=1, where=valid, keepdims=True) / count)


def others(rewards: Floats, valid: Flags) -> Floats:
    """Mean over the other samples of a problem, which leaves the gradient unbiased."""
    count = valid.sum(axis=1, keepdims=True)
    whole = np.sum(rewards, axis=1, where=valid, keepdims=True)
    return np.asarray(np.where(count > 1, (whole - rewards) / np.maximum(count - 1, 1), 0.0))


def nothing(rewards: Floats, valid: Flags) -> Floats:
    """Compare with nothing."""
    return np.zeros((len(rewards), 1))


BASELINES: dict[str, Baseline] = {"mean": mean, "others": others, "none": nothing}


class MovingAverage:
    """A moving average of the rewards of every problem, beginning with its first samples' mean.

    The papers do not say how fast theirs moves.

    Examples
    --------
    >>> baseline, there = MovingAverage(problems=1, decay=0.5), np.array([[True]])
    >>> [baseline.of(np.array([0]))(np.array([[r]]), there).item() for r in (0.25, 0.75, 0.75)]
    [0.25, 0.25, 0.5]
    """

    def __init__(self, problems: int, decay: float = 0.9) -> None:
        self._values: Floats = np.full(problems, UNSEEN)
        self._decay = decay

    def of(self, rows: NDArray[np.int64]) -> Baseline:
        """Baseline of these problems, which moves when it is asked."""
        return lambda rewards, valid: self._moved(rows, mean(rewards, valid)[:, 0])[:, None]

    def state(self, rows: Rows = ALL) -> dict[str, NDArray[Any]]:
        """Arrays to save, of some problems."""
        return {"average": self._values[rows].copy()}

    def restore(self, state: Mapping[str, NDArray[Any]], rows: Rows = ALL) -> None:
        """Take back what `state` returned."""
        if state["average"].shape != self._values[rows].shape:
            raise FormatError("the checkpoint: its averages are of other problems; train anew")
        self._values[rows] = state["average"]

    def _moved(self, rows: NDArray[np.int64], found: Floats) -> Floats:
        """Averages before, which then move towards what was found."""
        before = np.where(self._values[rows] == UNSEEN, found, self._values[rows])
        self._values[rows] = self._decay * before + (1 - self._decay) * found
        return before


def advantages(rewards: Floats, valid: Flags, baseline: Baseline, *, normalised: bool) -> Floats:
    """Weights (r - b) / S of the log-probabilities of the S valid samples of a problem; [G, S].

    Parameters
    ----------
    normalised
        Whether the differences are divided by their deviation.

    Examples
    --------
    >>> rewards, valid = np.array([[0.2, 0.4, 0.9]]), np.array([[True, True, False]])
    >>> advantages(rewards, valid, mean, normalised=False).round(3)
    array([[-0.05,  0.05,  0.  ]])
    """
    count = valid.sum(axis=1, keepdims=True)
    advantage = np.where(valid, rewards - baseline(rewards, valid), 0.0)
    if normalised:
        deviation = np.sqrt((advantage**2).sum(axis=1, keepdims=True) / count)
        advantage = advantage / (deviation + SPREAD)
    return np.asarray(advantage / count)
