"""Steady jobs, whose measurements remain valid: checks of them, and profiles once they are warm.

A job is measured in adjacent windows until `warm_windows.judged` regards it as warm. Its profile is
that of all windows since then together. When the patience is over, the profile is that of the last
minute, and says how much may still change.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import mean

from streamplace.engines.flink.measure.job_windows import JobWindows, LoadWindow
from streamplace.engines.flink.measure.profile import JobProfile, profile_of
from streamplace.engines.flink.measure.sampling import Activity, sample
from streamplace.engines.flink.measure.source_rates import emitted
from streamplace.engines.flink.measure.warm_windows import (
    LEAST_BUSY_WINDOWS,
    Drift,
    drift_over,
    excess_over,
    judged,
)
from streamplace.engines.flink.rest.client import FlinkError, Rest
from streamplace.model.messages import quoted, shown
from streamplace.model.units import digits

GARBAGE_TIME = "Status.JVM.GarbageCollector.All.Time"
"""Metric of a TaskManager: milliseconds that all its garbage collectors have used."""
MOST_GARBAGE = 0.2
"""Share of the time above which garbage collection distorts the CPU per tuple."""
MOST_WINDOWS, ALIKE = 12, 0.1
MOST_COUNTING = 0.15
"""Maximum part of a rate by which windows may differ because of late counters."""
LEAST_VARIATION = 0.05
"""Minimum standard deviation of the rate of a source that varies, relative to it."""
NOISE = 3.0
"""Counts agree if they differ by less than this multiple of the square root of their number."""
PATIENCE_SECONDS = 120.0
"""Default time limit for a job to become warm."""
LONGER = 2.5
"""Factor of the patience with a job whose counters Flink updates so rarely that windows are few."""
MOST_COMPILERS = 0.5
"""Part of the CPU of TaskManagers from which on compilers leave nothing that could be judged."""
MOST_MIX = 0.4
"""Maximum change of the parts of the operators (`Drift.mix`) of a job that is not warm."""


class UnsteadyJob(FlinkError):
    """A job that cannot be measured yet; the message says what to wait for."""


def settled_rate(rest: Rest, job: str, vertex: str, seconds: float) -> float:
    """Tuples/s that a vertex reads, once two windows of ``seconds`` in a row agree within 10 %.

    A job begins slowly: its classes are loaded and compiled, and its queues fill. After twelve
    windows the last one counts in any case.
    """
    before = rate = 0.0
    for _ in range(MOST_WINDOWS):
        before, rate = rate, sample(rest, job, [vertex], seconds)[vertex].records_in
        if abs(rate - before) < ALIKE * before:
            break
    return rate


def check_rates(seen: JobProfile) -> None:
    """Raise UnsteadyJob if a source emits at different rates in both halves of the time."""
    is_fetched = any(activity.seconds > 0 for activity in seen.activity.values())
    for source in seen.sources:
        activity = seen.activity[source.id]
        if not seen.tuples[source.id] or (is_fetched and activity.is_silent):  # or it has ended
            continue
        halves = emitted(source, activity)
        if halves is None:
            raise UnsteadyJob(
                f"Flink did not update the counters of source {quoted(source.name)} often enough "
                "to compare two windows; watch for longer with --seconds"
            )
        if not agree(*halves, activity.seconds / 2, activity.unsure):
            first, second = halves
            raise UnsteadyJob(
                f"source {quoted(source.name)} sent {digits(first)} tuples/s and then "
                f"{digits(second)}; wait until two windows differ by less than {ALIKE:.0%}, or "
                "watch for longer with --seconds"
            )


def agree(first: float, second: float, seconds: float, unsure: float) -> bool:
    """Whether two rates may be those of one constant source.

    If the border of the windows is noticed ``unsure`` seconds late, the first rate is too low and
    the second one too high, both by that part of the length of a window.
    """
    larger, length = max(first, second), max(seconds, 1.0)
    counting = min(2 * unsure / length, MOST_COUNTING)
    return abs(first - second) <= (ALIKE + counting) * larger + NOISE * math.sqrt(larger / length)


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


def check_garbage(managers: Mapping[str, Activity]) -> None:
    """Raise UnsteadyJob if garbage collection uses much of the time of a TaskManager."""
    for name, share in garbage_shares(managers).items():
        if share > MOST_GARBAGE:
            raise UnsteadyJob(
                f"garbage collection took {share:.0%} of the time of TaskManager {quoted(name)}, "
                "so the CPU per tuple cannot be measured; give it more memory "
                f"(taskmanager.memory.task.heap.size), and ask again when it is below "
                f"{MOST_GARBAGE:.0%}"
            )


def garbage_shares(managers: Mapping[str, Activity]) -> dict[str, float]:
    """TaskManager → share of its time for garbage collection, if Flink reports it."""
    return {
        name: seen.rates[GARBAGE_TIME] / 1000
        for name, seen in managers.items()
        if GARBAGE_TIME in seen.rates
    }


@dataclass(frozen=True, slots=True)
class Warmth:
    """How a job is measured until it is warm."""

    seconds: float = 10.0  # length of a window
    # Seconds after which a job is measured although it is not warm, with what may still change told
    # by its `Drift`.
    patience: float = PATIENCE_SECONDS
    accept_cold: bool = False  # whether this is done however much it may change


def _ignore(_: str) -> None:
    """Ignore a message."""


def warm_profile(
    rest: Rest,
    job: str,
    warmth: Warmth,
    of_managers: Sequence[str] = (),
    tell: Callable[[str], None] = _ignore,
) -> JobProfile:
    """Measure a running job until it is warm; return its profile of all windows since then.

    ``of_managers``: metrics to read of all TaskManagers of the job.
    ``tell``: function that receives a message after every window.

    UnsteadyJob is raised if it is so cold after ``patience`` seconds that nothing can be judged.
    """
    windows = JobWindows(rest, job, of_managers)
    loads: list[LoadWindow] = []
    began, before = time.monotonic(), None
    if warmth.patience and windows.starts_recorder:
        windows.add(warmth.seconds, is_sampled=False)
        before = profile_of(windows).as_window()
    while True:
        windows.add(warmth.seconds)
        seen = profile_of(windows)
        try:
            seen.check_sources()
        except FlinkError as error:  # all further windows would be useless, too
            raise UnsteadyJob(str(error)) from None
        loads.append(seen.as_window())
        verdict = judged(seen.tasks, loads, before)
        waited = time.monotonic() - began
        if verdict.is_warm:
            tell(f"the job was watched for {waited:.0f} s until it was warm")
            answer = profile_of(windows, verdict.windows)
            answer.doubts.extend([verdict.reason] if verdict.reason else [])
            return replace(answer, windows=tuple(loads[-verdict.windows :]))
        is_enough = len(loads) >= LEAST_BUSY_WINDOWS or waited >= LONGER * warmth.patience
        if waited >= warmth.patience and is_enough:
            break
        tell(f"the job is not warm after {waited:.0f} s: {verdict.reason}")
    last = loads[-LEAST_BUSY_WINDOWS:]
    drift, text = drift_over(seen.tasks, last), f"not warm after {waited:.0f} s: {verdict.reason}"
    if before is not None:
        drift = drift._replace(level=max(drift.level, excess_over(before, last)))
    if _is_vague(drift, last):
        if not warmth.accept_cold:
            raise UnsteadyJob(
                f"job {shown(job)} is {text}; wait, watch for longer with --patience, or measure "
                "it nevertheless with --accept-cold"
            )
        seen.doubts.append(f"the job was {text}")
        return seen
    tell(f"the job is {text}; what still changes widens the intervals of predictions")
    cold = profile_of(windows, len(last))
    cold.doubts.append(
        f"the job was {text}. Its CPU per tuple varied by {drift.level:.0%} in the last "
        f"{sum(one.seconds for one in last):.0f} s; intervals allow for that"
    )
    return replace(cold, windows=tuple(last), drift=drift)


def _is_vague(drift: Drift, windows: Sequence[LoadWindow]) -> bool:
    """Return whether a cold job changes too much for a comparison of layouts."""
    compilers = mean(one.compilers or 0.0 for one in windows)
    return drift.mix > MOST_MIX or compilers >= MOST_COMPILERS
