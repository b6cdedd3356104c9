"""Windows: a running job in adjacent intervals of time, whose measurements can be combined.

They also tell what limits operators that wait for something other than CPU.

A subtask that sleeps, waits for an answer or a disk, or has as many asynchronous requests under way
as it may have, reads no further tuples meanwhile: Flink counts it as busy, and its thread takes no
CPU. Per second, the threads of a task wait

    waiting = busy - CPU - run delay

seconds for something other than CPU. If that is most of what is left of the busy time without the
run delay, the operator is limited by waiting, and a subtask reads at most

    max_rate = tuples/s / (busy - run delay)

whatever CPU it has, because it is busy for one second per second at most. All quantities are sums
over the subtasks.

A thread that is woken by input is idle for Flink until it gets a core, so a part of the run delay
may not belong to the busy time. Waiting is then longer, and the limit lower, than computed: what is
found is certain.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite, nan
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import quote, unquote

from streamplace.engines.flink.cpu.task_cpu import (
    MEASURED,
    PROCESS_CPU,
    ClusterInterval,
    ClusterSnapshot,
    RunningSubtask,
    TaskCpu,
    between,
    cpu_by_subtask,
    snapshot,
    task_cpu,
)
from streamplace.engines.flink.cpu.threads import GARBAGE, ThreadLoad, kind_of, processes_of
from streamplace.engines.flink.measure.fit import Observation
from streamplace.engines.flink.measure.sampling import (
    IDLE,
    Activity,
    Sampler,
    pending_of,
    restarted,
    sent_by,
)
from streamplace.engines.flink.measure.sources import SubtaskFlow
from streamplace.engines.flink.rest.client import Refusal, Rest
from streamplace.engines.flink.rest.plan import FlinkTask, JobPlan, read_plan, sources_of
from streamplace.engines.flink.rest.settings import buffer_settings
from streamplace.model.units import digits

LEAST_PART = 0.5
"""Minimum part of waiting in the busy time without run delay.

Below it, the CPU alone predicts the limit of a subtask within a factor of two.
"""
LEAST_WAITING = 0.1
"""Minimum of waiting in seconds per second and subtask.

Less may be due to locks and page faults, or to counters and threads that are read at different
times.
"""


class ThreadTimes(NamedTuple):
    """Seconds per second of the threads of a task, without their helpers; NaN if unknown."""

    cpu: float
    delay: float  # run delay: they could run, and waited for a core
    paused: float  # maximum for which garbage collection stopped them


class WaitingLimit(NamedTuple):
    """Limit of an operator that waits."""

    rate: float  # tuples/s that a subtask reads at most
    part: float  # part of its busy time in which it waits for something other than CPU

    def __str__(self) -> str:
        return (
            f"it waits {100 * self.part:.0f} % of its busy time for something other than CPU: a "
            f"subtask reads at most {digits(self.rate, 3)} tuples/s"
        )


def thread_times(
    subtasks: Iterable[tuple[RunningSubtask, TaskCpu]], loads: Mapping[str, Sequence[ThreadLoad]]
) -> dict[str, ThreadTimes]:
    """Times of the threads of every task, by vertex.

    Garbage collection stops threads for no longer than the threads that collect run, or wait for a
    core.

    ``subtasks``: subtasks of a job with their CPU.
    ``loads``: TaskManager → loads of its threads.
    """
    pauses = {
        device: sum(one.cores + one.delay for one in own if kind_of(one.name) == GARBAGE)
        for device, own in loads.items()
    }
    times: dict[str, ThreadTimes] = {}
    for one, cpu in subtasks:
        before = times.get(one.vertex, ThreadTimes(0.0, 0.0, 0.0))
        thread = cpu.thread or ThreadLoad(0, one.thread, nan)
        times[one.vertex] = ThreadTimes(
            before.cpu + thread.cores,
            before.delay + thread.delay,
            before.paused + pauses.get(one.device, nan),
        )
    return times


def waiting_limit(task: FlinkTask, seen: Activity, times: ThreadTimes) -> WaitingLimit | None:
    """Limit of a task with inputs; None if waiting does not limit it, as far as is known.

    >>> task = FlinkTask("v1", "look up", "look up", 2, ("look up",))
    >>> seen = Activity({"numRecordsIn": 150.0, "accumulateBusyTimeMs": 1000.0}, 10.0)
    >>> waiting_limit(task, seen, ThreadTimes(cpu=0.1, delay=0.25, paused=0.0))
    WaitingLimit(rate=200.0, part=0.65)
    >>> waiting_limit(task, seen, ThreadTimes(cpu=0.5, delay=0.25, paused=0.0))
    """
    if seen.busy is None or seen.records_in <= 0:
        return None
    able = seen.busy - times.delay
    waiting = able - times.cpu
    least = max(LEAST_PART * able, LEAST_WAITING * task.parallelism)
    if not waiting - times.paused >= least:  # NaN is not, either
        return None
    return WaitingLimit(float(f"{seen.records_in / able:.3g}"), waiting / seen.busy)


LONGEST_PATH = 4000
"""Longest request in characters that is sent; Flink reads at most 4,096."""


class _Mark(NamedTuple):
    """State between two windows: threads of the cluster, and lag."""

    cluster: ClusterSnapshot
    pending: Mapping[str, Sequence[float]]  # source → tuples that wait for each of its subtasks


@dataclass(frozen=True, slots=True)
class JobInterval:
    """Measurements of a job in an interval of time."""

    activity: Mapping[str, Activity]  # metrics of each task
    managers: Mapping[str, Activity]  # metrics of its TaskManagers
    interval: ClusterInterval  # CPU of the threads of the TaskManagers on this machine
    # Source → tuples that waited for each of its subtasks at both ends; without those that do not
    # report it.
    pending: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)


class LoadWindow(NamedTuple):
    """Rates and CPU of the tasks of a job in one window of time, by their ids."""

    seconds: float
    tuples: Mapping[str, float]  # tuples/s that each task processed
    cores: Mapping[str, float]  # core seconds per second of each task
    # Part of the CPU of the TaskManagers on this machine that compilers used; None if there are no
    # such TaskManagers.
    compilers: float | None = None
    # Rate and CPU of the subtasks of each task whose threads were all measured.
    subtasks: Mapping[str, Sequence[Observation]] = MappingProxyType({})


class JobWindows:
    """A running job, measured window by window.

    Tasks that have ended before are not measured: they count as idle.

    ``of_managers``: metrics to read of all TaskManagers of the job.
    ``plan``: its plan, if it was already read.
    """

    def __init__(
        self,
        rest: Rest,
        job: str,
        of_managers: Sequence[str] = (),
        plan: JobPlan | None = None,
    ) -> None:
        self.rest, self.job = rest, job
        self.name, self.tasks, self.edges = plan or read_plan(rest, job)
        sources = sources_of(self.tasks, self.edges)
        self.generated = {task.id: sent_by(task.operators[0]) for task in sources}
        """Source → metric that counts its output, even if it is fused to other operators."""
        self.processes = processes_of(rest)
        """TaskManager of the cluster on this machine → process."""
        self.buffers = buffer_settings(rest)
        """Network buffers of the cluster."""
        self._marks = [self._mark(None)]
        running = {task.id for task in self.tasks if not task.has_ended}
        subtasks = self._marks[0].cluster.subtasks
        own = (one for one in subtasks if one.job == job and one.vertex in running)
        self.devices = {one.device for one in own if one.device and not one.has_ended}
        """TaskManagers on which tasks of the job run."""
        self._sampler = Sampler(
            rest,
            job,
            [task.id for task in self.tasks if task.id in running],
            {task.id: (self.generated[task.id], pending_of(task.operators[0])) for task in sources},
            {
                device: (PROCESS_CPU, *of_managers)
                for device in self.devices
                if of_managers or not self._marks[0].cluster.threads.get(device)
            },
        )

    @property
    def number(self) -> int:
        """Number of completed windows."""
        return len(self._marks) - 1

    def add(self, seconds: float) -> None:
        """Measure one more window of at least ``seconds``."""
        self._sampler.watch(seconds)
        self._marks.append(self._mark(self._marks[-1].cluster))
        self._check_same_subtasks()

    def last(self, number: int = 1) -> JobInterval:
        """Measurements of the last ``number`` windows together."""
        end = self.number
        start = end - number
        activity, managers = self._sampler.between(start, end)
        return JobInterval(
            {task.id: IDLE if task.has_ended else activity[task.id] for task in self.tasks},
            managers,
            self._interval(start, end),
            {
                source: list(zip(first, second, strict=True))
                for source, first in self._marks[start].pending.items()
                if len(second := self._marks[end].pending.get(source, ())) == len(first)
            },
        )

    def cpu(self, seen: JobInterval) -> dict[str, TaskCpu]:
        """CPU of every task, by id."""
        ended = {task.id: TaskCpu(0.0) for task in self.tasks if task.has_ended}
        return task_cpu(self.job, seen.interval, seen.activity, _processes(seen)) | ended

    def thread_times(self, seen: JobInterval) -> dict[str, ThreadTimes]:
        """Times of the threads of every task, by id."""
        subtasks = cpu_by_subtask(self.job, seen.interval, seen.activity, {})
        return thread_times(subtasks, seen.interval.loads)

    def subtask_loads(
        self, seen: JobInterval, tuples: Mapping[str, float]
    ) -> dict[str, list[Observation]]:
        """Rate and CPU of the subtasks of each task whose threads were all measured, by its id.

        ``tuples``: tuples/s that each task processed, which its subtasks share as they counted.
        """
        parts: dict[str, list[tuple[float, TaskCpu]]] = defaultdict(list)
        for one, cpu in cpu_by_subtask(self.job, seen.interval, seen.activity, {}):
            parts[one.vertex].append((one.wrote if one.vertex in self.generated else one.read, cpu))
        loads = {}
        for task, own in parts.items():
            counted = sum(count for count, _ in own)
            if all(cpu.source == MEASURED for _, cpu in own) and counted > 0:
                rates = [tuples.get(task, 0.0) * count / counted for count, _ in own]
                cores = [cpu.cores for _, cpu in own]
                loads[task] = list(map(Observation, rates, cores))
        return loads

    def lags(self, seen: JobInterval, tuples: Mapping[str, float]) -> dict[str, list[SubtaskFlow]]:
        """Subtasks of the sources that report their lag, by task.

        ``tuples``: tuples/s that each source emits, which its subtasks share as they counted.
        """
        ends = {one.key: one for one in self._marks[-1].cluster.subtasks}
        answer = {}
        for source, pending in seen.pending.items():
            own = [one for one in seen.interval.subtasks if one.vertex == source]
            own = sorted(one for one in own if one.job == self.job)
            wrote = sum(one.wrote for one in own)
            whole = sum(ends[one.key].wrote for one in own)
            if len(own) != len(pending) or not (wrote > 0 and whole > 0):  # NaN is not, either
                continue
            # what leaves the chain of a source may be less, or more, than what it has read
            factor = tuples.get(source, 0.0) * seen.activity[source].seconds / wrote
            answer[source] = [
                SubtaskFlow(
                    tuples.get(source, 0.0) * one.wrote / wrote,
                    factor * ends[one.key].wrote + last,
                    (first, last),
                    seen.activity[source].seconds,
                )
                for one, (first, last) in zip(own, pending, strict=True)
            ]
        return answer

    def cores_by_device(self, seen: JobInterval) -> dict[str, float]:
        """TaskManager → core seconds per second of the subtasks of the job."""
        subtasks = cpu_by_subtask(self.job, seen.interval, seen.activity, _processes(seen))
        taken: dict[str, float] = defaultdict(float)
        for one, cpu in subtasks:
            taken[one.device] += cpu.cores
        return dict(taken)

    def _check_same_subtasks(self) -> None:
        """Raise FlinkError if a subtask began again, whose counters may hide it by growing fast."""
        before, after = (
            {one.key: one.thread for one in mark.cluster.subtasks if one.job == self.job}
            for mark in self._marks[-2:]
        )
        if before != after:
            self.rest.running_job(self.job)
            raise restarted(self.job)

    def _mark(self, before: ClusterSnapshot | None) -> _Mark:
        cluster = snapshot(self.rest, self.job, self.processes, before)
        running = [one for one in self.tasks if one.id in self.generated and not one.has_ended]
        return _Mark(cluster, {task.id: self._pending(task) for task in running})

    def _pending(self, source: FlinkTask) -> list[float]:
        """Tuples that wait for each subtask of a source; empty if no subtask reports any.

        That of Kafka reports none for a subtask that has never read a record.

        One request is for all subtasks, and Flink reads none that is longer than 4 kB.
        """
        metric = pending_of(source.operators[0])
        wanted = [quote(f"{i}.{metric}", safe="") for i in range(source.parallelism)]
        root = f"/jobs/{quote(self.job, safe='')}/vertices/{quote(source.id, safe='')}/metrics"
        path = f"{root}?get={','.join(wanted)}"
        if len(path) > LONGEST_PATH:
            return []
        try:
            told = {str(row["id"]): row.get("value", "nan") for row in self.rest.get(path)}
            numbers = [float(told.get(unquote(name), 0.0)) for name in wanted] if told else []
        except (Refusal, ValueError):
            return []
        return numbers if all(map(isfinite, numbers)) else []

    def _interval(self, start: int, end: int) -> ClusterInterval:
        first, second = self._marks[start].cluster, self._marks[end].cluster
        return between(first, second, self.generated)


def _processes(seen: JobInterval) -> dict[str, float]:
    """TaskManager → cores of its process, where Flink reports them."""
    return {
        device: own.rates[PROCESS_CPU] * 1e-9
        for device, own in seen.managers.items()
        if PROCESS_CPU in own.rates
    }
