"""Measure a job in adjacent windows until it is steady (docs/explanation/flink-measurement.md).

Its profile is that of the windows over which it was steady. When the patience is over, it is that
of the last windows, with an estimate of how much may still change (`drift`).
"""

import logging
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from statistics import mean

import numpy as np

from streamplace.flink.constants import RATE_ERRORS
from streamplace.flink.cpu.charging import COMPILERS
from streamplace.flink.measure.profile import (
    JobProfile,
    LoadWindow,
    Remedy,
    costs_of,
    profile_of,
)
from streamplace.flink.measure.windows import JobWindows
from streamplace.flink.rest.client import Rest
from streamplace.model.defaults import PATIENCE_SECONDS

LOG = logging.getLogger(__name__)

STEADY_SECONDS, MIN_WINDOWS = 20.0, 4
"""Time, and number of windows, over which a job must be steady."""
STEADY = 0.05
"""Largest relative change over that time that does not matter."""
MAX_CHANGE = 0.3
"""Maximum change that a slope may show as noise; a steady job does not vary by more."""
MAX_COMPILERS = 0.15
"""Maximum share of Java's compilers in the CPU of warm TaskManagers."""
MIN_COMPILERS = 0.02
"""Compilers are ignored below this part of the CPU limit of TaskManagers.

In a job with a low load they continue for minutes, partly with code that serves the profiler.
"""


def steady_profile(
    rest: Rest, job: str, seconds: float, patience: float = PATIENCE_SECONDS
) -> JobProfile:
    """Measure a running job until it is steady; return its profile of all windows since then.

    ``seconds``: length of a window.
    ``patience``: seconds after which a job is measured although it is not steady; the ``drift`` of
    its profile is the change to be expected. 0 for a single window.
    """
    windows = JobWindows(rest, job)
    loads: list[LoadWindow] = []
    began = time.monotonic()
    while True:
        windows.add(seconds)
        profile = profile_of(windows)
        if not any(source.back_pressured for source in profile.flow.sources.values()):
            profile.check_sources()  # otherwise a held-back one may send in the next window
        loads.append(window_of(profile))
        last = _last(loads)
        waited = time.monotonic() - began
        reason = why_unsteady(last)
        is_enough = len(loads) >= MIN_WINDOWS or not patience
        if not reason or (waited >= patience and is_enough):
            break
        LOG.debug("not steady after %.0f s: %s", waited, reason)
    answer = replace(profile_of(windows, len(last)), windows=tuple(last))
    if not reason:
        return answer
    costs, measured = costs_of(last), sum(window.seconds for window in last)
    is_known = len(costs) >= MIN_WINDOWS and any(costs)
    drift = (max(costs) - min(costs)) / mean(costs) if is_known else math.inf
    answer.doubts.append(
        Remedy(
            f"the job was not steady after {waited:.0f} s: {reason}. Its CPU per tuple varied by "
            f"{drift:.0%} in the last {measured:.0f} s; intervals allow "
            "for that"
        )
    )
    return replace(answer, drift=drift)


def window_of(profile: JobProfile) -> LoadWindow:
    """Rates and CPU of a profile of one window."""
    compilers, usage = 0.0, profile.present.usage
    cores = sum(own.kinds.get(COMPILERS, 0.0) for own in usage.values())
    if cores > MIN_COMPILERS * sum(own.share.limit for own in usage.values()):
        compilers = cores / sum(profile.used.values())
    return LoadWindow(
        max((activity.seconds for activity in profile.activity.values()), default=0.0),
        sum(profile.tuples[source.id] for source in profile.sources),
        sum(cpu.cores for cpu in profile.cpu.values()),
        compilers,
        profile.observations,
    )


def _last(windows: Sequence[LoadWindow]) -> list[LoadWindow]:
    """The last windows over which a job must be steady; all, if they are too few."""
    number, seconds = 0, 0.0
    for window in reversed(windows):
        if number >= MIN_WINDOWS and seconds >= STEADY_SECONDS:
            break
        number, seconds = number + 1, seconds + window.seconds
    return list(windows[-number:])


def why_unsteady(windows: Sequence[LoadWindow]) -> str:
    """Why a job is not steady over some windows; empty if it is.

    >>> rising = [LoadWindow(5.0, rate, 0.1) for rate in (100, 120, 140, 160)]
    >>> why_unsteady(rising)
    'its rate changed by +46% in 20 s'
    >>> why_unsteady(rising[-1:] * 4)
    ''
    """
    seconds = sum(window.seconds for window in windows)
    if len(windows) < MIN_WINDOWS or seconds < STEADY_SECONDS:
        return f"it was measured for {seconds:.0f} of {STEADY_SECONDS:.0f} s"
    compilers = windows[-1].compilers
    if compilers >= MAX_COMPILERS:
        return f"compilers take {compilers:.0%} of the CPU of the TaskManagers"
    rates = [window.rate for window in windows]
    for what, values in (("rate", rates), ("CPU per tuple", costs_of(windows))):
        if change := change_of(values):
            return f"its {what} changed by {change:+.0%} in {seconds:.0f} s"
    return ""


def change_of(values: Sequence[float]) -> float:
    """Relative change of values of equal windows by their slope; 0 if they are steady.

    >>> change_of([100.0, 103.0, 98.0, 101.0]), round(change_of([50.0, 40.0, 32.0, 26.0]), 2)
    (0.0, -0.65)
    """
    n, middle = len(values), float(np.mean(values)) if len(values) else 0.0
    if n < MIN_WINDOWS or middle <= 0:
        return 0.0
    (slope, _), covariance = np.polyfit(np.arange(n), np.array(values) / middle, 1, cov=True)
    change, error = (n - 1) * float(slope), (n - 1) * math.sqrt(covariance[0, 0])
    is_noise = abs(change) <= RATE_ERRORS * error and abs(change) <= MAX_CHANGE
    return 0.0 if abs(change) <= STEADY or is_noise else change
