"""CPU of each task of a job, from the most exact source that is available for each subtask."""

import math
import time
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import quote

from streamplace.engines.flink.cpu.threads import (
    JavaThread,
    ThreadLoad,
    java_threads,
    shares_of_helpers,
    spent_between,
    threads_again,
)
from streamplace.engines.flink.measure.sampling import Activity
from streamplace.engines.flink.rest.client import FINISHED, FlinkError, NoAnswer, Rest

PROCESS_CPU = "Status.JVM.CPU.Time"
"""Metric of a TaskManager: nanoseconds of CPU of all its threads."""
MEASURED = ""
SHARED = (
    "from the CPU of threads with the same name, divided in proportion to busy time; give "
    "operators different names"
)
OF_PROCESS = (
    "from the CPU of whole TaskManagers, whose threads cannot be read here, divided in proportion "
    "to busy time"
)
BUSY = "from busy time, which includes waiting for a core and can be many times too high"
UNKNOWN = "unknown and counted as 0, because Flink does not report its busy time"
PATIENCE_SECONDS, POLL_SECONDS = 5.0, 0.2
_WORST = (MEASURED, SHARED, OF_PROCESS, BUSY, UNKNOWN)
_COUNTED = {
    "busy": "accumulated-busy-time",
    "read": "read-records",
    "wrote": "write-records",
    "idle": "accumulated-idle-time",
    "blocked": "accumulated-backpressured-time",
}
"""Fields of a subtask that grow → their names in Flink's answer."""
_TOLD = "read-records-complete"
WRITER = ": Writer"
"""End of the name that Flink gives the operator of a sink that writes."""
Key = tuple[str, str, int]
"""Job, vertex and index of a subtask."""


class RunningSubtask(NamedTuple):
    """A subtask and its device."""

    job: str
    vertex: str
    number: int
    device: str
    thread: str  # name of its thread
    busy: float  # its busy time in milliseconds; NaN if Flink does not report it
    # Numbers of tuples that it has read and sent; NaN if Flink does not report them.
    read: float = math.nan
    wrote: float = math.nan
    # Milliseconds in which it had no input, and was back-pressured; NaN if not reported.
    idle: float = math.nan
    blocked: float = math.nan
    has_ended: bool = False  # whether it has read all of its input
    is_told: bool = True  # whether Flink has fetched its metrics

    @property
    def key(self) -> Key:
        """Job, vertex and index."""
        return self.job, self.vertex, self.number


class TaskCpu(NamedTuple):
    """Core seconds per second of a task, and their source if not measured by thread."""

    cores: float
    source: str = MEASURED
    # Load of the thread of a subtask alone, without helpers; None if it is not known which it is.
    thread: ThreadLoad | None = None


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """State of the cluster's subtasks, and of the threads of its processes on this machine."""

    subtasks: Sequence[RunningSubtask]
    threads: Mapping[str, list[JavaThread]]
    unread: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ClusterInterval:
    """Changes between two snapshots."""

    # Subtasks of all jobs; times and numbers of tuples are the increase of these.
    subtasks: Sequence[RunningSubtask]
    # TaskManager on this machine → CPU of its threads; without those whose threads cannot be read.
    loads: Mapping[str, list[ThreadLoad]]
    # Threads of tasks without input from others, and of those that write to a sink, with the number
    # of their records.
    sources: Mapping[str, float] = field(default_factory=dict)
    sinks: Mapping[str, float] = field(default_factory=dict)
    # Other jobs that are left out, because they could not be read.
    unread: frozenset[str] = frozenset()


def snapshot(
    rest: Rest,
    job: str,
    processes: Mapping[str, int],
    before: ClusterSnapshot | None = None,
) -> ClusterSnapshot:
    """Take a snapshot of a cluster, once Flink reports the devices of the job's subtasks.

    The first one also waits for their metrics: what a subtask has counted since its start would
    else seem to be new in the next one.

    ``before``: an earlier snapshot of the same processes.
    """

    def is_known(one: RunningSubtask) -> bool:
        return bool(one.device) and (one.is_told or before is not None)

    deadline = time.monotonic() + PATIENCE_SECONDS
    while not all(map(is_known, _subtasks(rest, job))) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    subtasks, unread = list[RunningSubtask](), set[str]()
    for other in rest.live_jobs():
        try:
            subtasks += _subtasks(rest, other)
        except FlinkError as error:
            if other == job or isinstance(error, NoAnswer):
                raise
            unread.add(other)
    earlier = {} if before is None else before.threads

    def threads(device: str) -> list[JavaThread]:
        pid = processes[device]
        return threads_again(pid, earlier.get(device, ())) or java_threads(pid)

    with ThreadPoolExecutor(max(1, len(processes))) as pool:  # Java may take seconds to answer
        return ClusterSnapshot(
            subtasks,
            dict(zip(processes, pool.map(threads, processes), strict=True)),
            frozenset(unread),
        )


def between(
    first: ClusterSnapshot, second: ClusterSnapshot, sources: Container[str]
) -> ClusterInterval:
    """Changes between two snapshots, of everything that is in both.

    ``sources``: vertices without input from others.
    """
    before = {one.key: one for one in first.subtasks}
    subtasks = [
        one._replace(  # NaN stays NaN
            **{
                name: max(getattr(one, name) - getattr(before[one.key], name), 0.0)
                for name in _COUNTED
            }
        )
        for one in second.subtasks
        if one.key in before
    ]
    loads = {
        device: spent_between(before_it, threads)
        for device, threads in second.threads.items()
        if threads and (before_it := first.threads.get(device))
    }
    return ClusterInterval(
        subtasks,
        loads,
        {one.thread: one.wrote for one in subtasks if one.vertex in sources},
        {
            one.thread: one.read if one.read > 0 else one.wrote
            for one in subtasks
            if WRITER in one.thread
        },
        first.unread | second.unread,
    )


def _subtasks(rest: Rest, job: str) -> list[RunningSubtask]:
    subtasks = []
    for vertex in rest.job(job)["vertices"]:
        path = f"/jobs/{quote(job, safe='')}/vertices/{quote(vertex['id'], safe='')}"
        for i, row in enumerate(rest.get(path)["subtasks"]):
            index = row.get("subtask", i)
            number = f"({index + 1}/{vertex['parallelism']})#{row.get('attempt', 0)}"
            device = str(row.get("taskmanager-id") or "")
            metrics = row.get("metrics", {})
            thread = f"{vertex['name']} {number}"
            counts = {name: _number(metrics.get(key)) for name, key in _COUNTED.items()}
            ended, told = row.get("status") == FINISHED, metrics.get(_TOLD) is not False
            if not told:
                counts |= {"read": math.nan, "wrote": math.nan}
            one = RunningSubtask(
                job, vertex["id"], index, device, thread, has_ended=ended, is_told=told, **counts
            )
            subtasks.append(one)
    return subtasks


def _number(value: float | str | None) -> float:
    try:
        return float(math.nan if value is None else value)
    except ValueError:
        return math.nan


def task_cpu(
    job: str,
    interval: ClusterInterval,
    activity: Mapping[str, Activity],
    processes: Mapping[str, float],
) -> dict[str, TaskCpu]:
    """CPU of every task of a job, by vertex.

    ``processes``: TaskManager → cores of its process, at least where its threads cannot be read.
    """
    parts: dict[str, list[TaskCpu]] = {vertex: [] for vertex in activity}
    for one, cpu in cpu_by_subtask(job, interval, activity, processes):
        parts[one.vertex].append(cpu)
    return {
        vertex: TaskCpu(
            sum(part.cores for part in own),
            max((part.source for part in own), key=_WORST.index, default=UNKNOWN),
        )
        for vertex, own in parts.items()
    }


def cores_beside(job: str, interval: ClusterInterval) -> dict[str, float]:
    """TaskManager on this machine → core seconds per second of the subtasks of other jobs."""
    threads = _by_thread(interval)
    taken: dict[str, float] = defaultdict(float)
    for one in interval.subtasks:
        if one.job != job and one.key in threads:
            taken[one.device] += threads[one.key].cores
    return dict(taken)


def cpu_by_subtask(
    job: str,
    interval: ClusterInterval,
    activity: Mapping[str, Activity],
    processes: Mapping[str, float],
) -> Iterator[tuple[RunningSubtask, TaskCpu]]:
    """CPU of every subtask of a job, from the most exact source."""
    threads, wholes = _by_thread(interval), _by_process(interval.subtasks, processes)
    for one, busy in _busy_cores(job, interval.subtasks, activity):
        if one.has_ended and not one.busy > 0:  # it ended before; busy time may be NaN
            yield one, TaskCpu(0.0, thread=ThreadLoad(0, one.thread, 0.0, 0.0))
        elif one.key in threads:
            yield one, threads[one.key]
        elif math.isnan(busy):
            yield one, TaskCpu(0.0, UNKNOWN)
        elif one.key in wholes:
            yield one, TaskCpu(min(busy, wholes[one.key]), OF_PROCESS)
        else:
            yield one, TaskCpu(busy, BUSY)


def _by_thread(interval: ClusterInterval) -> dict[Key, TaskCpu]:
    """CPU of the subtasks with measured threads, including their helper threads."""
    bearers: dict[tuple[str, str], list[RunningSubtask]] = defaultdict(list)
    for one in interval.subtasks:
        if not one.has_ended:
            bearers[one.device, one.thread].append(one)
    cpu: dict[Key, TaskCpu] = {}
    own: dict[str, dict[str, float]] = {}
    for device, loads in interval.loads.items():
        threads: dict[str, list[ThreadLoad]] = defaultdict(list)
        for load in loads:
            if (device, load.name) in bearers:
                threads[load.name].append(load)
        own[device] = {name: sum(load.cores for load in same) for name, same in threads.items()}
        for name, same in threads.items():
            cpu |= _of_one_name(same, bearers[device, name])
    more = shares_of_helpers(interval.loads, own, interval.sources, interval.sinks)
    where = {one.key: (one.device, one.thread) for one in interval.subtasks}
    return {
        key: one._replace(cores=one.cores * _raised(own, more, *where[key]))
        for key, one in cpu.items()
    }


def _raised(
    own: Mapping[str, Mapping[str, float]],
    more: Mapping[str, Mapping[str, float]],
    device: str,
    thread: str,
) -> float:
    """Factor by which helper threads increase the CPU of a thread."""
    cores = own[device][thread]
    return (cores + more[device][thread]) / cores if cores > 0 else 1.0


def _of_one_name(
    threads: Sequence[ThreadLoad], bearers: Sequence[RunningSubtask]
) -> dict[Key, TaskCpu]:
    """CPU of the subtasks on a TaskManager whose threads have the same name, as in other jobs."""
    if len(threads) != len(bearers):
        return {}
    if len(threads) == 1:
        return {bearers[0].key: TaskCpu(threads[0].cores, thread=threads[0])}
    whole = sum(load.cores for load in threads)
    return {
        one.key: TaskCpu(whole * share, SHARED)
        for one, share in zip(bearers, _parts(bearers), strict=True)
    }


def _parts(subtasks: Sequence[RunningSubtask]) -> list[float]:
    """Share of each subtask in their total busy time; equal shares if that is unknown."""
    total = sum(one.busy for one in subtasks)
    if math.isnan(total) or total <= 0:
        return [1 / len(subtasks)] * len(subtasks)
    return [one.busy / total for one in subtasks]


def _by_process(
    subtasks: Iterable[RunningSubtask], processes: Mapping[str, float]
) -> dict[Key, float]:
    """CPU of TaskManager processes, divided among their subtasks."""
    there: dict[str, list[RunningSubtask]] = defaultdict(list)
    for one in subtasks:
        if one.device in processes and not math.isnan(one.busy):
            there[one.device].append(one)
    return {
        one.key: processes[device] * share
        for device, own in there.items()
        for one, share in zip(own, _parts(own), strict=True)
    }


def _busy_cores(
    job: str, subtasks: Iterable[RunningSubtask], activity: Mapping[str, Activity]
) -> Iterator[tuple[RunningSubtask, float]]:
    """Subtasks of a job with the busy seconds per second of each; NaN if unknown."""
    vertices: dict[str, list[RunningSubtask]] = defaultdict(list)
    for one in subtasks:
        if one.job == job and one.vertex in activity:
            vertices[one.vertex].append(one)
    for vertex, own in vertices.items():
        busy = activity[vertex].busy
        for one, share in zip(own, _parts(own), strict=True):
            yield one, math.nan if busy is None else busy * share
