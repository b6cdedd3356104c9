"""Profiles of jobs: rates, CPU, threads and placement of their tasks, with doubts.

A job is measured in adjacent windows until it is steady (docs/explanation/flink-measurement.md).
Its profile covers the windows over which it was steady. If it does not become steady in time, the
profile covers the last windows and estimates the remaining change (`drift`).
"""

import logging
import math
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from statistics import mean
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from streamplace.flink.constants import RATE_ERRORS
from streamplace.flink.cpu.charging import (
    COMPILERS,
    GARBAGE,
    MEASURED,
    NATIVE,
    NETWORK,
    OF_PROCESS,
    SAMPLED,
    SHARED,
    SOURCES_OF_CPU,
    TASKS,
    UNKNOWN,
    RunningSubtask,
    TaskCpu,
    java_itself,
    kind_of,
)
from streamplace.flink.cpu.limits import CpuPool, CpuShare, cpu_shares, is_starved
from streamplace.flink.cpu.reporter import jar_path
from streamplace.flink.cpu.threads import runs_python
from streamplace.flink.measure.cost_fit import Observation, Observed, constant_cores
from streamplace.flink.measure.key_shares import Shares, key_shares
from streamplace.flink.measure.sampling import Activity
from streamplace.flink.measure.source_lag import SourceFlow, SubtaskFlow, flow_of, together
from streamplace.flink.measure.streams import (
    COMMITTERS,
    NETWORK_KEY,
    SendingCost,
    network_loads,
    remote_flows,
    sending_cost,
)
from streamplace.flink.measure.windows import JobInterval, JobWindows
from streamplace.flink.rest.client import FINISHED, FlinkError, Rest
from streamplace.flink.rest.plan import Edge, FlinkTask, sources_of
from streamplace.flink.rest.settings import DEFAULT_BUFFER_TIMEOUT
from streamplace.model.defaults import PATIENCE_SECONDS
from streamplace.model.message_text import counted, listed, quoted, shown


class Remedy(str):
    """A doubt with a remedy; commands print such doubts, and log the others."""

    __slots__ = ()


ESTIMATED = (
    "the CPU of operators is estimated; to measure it, put the reporter into a folder of its own "
    "below Flink's plugins/, with two lines of configuration (docs/how-to/flink-measure.md):"
)
"""Beginning of a doubt that ends with the path of the reporter."""
UNMEASURED_PYTHON = Remedy(
    "ipt of Python operators: without the CPU of their Python processes; to measure it, run the "
    "job with python.execution-mode: thread"
)
"""Doubt about the CPU of operators in Python."""
PER_THREAD = (MEASURED, SAMPLED)
"""Sources of CPU with a value for each thread, which fits of costs may use."""
MIN_WAITING_SHARE = 0.5
"""Minimum share of waiting in the busy time without run delay.

Below it, the CPU alone predicts the limit of a subtask within a factor of two.
"""
MIN_WAITING = 0.1
"""Minimum waiting in seconds per second and subtask.

Locks, page faults, or reading counters and threads at different times may explain less.
"""


class Usage(NamedTuple):
    """CPU share of a TaskManager, and its usage during the measurement."""

    share: CpuShare
    kinds: Mapping[str, float]  # cores by kind of thread


class Present(NamedTuple):
    """The measured layout."""

    devices: Mapping[str, Sequence[str]]  # operator → TaskManagers of its subtasks, in order
    usage: Mapping[str, Usage]  # TaskManager → usage, if its threads can be read
    java: float | None  # cores that Java itself uses in each TaskManager; None if not measured
    # Bytes per second and cores of the network threads of TaskManagers that exchange tuples; empty
    # if unknown, or if other jobs may exchange tuples, too.
    network: Sequence[Observation] = ()
    # TaskManager → cores of the subtasks of other jobs.
    beside: Mapping[str, float] = MappingProxyType({})


class CpuOrigin(NamedTuple):
    """Source of the CPU of the operators of a profile."""

    words: str
    # Relative error of nine of ten operators (benchmarks/cpu_sources.py).
    error: float = 0.0

    def __str__(self) -> str:
        return f"{self.words}; off by up to ±{self.error:.0%}" if self.error else self.words


BY_REPORTER = CpuOrigin("reporter in each TaskManager", 0.05)
BY_DUMPS, RATED_DUMPS = CpuOrigin("thread dumps", 0.42), 100
"""Error of thread dumps, and the number of dumps of each TaskManager for which it was measured; it
falls with the root of the number."""
BY_BUSY_TIME = CpuOrigin("CPU of whole TaskManagers, divided by busy time", 1.8)


class LoadWindow(NamedTuple):
    """Rates and CPU of a job in one window of time."""

    seconds: float
    rate: float  # tuples/s of all sources
    cores: float  # core seconds per second of all tasks
    compilers: float = 0.0  # share of compilers in the CPU of TaskManagers with readable threads
    # Rate and CPU of the subtasks of each task whose threads were all measured.
    observations: Mapping[str, Sequence[Observation]] = MappingProxyType({})


def costs_of(windows: Iterable[LoadWindow]) -> list[float]:
    """Core seconds per tuple of the sources in each window with tuples."""
    return [window.cores / window.rate for window in windows if window.rate > 0]


class WaitingLimit(NamedTuple):
    """Limit of an operator that waits for something other than CPU."""

    rate: float  # maximum tuples/s that a subtask reads
    part: float  # waiting share of its busy time


@dataclass(frozen=True, slots=True)
class JobProfile:
    """Measurements of a job."""

    name: str
    tasks: Sequence[FlinkTask]
    edges: Sequence[Edge]
    activity: Mapping[str, Activity]
    cpu: Mapping[str, TaskCpu]  # core seconds per second of each task, by id
    # Tuples/s that each task reads, or generates if it is a source.
    tuples: Mapping[str, float]
    flow: SourceFlow  # rates and lag of its sources
    present: Present  # its placement, and the CPU usage of its TaskManagers
    origin: CpuOrigin  # of ``cpu``
    # Sentences on missing measurements, in one list that all copies share. The attribute
    # ``unmeasured`` of the graph lacks sentences on the cluster, which are added after it;
    # `Measurement.notes` has all.
    doubts: list[str] = field(default_factory=list)
    windows: Sequence[LoadWindow] = ()  # windows of this profile; empty if there is only one
    drift: float = 0.0  # relative change of its CPU per tuple that may follow; 0 if it is steady
    shares: Shares = field(default_factory=dict)  # uneven shares of subtasks in tuples
    # Seconds after which Flink sends partly filled buffers; None if it sends only full ones.
    buffer_timeout: float | None = DEFAULT_BUFFER_TIMEOUT
    # Rate and CPU of the subtasks of each task whose threads were all measured, by its id.
    observations: Mapping[str, Sequence[Observation]] = field(default_factory=dict)
    # Operator → observations of layouts that were measured before.
    earlier: Observed = field(default_factory=dict)
    # Task → limit, for tasks that are known to wait.
    waiting: Mapping[str, WaitingLimit] = field(default_factory=dict)
    # Task → its subtasks, with the increase of their counters, and their CPU.
    subtasks: Mapping[str, Sequence[tuple[RunningSubtask, TaskCpu]]] = field(default_factory=dict)
    # TaskManager → share of the time for which its quota has stopped it, if known.
    throttled: Mapping[str, float] = field(default_factory=dict)

    @property
    def observed(self) -> dict[str, list[Observation]]:
        """Operator → rates and CPU of its subtasks, in the windows of all layouts.

        The windows of a job that is not steady count as one: its tuples become cheaper while rates
        grow, which would resemble a constant load.
        """
        windows = [window.observations for window in self.windows] if not self.drift else []
        operators = {
            task.name: [*self.earlier.get(task.name, ())]
            + [row for window in windows or [self.observations] for row in window.get(task.id, ())]
            for task in self.tasks
        }
        network = [*self.earlier.get(NETWORK_KEY, ()), *self.present.network]
        return {**operators, NETWORK_KEY: network}

    @property
    def sending(self) -> SendingCost | None:
        """Cost of remote tuples in all layouts; None if it was not measured in any of them."""
        return sending_cost(self.observed[NETWORK_KEY])

    @property
    def constant(self) -> dict[str, float]:
        """Cores of each task, by id, that do not depend on the rate.

        All CPU of a committer is constant: it reads about one message per checkpoint.
        """
        observed = self.observed
        return {
            task.id: self.cpu[task.id].cores
            if task.operators[0].endswith(COMMITTERS)
            else constant_cores(
                self.cpu[task.id].cores, self.tuples[task.id], observed[task.name], task.parallelism
            )
            for task in self.tasks
        }

    @property
    def sources(self) -> list[FlinkTask]:
        """Tasks without input from others."""
        return sources_of(self.tasks, self.edges)

    @property
    def used(self) -> dict[str, float]:
        """TaskManager on this machine → cores that it uses."""
        return {device: sum(usage.kinds.values()) for device, usage in self.present.usage.items()}

    @property
    def java(self) -> float | None:
        """Cores that Java itself uses in each TaskManager; None if that is not measured."""
        return self.present.java

    def check_sources(self) -> None:
        """Raise FlinkError if no source sends."""
        silent = [source.name for source in self.sources if not self.tuples[source.id]]
        if len(silent) == len(self.sources):
            raise FlinkError(
                f"source {listed(silent)} sent nothing that Flink has counted: it updates its "
                "metrics once per metrics.fetcher.update-interval, and after the loss of a "
                "TaskManager not for up to web.timeout; profile while data flows, or for longer "
                "(seconds in --settings)"
            )


def profile(rest: Rest, job: str, seconds: float) -> JobProfile:
    """Measure a running job for about ``seconds``.

    CPU time is that of the tasks' threads if their TaskManagers run on this machine. Otherwise the
    CPU of TaskManager processes is divided by thread dumps, or by Flink's busy time.
    """
    windows = JobWindows(rest, job)
    windows.add(seconds)
    return profile_of(windows)


def profile_of(windows: JobWindows, number: int = 1) -> JobProfile:
    """Profile of a job from the last ``number`` of its windows together."""
    interval, tasks, edges = windows.last(number), windows.tasks, windows.edges
    _refuse_ended(windows)
    subtasks = {task: [subtask for subtask, _ in rows] for task, rows in interval.subtasks.items()}
    cpu = {task.id: _task_cpu(interval, task) for task in tasks}
    present = present_of(windows.job, tasks, edges, interval, windows.processes, windows.pools)
    starved = {
        device
        for device, usage in present.usage.items()
        if is_starved(interval.throttled.get(device, 0.0), is_full=usage.share.is_full)
    }
    is_python = bool(windows.devices & windows.processes.keys()) and runs_python()
    doubts = [*_doubts(windows, interval, cpu, is_python=is_python)]
    doubts += [
        Remedy(f"the threads that the reporter of {shown(device)} shows used another CPU than it")
        for device in interval.inconsistent
    ]
    origin = _origin(interval, cpu, windows.pools)
    if origin.error and not windows.devices <= windows.processes.keys() | windows.pools.keys():
        doubts.append(f"{ESTIMATED} {jar_path()}")
    flow = together(_source_flow(task, interval, present) for task in sources_of(tasks, edges))
    arrived = {source: _arrived(flows) for source, flows in interval.flows.items()}
    return JobProfile(
        windows.name,
        tasks,
        edges,
        interval.activity,
        cpu,
        interval.tuples,
        flow,
        present,
        origin,
        doubts,
        shares=key_shares(tasks, edges, subtasks, arrived),
        buffer_timeout=windows.buffer_timeout,
        observations=_observations(windows, interval, is_limited=flow.is_limited),
        # with Python, the threads of tasks wait for Python's processes
        waiting={} if is_python else _waiting_limits(tasks, interval, starved),
        subtasks=interval.subtasks,
        throttled=interval.throttled,
    )


def _task_cpu(interval: JobInterval, task: FlinkTask) -> TaskCpu:
    """CPU of a task, with the least accurate source of its subtasks."""
    if task.has_ended:
        return TaskCpu(0.0)
    subtasks = [cpu for _, cpu in interval.subtasks.get(task.id, ())]
    source = max((cpu.source for cpu in subtasks), key=SOURCES_OF_CPU.index, default=UNKNOWN)
    busiest = sum((cpu.busiest for cpu in subtasks), 0.0)
    return TaskCpu(sum((cpu.cores for cpu in subtasks), 0.0), source, busiest=busiest)


def _origin(
    interval: JobInterval, cpu: Mapping[str, TaskCpu], reported: Collection[str]
) -> CpuOrigin:
    """Origin of the CPU of all tasks, and its error: that of the least accurate source."""
    source = max((task.source for task in cpu.values()), key=SOURCES_OF_CPU.index)
    if source in (MEASURED, SHARED):
        return BY_REPORTER if reported else CpuOrigin("threads on this machine")
    if source == OF_PROCESS:
        return BY_BUSY_TIME
    if source != SAMPLED:
        return BY_BUSY_TIME._replace(words="busy time")
    estimated = [manager for manager in interval.cluster.loads.values() if manager.dumps]
    threads = [thread for manager in estimated for thread in manager.threads]
    native = sum(thread.cores for thread in threads if thread.name == NATIVE)
    number = min(manager.dumps for manager in estimated)
    error = max(
        BY_DUMPS.error * max(1.0, math.sqrt(RATED_DUMPS / number)),
        native / sum(thread.cores for thread in threads),
    )
    return CpuOrigin(f"{counted(number, 'thread dump')} of each TaskManager", error)


def _refuse_ended(windows: JobWindows) -> None:
    """Raise FlinkError if a source has ended, because its rate is no longer valid."""
    vertices = windows.rest.job(windows.job)["vertices"]
    ended = {row["id"] for row in vertices if row.get("status") == FINISHED}
    for task in windows.tasks:
        if task.id in windows.generated and task.id in ended and not task.has_ended:
            raise FlinkError(
                f"source {quoted(task.name)} has ended while the job was measured; measure it again"
            )


def _observations(
    windows: JobWindows, interval: JobInterval, *, is_limited: bool
) -> dict[str, list[Observation]]:
    """Rate and CPU of the subtasks of each task whose threads are all known, by its id."""
    loads = {}
    for task, rows in interval.subtasks.items():
        is_source = task in windows.generated
        counts = [subtask.wrote if is_source else subtask.read for subtask, _ in rows]
        if all(cpu.source in PER_THREAD for _, cpu in rows) and sum(counts) > 0:
            rate = interval.tuples.get(task, 0.0) / sum(counts)  # per counted tuple
            loads[task] = [
                Observation(rate * count, cpu.cores, cpu.wakes, float(is_limited))
                for count, (_, cpu) in zip(counts, rows, strict=True)
            ]
            if any(cpu.source == SAMPLED for _, cpu in rows):  # only their mean is accurate
                loads[task] = [Observation(*np.mean(loads[task], axis=0).tolist())]
    return loads


def _arrived(subtasks: Sequence[SubtaskFlow]) -> list[float]:
    """Tuples that show the shares of the subtasks of a source in its input.

    If no subtask drains a backlog, each reads its present input. Otherwise, all tuples that ever
    arrived count, although their shares may have been different.
    """
    if any(flow.is_draining for flow in subtasks):
        return [flow.arrived for flow in subtasks]
    return [flow.rate * flow.seconds for flow in subtasks]


def _source_flow(source: FlinkTask, interval: JobInterval, present: Present) -> SourceFlow:
    """Flow of a source, with the CPU of its TaskManagers."""
    if source.has_ended:
        return SourceFlow(0.0, keeps_up=True, name=source.name)
    usage, devices = present.usage, {*present.devices[source.name]}
    return flow_of(
        source.name,
        source.operators[0],
        interval.activity[source.id],
        source.parallelism,
        full=sorted(d for d in devices & usage.keys() if usage[d].share.is_full),
        sees_cpu=all(d in usage and usage[d].share.shows_full_threads for d in devices),
        subtasks=interval.flows.get(source.id, ()),
        partitions=interval.partitions.get(source.id, 0),
    )


def _waiting_limits(
    tasks: Sequence[FlinkTask], interval: JobInterval, starved: Set[str]
) -> dict[str, WaitingLimit]:
    """Limits of the tasks that certainly wait for something other than CPU, by id.

    The equations are those of docs/explanation/flink-measurement.md, for the sums over the subtasks
    of a task. A thread that is woken by input is idle for Flink until it gets a core, so a part of
    the run delay may not belong to the busy time. Waiting is then longer, and the limit lower, than
    computed.

    Garbage collection stops threads for no longer than the collecting threads run, or wait for a
    core. On starved TaskManagers, a thread may wait for CPU: stops by a quota are no run delay.
    """
    pauses = {
        device: sum(load.cores + load.delay for load in loads if kind_of(load.name) == GARBAGE)
        if source == MEASURED
        else sum(load.cores for load in loads if load.name == NATIVE)
        for device, (loads, source, _) in interval.cluster.loads.items()
    }
    limits = {}
    for task in tasks:
        activity, rows = interval.activity[task.id], interval.subtasks.get(task.id, ())
        threads = [cpu.thread for _, cpu in rows if cpu.thread is not None]
        if activity.busy is None or activity.records_in <= 0 or not 0 < len(rows) == len(threads):
            continue
        if any(subtask.device in starved for subtask, _ in rows):
            continue
        busy = activity.busy - sum(thread.delay for thread in threads)
        waiting = busy - sum(thread.cores for thread in threads)
        paused = sum(pauses.get(subtask.device, math.nan) for subtask, _ in rows)
        if waiting - paused >= max(MIN_WAITING_SHARE * busy, MIN_WAITING * task.parallelism):
            rate = float(f"{activity.records_in / busy:.3g}")
            limits[task.id] = WaitingLimit(rate, waiting / activity.busy)
    return limits


def present_of(
    job: str,
    tasks: Sequence[FlinkTask],
    edges: Sequence[Edge],
    interval: JobInterval,
    processes: Mapping[str, int],
    reported: Mapping[str, CpuPool] = MappingProxyType({}),
) -> Present:
    """Layout of a job, and CPU usage of its TaskManagers, as by `cpu_shares`."""
    subtasks = sorted(subtask for subtask in interval.cluster.subtasks if subtask.job == job)
    devices = {
        task.id: [subtask.device for subtask in subtasks if subtask.vertex == task.id]
        for task in tasks
    }
    if any(len(devices[task.id]) != task.parallelism for task in tasks):
        raise FlinkError("Flink does not say where all subtasks run; measure again")
    kinds, sampled = interval.cluster.kinds, interval.cluster.sampled
    used = {device: sum(kinds[device].values()) for device in sampled}
    shares = cpu_shares(processes, used, reported)
    flows = remote_flows(tasks, edges, interval.activity, devices)
    others = {(row.job, row.device) for row in interval.cluster.subtasks if row.job != job}
    are_spread = len(others) > len({name for name, _ in others})
    if are_spread or not flows.keys() <= kinds.keys():
        flows = {}  # the threads that send and receive serve all jobs
    network = {device: cores.get(NETWORK, 0.0) for device, cores in kinds.items()}
    return Present(
        {task.name: devices[task.id] for task in tasks},
        {device: Usage(shares[device], kinds[device]) for device in sampled},
        java_itself(kinds.values()) if kinds else None,
        network_loads(network, flows, {d for d in sampled if shares[d].is_full}),
        interval.cluster.cores_beside(job),
    )


def _doubts(
    windows: JobWindows, interval: JobInterval, cpu: Mapping[str, TaskCpu], *, is_python: bool
) -> Iterator[str]:
    """Sentences on missing and on inconsistent measurements."""
    for task in windows.tasks:
        ended = sum(subtask.has_ended for subtask, _ in interval.subtasks.get(task.id, ()))
        number, expected = interval.activity[task.id].reporting, task.parallelism - ended
        if 0 < number < expected:
            yield Remedy(
                f"rate and ipt of {task.name}: wrong, because Flink reports the metrics of only "
                f"{number} of {expected} subtasks; check whether the JobManager reaches "
                "metrics.internal.query-service.port of all TaskManagers"
            )
    for task in windows.tasks:
        if (source := cpu[task.id].source) not in PER_THREAD:
            yield f"ipt of {task.name}: {source}"
    yield from map(Remedy, (*windows.reporters.doubts.values(), *windows.dumps.doubts.values()))
    if names := [task.name for task in windows.tasks if task.has_ended]:
        yield f"rate and ipt of {listed(names)}: counted as 0, because all input has been read"
    yield from _doubts_on_operators(windows, interval)
    cluster = interval.cluster
    far = {subtask.job for subtask in cluster.subtasks if subtask.device not in cluster.loads}
    for other in sorted(far - {windows.job}):
        yield (
            f"CPU of job {shown(other)} beside this one: counted as 0, because threads of its "
            "TaskManagers cannot be read here"
        )
    if is_python:
        yield UNMEASURED_PYTHON
    full = [
        device
        for device, cores in cluster.kinds.items()
        if cores.get(GARBAGE, 0.0) > cores.get(TASKS, math.inf)
    ]
    if full:
        yield Remedy(
            f"on {listed(sorted(full))}, garbage collection takes more CPU than the tasks: the "
            "heap is nearly full; raise taskmanager.memory.process.size"
        )


def _doubts_on_operators(windows: JobWindows, interval: JobInterval) -> Iterator[str]:
    """Doubts about operators that share a name, or that read nothing."""
    if unsure := [name for task in windows.tasks for name in task.unsure]:
        yield Remedy(
            f"{listed(unsure)}: operators of the same name cannot be distinguished, so a placement "
            "may swap them; name() in the program gives each a name of its own"
        )
    silent = [
        task.name
        for task in windows.tasks
        if not (task.has_ended or task.operators[0].endswith(COMMITTERS))
        and interval.activity[task.id].rates.get("numRecordsIn") == 0
        and task.id not in windows.generated
    ]
    if silent:
        yield Remedy(
            f"{listed(silent)}: read nothing while it was measured, so its costs per tuple are "
            "unknown and count as 0; where windows fire rarely, measure for longer (seconds in "
            "--settings)"
        )


LOG = logging.getLogger(__name__)
STEADY_SECONDS, MIN_WINDOWS = 20.0, 4
"""Time, and number of windows, over which a job must be steady."""
MAX_STEADY_CHANGE = 0.05
"""Maximum relative change of a steady job over that time."""
MAX_NOISE = 0.3
"""Maximum relative change that may count as noise; a steady job does not vary by more."""
MAX_COMPILERS = 0.15
"""Maximum share of Java's compilers in the CPU of warm TaskManagers."""
MIN_COMPILERS = 0.02
"""Minimum CPU of compilers that counts, as a share of the CPU limits of TaskManagers.

In a job with a low load they continue for minutes, partly with code that serves the profiler.
"""


def steady_profile(
    rest: Rest, job: str, seconds: float, patience: float = PATIENCE_SECONDS
) -> JobProfile:
    """Measure a running job until it is steady; return its profile of all windows since then.

    ``seconds``: length of a window.
    ``patience``: maximum seconds until the job is steady; after it, the ``drift`` of the profile is
    the change to be expected. 0 for a single window.
    """
    windows = JobWindows(rest, job)
    loads: list[LoadWindow] = []
    began = time.monotonic()
    while True:
        windows.add(seconds)
        profile = profile_of(windows)
        if not any(source.back_pressured for source in profile.flow.sources.values()):
            profile.check_sources()  # a back-pressured source may send in the next window
        loads.append(window_of(profile))
        last = _last_windows(loads)
        waited = time.monotonic() - began
        reason = why_unsteady(last)
        is_enough = len(loads) >= MIN_WINDOWS or not patience
        if not reason or (waited >= patience and is_enough):
            break
        LOG.debug("not steady after %.0f s: %s", waited, reason)
    profile = replace(profile_of(windows, len(last)), windows=tuple(last))
    if not reason:
        return profile
    costs, measured = costs_of(last), sum(window.seconds for window in last)
    is_known = len(costs) >= MIN_WINDOWS and any(costs)
    drift = (max(costs) - min(costs)) / mean(costs) if is_known else math.inf
    profile.doubts.append(
        Remedy(
            f"the job was not steady after {waited:.0f} s: {reason}. Its CPU per tuple varied by "
            f"{drift:.0%} in the last {measured:.0f} s; intervals allow for that"
        )
    )
    return replace(profile, drift=drift)


def window_of(profile: JobProfile) -> LoadWindow:
    """Rates and CPU of a profile of one window."""
    compilers, usage = 0.0, profile.present.usage
    cores = sum(manager.kinds.get(COMPILERS, 0.0) for manager in usage.values())
    if cores > MIN_COMPILERS * sum(manager.share.limit for manager in usage.values()):
        compilers = cores / sum(profile.used.values())
    return LoadWindow(
        max((activity.seconds for activity in profile.activity.values()), default=0.0),
        sum(profile.tuples[source.id] for source in profile.sources),
        sum(cpu.cores for cpu in profile.cpu.values()),
        compilers,
        profile.observations,
    )


def _last_windows(windows: Sequence[LoadWindow]) -> list[LoadWindow]:
    """The last windows over which a job must be steady; all windows if they are too few."""
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
    is_noise = abs(change) <= RATE_ERRORS * error and abs(change) <= MAX_NOISE
    return 0.0 if abs(change) <= MAX_STEADY_CHANGE or is_noise else change
