"""Baselines of the rewards of a problem's samples."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from streamplace.learn.learner_base import RowMemory
from streamplace.model.arrays import Floats

Baseline = Callable[[Tensor, Tensor], Tensor]
"""Baseline [G, S] of every sample from the rewards [G, S] and a mask of existing ones."""

SPREAD = 1e-3
"""Added to the deviation of rewards, so that equal rewards give no advantage."""
NO_AVERAGE = 1e9
"""Average of a problem without samples: larger than any reward, and finite, as files need it."""
DECAY = 0.9
"""Share of a moving average that stays; the papers do not say how fast theirs moves."""


def mean(rewards: Tensor, valid: Tensor) -> Tensor:
    """Mean over all samples of a problem, as in equation 4 of the DREAM paper."""
    return (rewards * valid).sum(1, keepdim=True) / valid.sum(1, keepdim=True).clamp(min=1)


def nothing(rewards: Tensor, valid: Tensor) -> Tensor:
    """Baseline 0."""
    return torch.zeros_like(rewards[:, :1])


BASELINES: dict[str, Baseline] = {"mean": mean, "none": nothing}


class MovingAverage(RowMemory):
    """A moving average of the rewards of every problem; it begins with the mean of the first.

    Examples
    --------
    >>> baseline = MovingAverage(problems=1)
    >>> row, there = torch.tensor([0]), torch.tensor([[True]])
    >>> [round(baseline.of(row)(torch.tensor([[r]]), there).item(), 3) for r in (0.25, 0.75, 0.75)]
    [0.25, 0.25, 0.3]
    """

    def __init__(self, problems: int, device: torch.device | str = "cpu") -> None:
        self._values = torch.full((problems,), NO_AVERAGE, dtype=torch.float64, device=device)
        super().__init__({"average": self._values})

    def of(self, rows: Tensor) -> Baseline:
        """Baseline of these problems, which moves when it is asked."""
        return lambda rewards, valid: self._moved(rows, mean(rewards, valid)[:, 0])[:, None]

    def _moved(self, rows: Tensor, means: Tensor) -> Tensor:
        """Averages before, which then move towards these means."""
        before = self._values[rows]
        before = torch.where(before == NO_AVERAGE, means.double(), before)
        self._values[rows] = DECAY * before + (1 - DECAY) * means
        return before


class RunningMean(RowMemory):
    """The mean cost of every problem so far.

    Examples
    --------
    >>> mean = RunningMean(problems=1)
    >>> [mean.savings(0, np.array([cost])).tolist() for cost in (3.0, 5.0, 1.0)]
    [[0.0], [-2.0], [3.0]]
    """

    def __init__(self, problems: int) -> None:
        self._sums: Floats = np.zeros((problems, 2))
        super().__init__({"before": self._sums})

    def savings(self, row: int, costs: Floats) -> Floats:
        """Mean cost before these costs minus each of them; 0 for the first ones."""
        count, total = self._sums[row]
        self._sums[row] += len(costs), costs.sum()
        return (total / count - costs) if count else np.zeros_like(costs)


def leave_one_out(values: Floats) -> Floats:
    """Each of at least two values minus the mean of the others, in deviations.

    Values may be rows; the deviation is over all differences.

    >>> leave_one_out(np.array([1.0, 3.0])).round(2).tolist()
    [-1.0, 1.0]
    """
    differences = values - (values.sum(axis=0) - values) / (len(values) - 1)
    return np.asarray(differences / (differences.std() + SPREAD))


def advantages(rewards: Tensor, valid: Tensor, baseline: Baseline, *, normalised: bool) -> Tensor:
    """Weights (r - b) / S of the log-probabilities of the S valid samples of a problem; [G, S].

    If normalised, the differences are divided by their deviation.
    """
    count = valid.sum(1, keepdim=True)
    advantage = torch.where(valid, rewards - baseline(rewards, valid), 0.0)
    if normalised:
        deviation = (advantage.square().sum(1, keepdim=True) / count).sqrt()
        advantage = advantage / (deviation + SPREAD)
    return advantage / count


def favouring_gains(weights: Tensor, log_probability: Tensor, gain: float) -> Tensor:
    """Weights, the positive ones times the gain; 0 for losses whose probability underflows."""
    vanished = (weights < 0) & (log_probability.exp() == 0)
    return torch.where(weights > 0, gain * weights, weights.masked_fill(vanished, 0.0))
