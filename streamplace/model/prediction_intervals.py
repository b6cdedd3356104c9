"""Intervals of predicted rates: conformal quantiles of earlier prediction errors.

Runs of one job have errors in common, so jobs rather than runs are exchangeable. The score of a run
is its error log(measured / predicted). Each of n jobs weighs 1 / (n + 1), and each of its runs an
equal part of that. The bound is the smallest score at which the runs up to it weigh as much as the
confidence: a run of a new job exceeds it with at most the remaining probability, whatever the
distribution (hierarchical conformal prediction; Lee, Barber and Willett, 2023). If n is too small
for that, the largest score is the bound, and the jobs support a confidence of n / (n + 1).

Scores are divided by the expected error of their profile, `expected_error`, which grows with its
spread: normalised conformal scores. Any divisor keeps the coverage if it is the same function of
the profile for recorded jobs and for the new one. A recorded job without a spread counts as steady,
which can only make intervals wider.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, exp, hypot, log
from typing import Any, NamedTuple

from streamplace.errors import SettingError
from streamplace.model.arrays import ROUNDING
from streamplace.model.units import digits

USUAL_CONFIDENCE = 0.9
STEADY_SPREAD = 0.03
"""Spread of the profile of a steady job: runs of one placement differ by it."""
PROFILED_ERROR = 0.1
"""Size of errors of predictions that do not come from the spread of a profile."""
Scores = Mapping[str, Sequence[float]]
"""Job → log(measured / predicted) of each run; every job has at least one."""


class RateInterval(NamedTuple):
    """Tuples/s that a layout carries: the prediction, and the ends of its interval."""

    low: float
    value: float
    high: float

    def up_to(self, rate: float) -> "RateInterval":
        """Clip the interval at the rate that is offered."""
        return RateInterval(*(min(end, rate) for end in self))

    def holds(self, rate: float, *, is_limited: bool) -> bool | None:
        """Whether a measured rate is in the interval; None if that is unknown.

        A job that is not held back may carry more than it is offered.

        >>> carries = RateInterval(90.0, 100.0, 110.0)
        >>> [carries.holds(rate, is_limited=True) for rate in (80, 95, 120)]
        [False, True, False]
        >>> [carries.holds(rate, is_limited=False) for rate in (80, 95, 120)]
        [None, True, False]
        """
        if is_limited or rate > self.high:
            return self.low <= rate <= self.high
        return True if rate >= self.low else None

    @property
    def ends(self) -> str:
        """Both ends, in words."""
        return f"{digits(self.low)} to {digits(self.high)}"

    def __str__(self) -> str:
        return f"{digits(self.value)} tuples/s ({self.ends})"


def expected_error(spread: float) -> float:
    """Return the expected size of errors of a profile, relative to that for a steady job.

    It is sqrt(e² + max(s, s₀)²) / sqrt(e² + s₀²) for the spread s of the CPU per tuple over the
    windows of the profile, s₀ = `STEADY_SPREAD` and e = `PROFILED_ERROR`: independent errors add up
    by their squares.

    >>> expected_error(0.03), round(expected_error(0.1), 2), round(expected_error(0.2), 2)
    (1.0, 1.35, 2.14)
    """
    steady = hypot(PROFILED_ERROR, STEADY_SPREAD)
    return hypot(PROFILED_ERROR, max(spread, STEADY_SPREAD)) / steady


class Quantile(NamedTuple):
    """A conformal quantile, and the confidence that the jobs support."""

    value: float
    supported: float


def conformal_quantile(scores: Scores, confidence: float) -> Quantile:
    """Return the score that a run of a new job does not exceed with this confidence.

    Examples
    --------
    >>> nine = {str(i): [float(i)] for i in range(9)}
    >>> conformal_quantile(nine, 0.9), conformal_quantile(nine, 0.5)
    (Quantile(value=8.0, supported=0.9), Quantile(value=4.0, supported=0.5))
    >>> conformal_quantile({"a": [1.0, 2.0], "b": [3.0]}, 0.3).value
    2.0
    """
    if not scores:
        raise SettingError("there are no recorded runs, so nothing is known of errors")
    number, below = len(scores), dict.fromkeys(scores, 0)
    runs = sorted((score, job) for job, of_job in scores.items() for score in of_job)
    weight = 0.0
    for score, job in runs:
        weight -= below[job] / len(scores[job])
        below[job] += 1
        weight += below[job] / len(scores[job])
        if weight >= (number + 1) * confidence - ROUNDING:
            return Quantile(score, confidence)
    return Quantile(runs[-1][0], number / (number + 1))


def least_jobs(confidence: float) -> int:
    """Return the least number of jobs that supports a confidence.

    >>> least_jobs(0.9), least_jobs(0.5)
    (9, 1)
    """
    return max(1, ceil(1 / (1 - confidence) - ROUNDING) - 1)


@dataclass(frozen=True, slots=True)
class PredictionErrors:
    """Quantiles of measured / predicted rates at a confidence.

    Examples
    --------
    >>> errors = PredictionErrors.of({str(i): [0.01 * i] for i in range(-4, 5)}, 0.9, "9 jobs")
    >>> str(errors.interval(100.0)), round(errors.at_least(100.0), 2)
    ('100 tuples/s (96.08 to 104.1)', 96.08)
    """

    confidence: float  # as requested
    supported: float  # confidence of the factors, which is lower where there are too few jobs
    low: float  # ends of the two-sided interval of measured / predicted
    high: float
    least: float  # one-sided lower bound of it, which is closer to 1 than ``low``
    origin: str  # their origin in words, such as "errors of 80 runs of 8 jobs"
    # Factor by which ``least`` is lower than for a steady job, because of the profile's spread.
    of_spread: float = 1.0

    @classmethod
    def of(cls, scores: Scores, confidence: float, origin: str) -> "PredictionErrors":
        """Compute the quantiles of scores at a confidence."""
        if not 0 < confidence < 1:
            raise SettingError(f"the confidence is {confidence:g}; it must be above 0 and below 1")
        distances = {job: [abs(score) for score in of_job] for job, of_job in scores.items()}
        shortfalls = {job: [-score for score in of_job] for job, of_job in scores.items()}
        width = conformal_quantile(distances, confidence)
        below = conformal_quantile(shortfalls, confidence)
        return cls(
            confidence,
            width.supported,
            exp(-width.value),
            exp(width.value),
            min(1.0, exp(-below.value)),
            origin,
        )

    def interval(self, predicted: float) -> RateInterval:
        """Interval of the measured rate for a predicted one."""
        return RateInterval(self.low * predicted, predicted, self.high * predicted)

    def at_least(self, predicted: float) -> float:
        """Lower bound of the measured rate for a predicted one."""
        return self.least * predicted

    def widened(self, drift: float) -> "PredictionErrors":
        """Allow for a job that was not warm: its rates may still change by this share.

        >>> errors = PredictionErrors.of({str(i): [0.1] for i in range(9)}, 0.9, "9 jobs")
        >>> str(errors.widened(1.0).interval(100.0))
        '100 tuples/s (45.24 to 221)'
        """
        return replace(
            self,
            low=self.low / (1 + drift),
            high=self.high * (1 + drift),
            least=self.least / (1 + drift),
        )

    def for_spread(self, spread: float) -> "PredictionErrors":
        """Errors for a profile with this spread, from those for a steady job.

        >>> errors = PredictionErrors.of({str(i): [-0.1] for i in range(9)}, 0.9, "9 jobs")
        >>> errors.for_spread(0.02) == errors, round(errors.for_spread(0.2).at_least(100.0), 2)
        (True, 80.72)
        """
        factor = expected_error(spread)
        if factor == 1:
            return self
        ends = (self.low, self.high, self.least)
        low, high, least = (exp(factor * log(end)) for end in ends)
        return replace(self, low=low, high=high, least=least, of_spread=self.least / least)

    @property
    def words(self) -> str:
        """Confidence of the factors, and its origin.

        >>> PredictionErrors.of({"a": [0.1], "b": [0.2]}, 0.9, "errors of 2 runs of 2 jobs").words
        'a confidence of 67 % (errors of 2 runs of 2 jobs support no more; 90 % needs 9 jobs)'
        """
        text = f"a confidence of {100 * self.supported:.0f} %"
        if self.supported >= self.confidence:
            return f"{text} ({self.origin})"
        number, requested = least_jobs(self.confidence), f"{100 * self.confidence:.3g} %"
        return f"{text} ({self.origin} support no more; {requested} needs {number} jobs)"

    def to_json(self) -> dict[str, Any]:
        """Return the factors as a JSON document."""
        return {
            "confidence": self.supported,
            "asked": self.confidence,
            "low": self.low,
            "high": self.high,
            "least": self.least,
            "from": self.origin,
        }
