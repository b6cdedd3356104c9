"""Check that a job runs steadily, so that its measurements remain valid."""

import math
from collections.abc import Mapping
from itertools import pairwise
from statistics import mean

from streamplace.engines.flink.measure.job_watch import seconds_running
from streamplace.engines.flink.measure.profile import JobProfile
from streamplace.engines.flink.measure.sampling import ALIKE, Activity
from streamplace.engines.flink.measure.source_rates import emitted
from streamplace.engines.flink.rest.answer_shapes import Job
from streamplace.engines.flink.rest.client import FlinkError
from streamplace.model.messages import quoted, shown
from streamplace.model.units import digits

GARBAGE_TIME = "Status.JVM.GarbageCollector.All.Time"
"""Metric of a TaskManager: milliseconds that all its garbage collectors have used."""
MOST_GARBAGE = 0.2
"""Share of the time above which garbage collection distorts the CPU per tuple."""
WARM_UP_SECONDS = 60.0
"""Time in which a job loads and compiles its classes (docs/calibration.md)."""
MOST_COUNTING = 0.15
"""Maximum part of a rate by which windows may differ because of late counters."""
LEAST_VARIATION = 0.05
"""Minimum standard deviation of the rate of a source that varies, relative to it."""
NOISE = 3.0
"""Counts agree if they differ by less than this multiple of the square root of their number."""


class UnsteadyJob(FlinkError):
    """A job that cannot be measured yet; the message says what to wait for."""


def check_age(document: Job, job: str, warm_up: float) -> None:
    """Raise UnsteadyJob if the tasks of a job began to run less than ``warm_up`` seconds ago."""
    age = seconds_running(document)
    if age < warm_up:
        raise UnsteadyJob(
            f"job {shown(job)} has run for {age:.0f} s, and a job needs more CPU while it warms "
            f"up; wait {math.ceil(warm_up - age)} s, or lower --warm-up"
        )


def check_rates(seen: JobProfile) -> None:
    """Raise UnsteadyJob if a source emits at different rates in both halves of the time."""
    for source in seen.sources:
        if not seen.tuples[source.id]:  # it is silent, or has ended
            continue
        activity = seen.activity[source.id]
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
