"""Test of whether a job is warm, from its CPU in measured windows.

CPU is counted by thread, so compilers distort the cost of a tuple only while their results still
change it. A job is warm when

- compilers used less than `QUIET` of the CPU in the last window, and the CPU of no operator that
  matters changed over the last `LEAST_WINDOWS`, per tuple or per second; or
- compilers used less than `BUSY`, and over at least `LEAST_BUSY_WINDOWS` the CPU per tuple of no
  operator that matters changed, and its fitted slope, plus a standard error, amounts to no more
  than `MOST_CHANGE` in a minute. CPU per second is no evidence here: if TaskManagers are full, it
  is steady whatever the cost of a tuple.

Where Java's Flight Recorder was started for the windows, Java has discarded its compiled code. Then
a tuple of the whole job must not cost more than `MOST_ANEW` more than before.

A change is a step or a slope over the windows, fitted by least squares, that is both large
(`MOST_CHANGE`) and clear (`CLEAR` standard errors). Windows are weighted by their tuples; those
with few tuples are ignored.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from streamplace.engines.flink.measure.job_windows import LoadWindow
from streamplace.engines.flink.rest.plan import FlinkTask
from streamplace.model.arrays import Floats
from streamplace.model.messages import quoted

QUIET = 0.05
"""Maximum part of the CPU of TaskManagers that compilers use when they have little to do."""
BUSY = 0.15
"""Maximum part that compilers use in a warm job."""
MOST_CHANGE = 0.05
"""Maximum relative change of the CPU per tuple of an operator over the windows."""
MOST_ANEW = 0.1
"""Maximum relative excess of the CPU per tuple of a job over that before its code was discarded."""
CLEAR = 3.0
"""Standard errors from which on a change is not random."""
LEAST_WINDOWS = 5
"""Number of last windows in which a job must be steady."""
LEAST_BUSY_WINDOWS = 6
"""Number of last windows in which a job must be steady while compilers are busy."""
NEXT_SECONDS = 60.0
"""Time for which a change is extrapolated while compilers are busy."""
LITTLE = 0.1
"""Minimum tuples of a window, relative to the fullest one, for its CPU per tuple to count."""
LEAST_FOR_DRIFT = 4
"""Minimum number of windows with enough tuples, and with CPU, from which a drift is estimated."""
MATTERS = 0.05
"""Minimum part of the job's CPU of an operator that matters."""


class Verdict(NamedTuple):
    """Result of the test: whether a job is warm."""

    windows: int  # number of last windows in which it was warm; 0 if it is not
    reason: str = ""  # reason why it is not, or an objection, in words

    @property
    def is_warm(self) -> bool:
        """Whether the job is warm."""
        return self.windows > 0


class Drift(NamedTuple):
    """Expected further change of the CPU of a job that is not warm."""

    level: float  # relative change of the CPU per tuple of the whole job
    # CPU that may move from some operators to others, relative to that of the whole job. It
    # distorts a comparison of two layouts; a common change of all operators does not.
    mix: float


WARM = Drift(0.0, 0.0)
"""Drift of a warm job: none."""


class Series(NamedTuple):
    """CPU of an operator in windows."""

    values: Floats  # core seconds per tuple, or per second
    weights: Floats  # weight of each window: 1 in the mean
    seconds: Floats  # middle of each window in time

    @property
    def number(self) -> float:
        """Number of windows with equal weights that would be as informative."""
        return float(self.weights.sum() ** 2 / (self.weights**2).sum()) if len(self.weights) else 0


def judged(
    tasks: Sequence[FlinkTask], windows: Sequence[LoadWindow], before: LoadWindow | None = None
) -> Verdict:
    """Whether a job that was measured in windows is warm.

    ``before``: a window before Java discarded the job's code, if it did.
    """
    verdict = _judged_alone(tasks, windows)
    if before is None or not verdict.is_warm:
        return verdict
    more = excess_over(before, windows[-verdict.windows :])
    if more <= MOST_ANEW:
        return verdict
    return Verdict(
        0,
        f"a tuple takes {more:.0%} more CPU than before stacks were sampled, because Java compiles "
        "all code anew",
    )


def excess_over(before: LoadWindow, windows: Sequence[LoadWindow]) -> float:
    """How much more CPU a tuple of the whole job takes in windows than before; at least 0.

    >>> one, other = (LoadWindow(10.0, {"v0": 2.0}, {"v0": cost}) for cost in (1.0, 1.5))
    >>> excess_over(one, [one, other]), excess_over(other, [one])
    (0.25, 0.0)
    """
    usual = _cost([before])
    return max(0.0, _cost(windows) / usual - 1) if usual > 0 else 0.0


def _cost(windows: Sequence[LoadWindow]) -> float:
    """Core seconds per tuple of the whole job; 0 without tuples."""
    cores = math.fsum(one.seconds * sum(one.cores.values()) for one in windows)
    tuples = math.fsum(one.seconds * sum(one.tuples.values()) for one in windows)
    return cores / tuples if tuples > 0 else 0.0


def _judged_alone(tasks: Sequence[FlinkTask], windows: Sequence[LoadWindow]) -> Verdict:
    """Whether a job is warm by its windows alone."""
    compilers = windows[-1].compilers or 0.0
    busy = f"compilers take {compilers:.0%} of the CPU of the TaskManagers"
    if compilers >= BUSY:
        return Verdict(0, busy)
    if compilers < QUIET:
        if len(windows) < LEAST_WINDOWS:
            return Verdict(0, f"{len(windows)} of {LEAST_WINDOWS} windows were watched")
        reason = _why_unsteady(tasks, windows[-LEAST_WINDOWS:])
        return Verdict(0 if reason else LEAST_WINDOWS, reason)
    if len(windows) < LEAST_BUSY_WINDOWS:
        return Verdict(0, busy)
    for number in range(LEAST_BUSY_WINDOWS, len(windows) + 1):
        last = windows[-number:]
        if not (reason := _why_unproven(tasks, last)):
            return Verdict(
                number,
                f"{busy}, but the CPU per tuple of all operators that matter was steady over "
                f"{number} windows",
            )
    return Verdict(0, f"{busy}, and {reason}")


def drift_over(tasks: Sequence[FlinkTask], windows: Sequence[LoadWindow]) -> Drift:
    """Estimate how much a job's CPU may still change, from how much it did over these windows.

    The level is the range of its CPU per tuple. The mix is twice the clear changes of the
    operators' parts of the CPU, with the standard errors of these parts: in recorded jobs that were
    measured cold, as much was still to come.

    >>> task = FlinkTask("v0", "v0", "v0", 1, ("v0",))
    >>> costs = [4.0, 3.0, 2.0, 1.5, 1.2, 1.0]
    >>> falling = [LoadWindow(10.0, {"v0": 1.0}, {"v0": cost}) for cost in costs]
    >>> drift = drift_over([task], falling)
    >>> round(drift.level, 2), drift.mix
    (1.42, 0.0)
    """
    job = [
        one._replace(tuples={"": sum(one.tuples.values())}, cores={"": sum(one.cores.values())})
        for one in windows
    ]
    costs = per_tuple("", job)
    measured = sum(one.cores[""] > 0 for one in job)
    if min(measured, len(costs.values)) < LEAST_FOR_DRIFT:
        return Drift(math.inf, math.inf)
    changes, errors = [], []
    for task in tasks:
        rows = [
            (one.cores.get(task.id, 0.0) / all_.cores[""], all_.cores[""], middle)
            for (one, middle), all_ in zip(_with_middles(windows), job, strict=True)
            if all_.cores[""] > 0
        ]
        parts = _series(rows)
        changes.append(abs(change_of(parts)) * _mean(parts))
        errors.append(float(parts.values.std(ddof=1)) / math.sqrt(len(rows)))
    level = float(np.ptp(costs.values)) / _mean(costs)
    return Drift(level, sum(changes) + 2 * math.hypot(*errors))


def _why_unsteady(tasks: Sequence[FlinkTask], windows: Sequence[LoadWindow]) -> str:
    """Sentence on the operator whose CPU changed most; empty if all are steady.

    It is sufficient that the CPU per second is steady, because committers read messages in batches.
    """
    changes: list[_Change] = []
    for task in _that_matter(tasks, windows):
        change = _Change(change_of(per_second(task.id, windows)), task.name, "second")
        each = per_tuple(task.id, windows)
        if each.number >= LEAST_WINDOWS / 2:
            other = _Change(change_of(each), task.name, "tuple")
            change = min(other, change, key=lambda one: abs(one.share))
        changes.append(change)
    return _largest(changes)


def _why_unproven(tasks: Sequence[FlinkTask], windows: Sequence[LoadWindow]) -> str:
    """Sentence on the operator whose CPU per tuple may change most; empty if all are steady."""
    changes: list[_Change] = []
    for task in _that_matter(tasks, windows):
        is_periodic = task.id in windows[-1].periodic
        series = (per_second if is_periodic else per_tuple)(task.id, windows)
        if series.number < LEAST_WINDOWS:
            return f"operator {quoted(task.name)} had little data in most windows"
        share = max(change_of(series), drift_of(series), key=abs)
        changes.append(_Change(share, task.name, "second" if is_periodic else "tuple"))
    return _largest(changes)


class _Change(NamedTuple):
    """Change of the CPU of an operator per tuple, or per second."""

    share: float
    operator: str
    per: str


def _largest(changes: Sequence[_Change]) -> str:
    change = max(changes, key=lambda one: abs(one.share), default=None)
    if change is None or abs(change.share) <= MOST_CHANGE:
        return ""
    return (
        f"the CPU of operator {quoted(change.operator)} per {change.per} changed by "
        f"{change.share:+.0%}"
    )


def _that_matter(tasks: Sequence[FlinkTask], windows: Sequence[LoadWindow]) -> Iterator[FlinkTask]:
    """Operators with a significant part of the job's CPU."""
    whole = sum(sum(one.cores.values()) for one in windows)
    for task in tasks:
        cores = sum(one.cores.get(task.id, 0.0) for one in windows)
        if cores > 0 and cores >= MATTERS * whole:
            yield task


def per_tuple(task: str, windows: Sequence[LoadWindow]) -> Series:
    """CPU of an operator per tuple, in the windows with enough tuples."""
    most = max(one.tuples.get(task, 0.0) * one.seconds for one in windows)
    rows = [
        (one.cores.get(task, 0.0) / one.tuples[task], one.tuples[task] * one.seconds, middle)
        for one, middle in _with_middles(windows)
        if one.tuples.get(task, 0.0) * one.seconds > LITTLE * most
    ]
    return _series(rows)


def per_second(task: str, windows: Sequence[LoadWindow]) -> Series:
    """CPU of an operator per second."""
    return _series(
        [(one.cores.get(task, 0.0), one.seconds, middle) for one, middle in _with_middles(windows)]
    )


def _with_middles(windows: Sequence[LoadWindow]) -> Iterator[tuple[LoadWindow, float]]:
    end = 0.0
    for one in windows:
        yield one, end + one.seconds / 2
        end += one.seconds


def _series(rows: Sequence[tuple[float, float, float]]) -> Series:
    values, weights, middles = np.array(rows, np.float64).reshape(-1, 3).T
    return Series(values, weights / (weights.mean() if len(rows) else 1.0), middles)


def change_of(series: Series) -> float:
    """Change of values over time, relative to their mean; 0 if it may be random.

    A slope and a step at any position are fitted; the largest clear change counts.

    >>> ones, middles = np.ones(4), np.array([5.0, 15.0, 25.0, 35.0])
    >>> change_of(Series(np.array([4.0, 4.1, 3.9, 4.0]), ones, middles))
    0.0
    >>> round(change_of(Series(np.array([52.0, 40.0, 30.0, 22.0]), ones, middles)), 2)
    -0.83
    """
    n, mean = len(series.values), _mean(series)
    shapes = [np.arange(n) / (n - 1.0)]
    shapes += [(np.arange(n) >= k).astype(np.float64) for k in range(1, n)]
    fits = [_fitted(shape, series) for shape in shapes]
    clear = [height / mean for height, error in fits if abs(height) > CLEAR * error and mean > 0]
    return max(clear, key=abs, default=0.0)


def drift_of(series: Series) -> float:
    """Predicted change of values within a minute, relative to their mean, plus a standard error.

    The slope is extrapolated from the middle of the windows, which has their mean.

    >>> ones, middles = np.ones(6), np.arange(5.0, 65.0, 10.0)
    >>> round(drift_of(Series(np.array([60.0, 59.0, 58.0, 57.0, 56.0, 55.0]), ones, middles)), 2)
    -0.15
    """
    slope, error = _fitted(series.seconds, series)
    mean = _mean(series)
    ahead = NEXT_SECONDS + float(series.seconds[-1] - (series.weights * series.seconds).mean())
    return math.copysign((abs(slope) + error) * ahead / mean, slope) if mean > 0 else 0.0


def _mean(series: Series) -> float:
    return float((series.weights * series.values).mean())


def _fitted(shape: Floats, series: Series) -> tuple[float, float]:
    """Height of a shape fitted to values, and its standard error."""
    weights = series.weights
    x = shape - (weights * shape).mean()
    spread = float((weights * x**2).sum())
    if spread <= 0:
        return 0.0, math.inf
    height = float((weights * x * series.values).sum()) / spread
    rest = series.values - _mean(series) - height * x
    variance = float((weights * rest**2).sum()) / max(1, len(weights) - 2)
    return height, math.sqrt(variance / spread)
