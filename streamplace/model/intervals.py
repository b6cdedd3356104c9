"""Intervals of predicted rates: conformal quantiles of what earlier predictions were off by.

Runs of one job have errors in common, so it is jobs and not runs that are exchangeable. A run has
the error log(measured / predicted). The score of a job is the error that as large a share of its
runs does not exceed as the confidence says; of n jobs, the score of rank ⌈(n + 1) · confidence⌉ is
one that a new job does not exceed with at least this confidence, whatever the distribution (split
conformal prediction). If n is too small for that, the widest score is taken, and n / (n + 1) is the
confidence that the jobs support.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, exp
from typing import Any, NamedTuple

import numpy as np

from streamplace.errors import SettingError
from streamplace.model.messages import counted

USUAL_CONFIDENCE = 0.9
ROUNDING = 1e-9
Scores = Mapping[str, Sequence[float]]
"""Job → log(measured / predicted) of each of its runs, of which it has one at least."""


class RateInterval(NamedTuple):
    """Tuples/s that a layout carries: what is predicted, and between what it is likely to be."""

    low: float
    value: float
    high: float

    def overlaps(self, other: "RateInterval") -> bool:
        """Whether the two may be the same."""
        return self.low <= other.high and other.low <= self.high

    def up_to(self, rate: float) -> "RateInterval":
        """Return the interval of what is read where no more than a rate is offered."""
        return RateInterval(*(min(one, rate) for one in self))

    def scaled(self, factor: float) -> "RateInterval":
        """Return the interval in another unit."""
        return RateInterval(*(factor * one for one in self))

    def __str__(self) -> str:
        return f"{self.value:.4g} tuples/s ({self.low:.4g} to {self.high:.4g})"


class Quantile(NamedTuple):
    """A conformal quantile, and the confidence that the jobs support."""

    value: float
    supported: float


def conformal_quantile(scores: Scores, confidence: float) -> Quantile:
    """Return the score that a new job does not exceed with so much confidence.

    Examples
    --------
    >>> nine = {str(i): [float(i)] for i in range(9)}
    >>> conformal_quantile(nine, 0.9), conformal_quantile(nine, 0.5)
    (Quantile(value=8.0, supported=0.9), Quantile(value=4.0, supported=0.5))
    >>> conformal_quantile({"a": [1.0, 2.0], "b": [3.0]}, 0.9).value
    3.0
    """
    jobs = sorted(_ranked(own, ceil(confidence * len(own) - ROUNDING)) for own in scores.values())
    if not jobs:
        raise SettingError("there are no recorded runs, so nothing is known of errors")
    rank = ceil((len(jobs) + 1) * confidence - ROUNDING)
    if rank <= len(jobs):
        return Quantile(jobs[rank - 1], confidence)
    return Quantile(jobs[-1], len(jobs) / (len(jobs) + 1))


def _ranked(values: Sequence[float], rank: int) -> float:
    return float(np.sort(np.asarray(values, np.float64))[rank - 1])


def least_jobs(confidence: float) -> int:
    """Return how many jobs support a confidence at least.

    >>> least_jobs(0.9), least_jobs(0.5)
    (9, 1)
    """
    return max(1, ceil(1 / (1 - confidence) - ROUNDING) - 1)


def check_confidence(confidence: float) -> None:
    """Raise SettingError for a confidence that is none."""
    if not 0 < confidence < 1:
        raise SettingError(f"the confidence is {confidence:g}; it must be above 0 and below 1")


@dataclass(frozen=True, slots=True)
class PredictionErrors:
    """What measured rates were of predicted ones, by a confidence.

    Attributes
    ----------
    asked, supported
        The confidence that was asked for, and that of the factors, which is lower where there are
        too few jobs.
    low, high
        Measured over predicted is between these.
    least
        Measured over predicted is at least this, which is less to ask than both ends at once.
    number
        Number of jobs, or of runs where the errors are those of one job.
    origin
        What was recorded, in words, such as "8 recorded jobs".

    Examples
    --------
    >>> errors = PredictionErrors.of({str(i): [0.01 * i] for i in range(-4, 5)}, 0.9, "9 jobs")
    >>> str(errors.interval(100.0)), round(errors.at_least(100.0), 2)
    ('100 tuples/s (96.08 to 104.1)', 96.08)
    """

    asked: float
    supported: float
    low: float
    high: float
    least: float
    number: int
    origin: str

    @classmethod
    def of(cls, scores: Scores, confidence: float, origin: str) -> "PredictionErrors":
        """Return the quantiles of scores by a confidence."""
        check_confidence(confidence)
        both = {job: np.abs(np.asarray(own, np.float64)).tolist() for job, own in scores.items()}
        short = {job: [-score for score in own] for job, own in scores.items()}
        width, below = (conformal_quantile(one, confidence) for one in (both, short))
        return cls(
            confidence,
            width.supported,
            exp(-width.value),
            exp(width.value),
            min(1.0, exp(-below.value)),
            len(scores),
            origin,
        )

    @property
    def is_supported(self) -> bool:
        """Whether enough was recorded for the confidence that was asked for."""
        return self.supported >= self.asked

    def interval(self, predicted: float) -> RateInterval:
        """Rates between which a predicted one is likely to be."""
        return RateInterval(self.low * predicted, predicted, self.high * predicted)

    def at_least(self, predicted: float) -> float:
        """Rate that is likely to be reached where one is predicted."""
        return self.least * predicted

    @property
    def words(self) -> str:
        """Confidence of the factors and what it rests on.

        >>> PredictionErrors.of({"a": [0.1], "b": [0.2]}, 0.9, "2 recorded jobs").words
        'a confidence of 67 % (2 recorded jobs support no more; 90 % needs 9)'
        """
        text = f"a confidence of {100 * self.supported:.0f} %"
        if self.is_supported:
            return f"{text} ({self.origin})"
        needed, asked = least_jobs(self.asked), f"{100 * self.asked:.3g} %"
        return f"{text} ({self.origin} support no more; {asked} needs {needed})"

    def to_json(self) -> dict[str, Any]:
        """Return the factors as a JSON document."""
        return {
            "confidence": self.supported,
            "asked": self.asked,
            "low": self.low,
            "high": self.high,
            "least": self.least,
            "from": self.origin,
        }


def count_in_words(own: int, recorded: int) -> str:
    """Return how many jobs errors come from.

    >>> count_in_words(0, 8), count_in_words(2, 8), count_in_words(9, 0)
    ('8 recorded jobs', '8 recorded jobs and 2 jobs of the ledger', '9 jobs of the ledger')
    """
    parts = [counted(recorded, "recorded job")] if recorded else []
    parts += [f"{counted(own, 'job')} of the ledger"] if own else []
    return " and ".join(parts)
