"""Profiles of jobs that are warm: waiting until what is measured of a job holds for longer.

A job is watched window by window, without gaps, until `warm_windows.judged` calls it warm. Its
profile is that of all windows since then, taken as one.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from streamplace.engines.flink.constant_loads import LoadWindow
from streamplace.engines.flink.helpers import COMPILERS
from streamplace.engines.flink.job_watch import JobWatch
from streamplace.engines.flink.profile import JobProfile, profile_of
from streamplace.engines.flink.rest import FlinkError, Rest
from streamplace.engines.flink.steady import UnsteadyJob
from streamplace.engines.flink.warm_windows import judged
from streamplace.model.messages import shown

PATIENCE_SECONDS = 300.0
"""For which a job is waited for, unless the user says otherwise."""
NEGLIGIBLE = 0.02
"""Part of what TaskManagers may take of CPU that compilers may take whatever the job takes.

Beside a job that takes little CPU they go on for minutes, not least with what answers the profiler.
"""


@dataclass(frozen=True, slots=True)
class Warmth:
    """How long a job is waited for until it is warm.

    Attributes
    ----------
    seconds
        Length of a window.
    patience
        Seconds after which a job that is not warm is refused.
    accept_cold
        Whether it is measured then, and its profile doubted, instead of refused.
    """

    seconds: float = 10.0
    patience: float = PATIENCE_SECONDS
    accept_cold: bool = False


def _ignore(_: str) -> None:
    """Tell nobody."""


def warm_profile(
    rest: Rest,
    job: str,
    warmth: Warmth,
    of_managers: Sequence[str] = (),
    tell: Callable[[str], None] = _ignore,
) -> JobProfile:
    """Watch a running job until it is warm; its profile, from all windows since then.

    Parameters
    ----------
    of_managers
        Metrics that are wanted of all TaskManagers of the job.
    tell
        Is told after every window what is waited for.

    Raises
    ------
    UnsteadyJob
        When it is not warm within the patience.
    FlinkError
        When the job does not run, or does not any more.
    """
    watch = JobWatch(rest, job, of_managers)
    windows: list[LoadWindow] = []
    began = time.monotonic()
    while True:
        watch.watch(warmth.seconds)
        seen = profile_of(watch)
        try:
            seen.check_sources()
        except FlinkError as error:  # no window of it would mean anything
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
    """What the tasks of a job did while it was profiled."""
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
