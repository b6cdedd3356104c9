"""Profiles of jobs that are warm: their compilers have little left to do, and CPU is steady.

A job is watched in windows. It is warm when compilers took less than `MOST_COMPILING` of the CPU in
the last one, or next to nothing (`NEGLIGIBLE`), and the CPU per tuple of no operator that matters
changed over the last four. A change is a step or a slope over the windows, fitted by least squares,
that is both large (`MOST_CHANGE`) and clear (`CLEAR` standard errors).
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from streamplace.engines.flink.constant_loads import LoadWindow
from streamplace.engines.flink.helpers import COMPILERS
from streamplace.engines.flink.plan import FlinkTask, read_plan
from streamplace.engines.flink.profile import JobProfile, profile
from streamplace.engines.flink.rest import FlinkError, Rest
from streamplace.engines.flink.steady import UnsteadyJob
from streamplace.engines.flink.task_cpu import TaskCpu
from streamplace.model.arrays import Floats
from streamplace.model.messages import quoted, shown

PATIENCE_SECONDS = 300.0
"""For which a job is waited for, unless the user says otherwise."""
MOST_COMPILING = 0.05
"""Part of the CPU of the TaskManagers that compilers take at most in a job that is warm."""
NEGLIGIBLE = 0.02
"""Part of what TaskManagers may take of CPU that compilers may take whatever the job takes.

Beside a job that takes little CPU they go on for minutes, not least with what answers the profiler.
"""
MOST_CHANGE = 0.05
"""Part by which the CPU per tuple of an operator may change over the windows."""
CLEAR = 3.0
"""Standard errors from which on a change is none of chance."""
LEAST_WINDOWS = 4
"""Last windows, in which a job must be steady."""
MATTERS = 0.05
"""Part of the CPU of the job from which on an operator matters."""


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
    """Watch a running job until it is warm; its profile, with the CPU of all windows since then.

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
    windows: list[LoadWindow] = []
    plan = read_plan(rest, job)
    began = time.monotonic()
    while True:
        seen = profile(rest, job, warmth.seconds, of_managers, plan)
        try:
            seen.check_sources()
        except FlinkError as error:  # no window of it would mean anything
            raise UnsteadyJob(str(error)) from None
        windows.append(window_of(seen))
        why = why_cold(seen.tasks, windows)
        waited = time.monotonic() - began
        if why is None:
            tell(f"the job was watched for {waited:.0f} s until it was warm")
            return _pooled(seen, windows[-LEAST_WINDOWS:])
        if waited >= warmth.patience:
            break
        tell(f"the job is not warm after {waited:.0f} s: {why}")
    if not warmth.accept_cold:
        raise UnsteadyJob(
            f"job {shown(job)} is not warm after {waited:.0f} s: {why}; wait, watch for longer "
            "with --patience, or measure it nevertheless with --accept-cold"
        )
    seen.doubts.append(f"the job was not warm after {waited:.0f} s: {why}")
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
    return LoadWindow(seconds, dict(seen.tuples), own, compilers)


def why_cold(tasks: Sequence[FlinkTask], windows: Sequence[LoadWindow]) -> str | None:
    """Why a job that was watched in windows is not warm, in words; None where it is."""
    last = windows[-1]
    if last.compilers is not None and last.compilers >= MOST_COMPILING:
        return f"compilers take {last.compilers:.0%} of the CPU of the TaskManagers"
    if len(windows) < LEAST_WINDOWS:
        return f"{len(windows)} of {LEAST_WINDOWS} windows were watched"
    changes = _changes(tasks, windows[-LEAST_WINDOWS:])
    name, change = max(changes, key=lambda pair: abs(pair[1]), default=("", 0.0))
    if abs(change) <= MOST_CHANGE:
        return None
    return f"the CPU of operator {quoted(name)} per tuple changed by {change:+.0%}"


def _changes(
    tasks: Sequence[FlinkTask], windows: Sequence[LoadWindow]
) -> Iterator[tuple[str, float]]:
    """Operators that matter, with the part by which their CPU per tuple changed.

    Those whose CPU per second is steady are steady: committers read messages in batches.
    """
    whole = sum(sum(one.cores.values()) for one in windows)
    for task in tasks:
        cores = sum(one.cores.get(task.id, 0.0) for one in windows)
        if cores < MATTERS * whole or any(one.tuples.get(task.id, 0.0) <= 0 for one in windows):
            continue
        each = change_of([one.cores[task.id] / one.tuples[task.id] for one in windows])
        per_second = change_of([one.cores[task.id] for one in windows])
        yield task.name, min(each, per_second, key=abs)


def change_of(values: Sequence[float]) -> float:
    """Part of their mean by which values change over time; 0 where that may be chance.

    Both a slope and a step between any two of them are tried; the larger clear one counts.

    >>> change_of([4.0, 4.1, 3.9, 4.0]), round(change_of([52.0, 40.0, 30.0, 22.0]), 2)
    (0.0, -0.83)
    """
    y = np.array(values, np.float64)
    n = len(y)
    shapes = [np.arange(n) / (n - 1.0)]
    shapes += [(np.arange(n) >= k).astype(np.float64) for k in range(1, n)]
    return max((_effect(shape, y) for shape in shapes), key=abs)


def _effect(shape: Floats, values: Floats) -> float:
    """Height of a shape in values, over their mean; 0 where it is not clear."""
    x = shape - shape.mean()
    spread, mean = float((x**2).sum()), float(values.mean())
    height = float((x * values).sum()) / spread
    rest = values - mean - height * x
    error = math.sqrt(float((rest**2).sum()) / max(1, len(values) - 2) / spread)
    return height / mean if mean > 0 and abs(height) > CLEAR * error else 0.0


def _pooled(seen: JobProfile, windows: Sequence[LoadWindow]) -> JobProfile:
    """Return the profile with the CPU per tuple of all windows, at the rates of its own.

    Operators whose CPU does not depend on their tuples have their mean CPU.
    """
    cpu, constant = {}, seen.constant
    whole = sum(one.seconds for one in windows)
    for task, own in seen.cpu.items():
        tuples = sum(one.seconds * one.tuples[task] for one in windows)
        cores = sum(one.seconds * one.cores[task] for one in windows)
        if constant[task] > 0 and whole > 0:
            own = TaskCpu(cores / whole, own.source)
        elif tuples > 0 and seen.tuples[task] > 0:
            own = TaskCpu(cores / tuples * seen.tuples[task], own.source)
        cpu[task] = own
    return replace(seen, cpu=cpu, windows=tuple(windows))
