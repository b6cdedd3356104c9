"""Steady jobs, whose measurements remain valid: checks of them, and profiles of them.

A job is measured in adjacent windows until the rate of its sources and its CPU per tuple are
steady: over the last `STEADY_SECONDS`, the slope of each is within its noise, or changes it by less
than `STEADY`, and compilers take less than `MOST_COMPILERS` of the CPU. Its profile is that of
these windows together. When the patience is over, the profile is that of the last windows, and says
how much may still change.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import mean

import numpy as np

from streamplace.engines.flink.measure.profile import JobProfile, LoadWindow, profile_of
from streamplace.engines.flink.measure.sampling import JobWindows
from streamplace.engines.flink.rest.client import FlinkError, Rest

LEAST_VARIATION = 0.05
"""Minimum standard deviation of the rate of a source that varies, relative to it."""
NOISE = 3.0
"""Counts agree if they differ by less than this multiple of the square root of their number."""
PATIENCE_SECONDS = 120.0
"""Default time limit for a job to become steady."""
LONGER = 2.5
"""Factor of the patience with a job whose counters Flink updates so rarely that windows are few."""
STEADY_SECONDS, LEAST_WINDOWS = 20.0, 4
"""Time, and number of windows, over which a job must be steady."""
MOST_COMPILERS = 0.15
"""Largest share of Java's compilers in the CPU of TaskManagers whose code hardly changes."""
STEADY = 0.05
"""Largest relative change over that time that does not matter."""
ERRORS = 2.0
"""Standard errors of a slope within which it is noise."""
MOST_CHANGE = 0.3
"""Largest change by which a slope may be noise; a steady job does not vary by more."""


class UnsteadyJob(FlinkError):
    """A job that cannot be measured yet; the message says what to wait for."""


def rates_vary(seen: JobProfile) -> bool:
    """Whether the rate of a source varies from window to window, by more than counting explains.

    A rate that rises steadily, as that of a job whose code is being compiled, does not vary.
    """
    return any(_varies(source.id, seen) for source in seen.sources)


def _varies(source: str, seen: JobProfile) -> bool:
    rates = [one.tuples.get(source, 0.0) for one in seen.windows]
    if len(rates) < 3 or not any(rates):
        return False
    seconds = mean(max(one.seconds, 1.0) for one in seen.windows)
    spread = math.sqrt(mean((low - high) ** 2 for low, high in pairwise(rates)) / 2)
    least = max(LEAST_VARIATION, seen.activity[source].unsure / seconds)
    return spread > least * mean(rates) + NOISE * math.sqrt(mean(rates) / seconds)


def steady_profile(
    rest: Rest,
    job: str,
    seconds: float = 5.0,
    patience: float = PATIENCE_SECONDS,
    tell: Callable[[str], None] = lambda _: None,
) -> JobProfile:
    """Measure a running job until it is steady; return its profile of all windows since then.

    ``seconds``: length of a window.
    ``patience``: seconds after which a job is measured although it is not steady, with what may
    still change told by the ``drift`` of its profile.
    ``tell``: function that receives a message after every window.

    UnsteadyJob is raised if its rates cannot be measured.
    """
    windows = JobWindows(rest, job)
    loads: list[LoadWindow] = []
    began = time.monotonic()
    while True:
        windows.add(seconds)
        seen = profile_of(windows)
        try:
            seen.check_sources()
        except FlinkError as error:  # all further windows would be useless, too
            raise UnsteadyJob(str(error)) from None
        loads.append(seen.as_window())
        last = _last(loads)
        waited = time.monotonic() - began
        reason = why_unsteady(last, {source.id for source in seen.sources})
        is_enough = len(loads) >= LEAST_WINDOWS or waited >= LONGER * patience
        if not reason or (waited >= patience and is_enough):
            break
        tell(f"the job is not steady after {waited:.0f} s: {reason}")
    answer = replace(profile_of(windows, len(last)), windows=tuple(last))
    answer.flow.logged()
    if not reason:
        tell(f"the job was watched for {waited:.0f} s until it was steady")
        return answer
    drift = drift_of(last)
    text = f"not steady after {waited:.0f} s: {reason}"
    tell(f"the job is {text}; what still changes widens the intervals of predictions")
    answer.doubts.append(
        f"the job was {text}. Its CPU per tuple varied by {drift:.0%} in the last "
        f"{sum(one.seconds for one in last):.0f} s; intervals allow for that"
    )
    return replace(answer, drift=drift)


def _last(windows: Sequence[LoadWindow]) -> list[LoadWindow]:
    """The last windows over which a job must be steady; all, if they are too few."""
    number, seconds = 0, 0.0
    for one in reversed(windows):
        if number >= LEAST_WINDOWS and seconds >= STEADY_SECONDS:
            break
        number, seconds = number + 1, seconds + one.seconds
    return list(windows[-number:])


def why_unsteady(windows: Sequence[LoadWindow], sources: set[str]) -> str:
    """Why a job is not steady over some windows; empty if it is.

    >>> rising = [LoadWindow(5.0, {"src": rate}, {"src": 0.1}) for rate in (100, 120, 140, 160)]
    >>> why_unsteady(rising, {"src"})
    'its rate changed by +46% in 20 s'
    >>> why_unsteady(rising[-1:] * 4, {"src"})
    ''
    """
    seconds = sum(one.seconds for one in windows)
    if len(windows) < LEAST_WINDOWS or seconds < STEADY_SECONDS:
        return f"it was watched for {seconds:.0f} of {STEADY_SECONDS:.0f} s"
    compilers = windows[-1].compilers or 0.0
    if compilers >= MOST_COMPILERS:
        return f"compilers take {compilers:.0%} of the CPU of the TaskManagers"
    rates = [sum(one.tuples.get(source, 0.0) for source in sources) for one in windows]
    costs = [
        sum(one.cores.values()) / rate for one, rate in zip(windows, rates, strict=True) if rate > 0
    ]
    for what, values in (("rate", rates), ("CPU per tuple", costs)):
        if change := change_of(values):
            return f"its {what} changed by {change:+.0%} in {seconds:.0f} s"
    return ""


def change_of(values: Sequence[float]) -> float:
    """Relative change of values of equal windows by their slope; 0 if they are steady.

    >>> change_of([100.0, 103.0, 98.0, 101.0]), round(change_of([50.0, 40.0, 32.0, 26.0]), 2)
    (0.0, -0.65)
    """
    n, middle = len(values), float(np.mean(values)) if len(values) else 0.0
    if n < LEAST_WINDOWS or middle <= 0:
        return 0.0
    x = np.arange(n) - (n - 1) / 2
    y = np.array(values, np.float64) / middle
    spread = float(x @ x)
    slope = float(x @ y) / spread
    rest = float(((y - 1 - slope * x) ** 2).sum()) / (n - 2)
    error = (n - 1) * math.sqrt(rest / spread)
    change = (n - 1) * slope
    is_noise = abs(change) <= ERRORS * error and abs(change) <= MOST_CHANGE
    return 0.0 if abs(change) <= STEADY or is_noise else change


def drift_of(windows: Sequence[LoadWindow]) -> float:
    """Relative range of the CPU per tuple of a job over some windows; infinite if it is unknown."""
    costs = [
        sum(one.cores.values()) / sum(one.tuples.values())
        for one in windows
        if sum(one.tuples.values()) > 0 and sum(one.cores.values()) > 0
    ]
    if len(costs) < LEAST_WINDOWS:
        return math.inf
    return (max(costs) - min(costs)) / mean(costs)
