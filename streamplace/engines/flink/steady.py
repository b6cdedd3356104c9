"""Whether a job runs so steadily that what is measured of it holds for longer."""

import math
from collections.abc import Mapping

from streamplace.engines.flink.answer_shapes import Job
from streamplace.engines.flink.profile import JobProfile
from streamplace.engines.flink.rest import FlinkError
from streamplace.engines.flink.sampling import ALIKE, Activity
from streamplace.engines.flink.source_rates import emitted
from streamplace.model.messages import quoted, shown

GARBAGE_TIME = "Status.JVM.GarbageCollector.All.Time"
"""Metric of a TaskManager: milliseconds that all its garbage collectors have taken."""
MOST_GARBAGE = 0.2
"""Share of the time from which on garbage collection distorts the CPU per tuple."""
WARM_UP_SECONDS = 60.0
"""For which a job loads and compiles its classes (docs/calibration.md)."""
MOST_COUNTING = 0.15
"""Part of a rate by which windows may differ, at most, because of when they were counted."""
NOISE = 3.0
"""Counts that differ by so many times the root of their number agree."""


class UnsteadyJob(FlinkError):
    """A job of which no measurement means anything yet; the message says what to wait for."""


def check_age(document: Job, job: str, warm_up: float) -> None:
    """Raise UnsteadyJob for a job whose tasks began to run less than ``warm_up`` seconds ago."""
    age = seconds_running(document)
    if age < warm_up:
        raise UnsteadyJob(
            f"job {shown(job)} has run for {age:.0f} s, and a job needs more CPU while it warms "
            f"up; wait {math.ceil(warm_up - age)} s, or lower --warm-up"
        )


def seconds_running(document: Job) -> float:
    """Seconds since a job began to run, or ran again after a restart.

    >>> seconds_running({"name": "", "state": "RUNNING", "vertices": [], "duration": 5000})
    5.0
    """
    began, now = document.get("timestamps", {}).get("RUNNING", 0), document.get("now", 0)
    if 0 < began <= now:
        return (now - began) / 1000
    return document.get("duration", 0) / 1000


def check_rates(seen: JobProfile) -> None:
    """Raise UnsteadyJob where a source emits at different rates in both halves of the time."""
    for source in seen.sources:
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
                f"source {quoted(source.name)} sent {first:.4g} tuples/s and then {second:.4g}; "
                f"wait until two windows differ by less than {ALIKE:.0%}, or watch for longer with "
                "--seconds"
            )


def agree(first: float, second: float, seconds: float, unsure: float) -> bool:
    """Whether two rates may be those of one constant source.

    Where the moment between the windows is seen ``unsure`` seconds late, the first window counts
    too little per second and the second too much, both by that part of their length.
    """
    larger, length = max(first, second), max(seconds, 1.0)
    counting = min(2 * unsure / length, MOST_COUNTING)
    return abs(first - second) <= (ALIKE + counting) * larger + NOISE * math.sqrt(larger / length)


def check_garbage(managers: Mapping[str, Activity]) -> None:
    """Raise UnsteadyJob where garbage collection takes much of the time of a TaskManager."""
    for name, share in garbage_shares(managers).items():
        if share > MOST_GARBAGE:
            raise UnsteadyJob(
                f"garbage collection took {share:.0%} of the time of TaskManager {quoted(name)}, "
                "so the CPU per tuple cannot be measured; give it more memory "
                f"(taskmanager.memory.task.heap.size), and ask again when it is below "
                f"{MOST_GARBAGE:.0%}"
            )


def garbage_shares(managers: Mapping[str, Activity]) -> dict[str, float]:
    """TaskManager → share of its time that garbage collection took, where Flink tells it."""
    return {
        name: seen.rates[GARBAGE_TIME] / 1000
        for name, seen in managers.items()
        if GARBAGE_TIME in seen.rates
    }
