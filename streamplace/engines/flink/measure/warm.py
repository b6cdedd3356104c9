"""Profiles of warm jobs, whose measurements remain valid.

A job is measured in adjacent windows until `warm_windows.judged` regards it as warm. Its profile is
that of all windows since then together.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from streamplace.engines.flink.cpu.helpers import COMPILERS
from streamplace.engines.flink.measure.constant_loads import LoadWindow
from streamplace.engines.flink.measure.job_watch import JobWatch
from streamplace.engines.flink.measure.profile import JobProfile, profile_of
from streamplace.engines.flink.measure.steady import UnsteadyJob
from streamplace.engines.flink.measure.warm_windows import judged
from streamplace.engines.flink.rest.client import FlinkError, Rest
from streamplace.model.messages import shown

PATIENCE_SECONDS = 300.0
"""Default time limit for a job to become warm."""
NEGLIGIBLE = 0.02
"""Compilers are ignored below this part of the CPU limit of TaskManagers.

In a job with a low load they continue for minutes, partly with code that serves the profiler.
"""


@dataclass(frozen=True, slots=True)
class Warmth:
    """How a job is measured until it is warm.

    Attributes
    ----------
    seconds
        Length of a window.
    patience
        Seconds after which a job that is not warm is rejected.
    accept_cold
        Whether such a job is measured nevertheless, with a doubt in its profile.
    """

    seconds: float = 10.0
    patience: float = PATIENCE_SECONDS
    accept_cold: bool = False


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

    Parameters
    ----------
    of_managers
        Metrics to read of all TaskManagers of the job.
    tell
        Function that receives a message after every window.

    Raises
    ------
    UnsteadyJob
        When it is not warm after ``patience`` seconds.
    FlinkError
        When the job is not running, or stops running.
    """
    watch = JobWatch(rest, job, of_managers)
    windows: list[LoadWindow] = []
    began = time.monotonic()
    while True:
        watch.watch(warmth.seconds)
        seen = profile_of(watch)
        try:
            seen.check_sources()
        except FlinkError as error:  # all further windows would be useless, too
            raise UnsteadyJob(str(error)) from None
        windows.append(window_of(seen))
        verdict = judged(seen.tasks, windows)
        waited = time.monotonic() - began
        if verdict.is_warm:
            tell(f"the job was watched for {waited:.0f} s until it was warm")
            answer = profile_of(watch, verdict.windows)
            answer.doubts.extend([verdict.reason] if verdict.reason else [])
            return replace(answer, windows=tuple(windows[-verdict.windows :]))
        if waited >= warmth.patience:
            break
        tell(f"the job is not warm after {waited:.0f} s: {verdict.reason}")
    text = f"not warm after {waited:.0f} s: {verdict.reason}"
    if not warmth.accept_cold:
        raise UnsteadyJob(
            f"job {shown(job)} is {text}; wait, watch for longer with --patience, or measure it "
            "nevertheless with --accept-cold"
        )
    seen.doubts.append(f"the job was {text}")
    return seen


def window_of(seen: JobProfile) -> LoadWindow:
    """Convert a profile to a window of load."""
    compilers = None
    if seen.present is not None and seen.present.usage:
        kinds = [usage.kinds for usage in seen.present.usage.values()]
        whole = sum(sum(one.values()) for one in kinds)
        cores = sum(one.get(COMPILERS, 0.0) for one in kinds)
        limit = sum(usage.limit for usage in seen.present.usage.values())
        compilers = cores / whole if cores > NEGLIGIBLE * limit else 0.0
    seconds = max((one.seconds for one in seen.activity.values()), default=0.0)
    own = {task: one.cores for task, one in seen.cpu.items()}
    periodic = frozenset(task for task, cores in seen.constant.items() if cores > 0)
    return LoadWindow(seconds, dict(seen.tuples), own, compilers, periodic)
