"""A running job in adjacent windows of time: its metrics, the CPU of its threads, and its lag."""

import itertools
import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from urllib.parse import quote

from streamplace.flink.cpu.charging import (
    ClusterInterval,
    ClusterSnapshot,
    RunningSubtask,
    TaskCpu,
    cpu_by_subtask,
    thread_loads,
)
from streamplace.flink.cpu.limits import CpuPool, throttled_seconds
from streamplace.flink.cpu.remote import CpuReport, Reporters, ThreadDumps
from streamplace.flink.cpu.threads import as_number, processes_of, snapshot
from streamplace.flink.measure.sampling import (
    IDLE,
    PROCESS_CPU,
    Activity,
    Sampler,
    pending_of,
    restarted,
    sent_by,
    source_metrics,
    tuples_per_record,
)
from streamplace.flink.measure.source_lag import SubtaskFlow
from streamplace.flink.rest.client import Refusal, Rest, job_path
from streamplace.flink.rest.plan import FlinkTask, read_plan, sources_of
from streamplace.flink.rest.settings import buffer_timeout, shown_settings

_OFFSET = re.compile(r"(\d+)\.(.+)\.KafkaSourceReader\.topic\.(.+\.partition\.\d+)\.currentOffset")
"""Name of the offset that a subtask has of a partition of Kafka: subtask, source and partition."""
RELATIVE_TOLERANCE, CORES_TOLERANCE = 0.03, 0.02
"""Relative difference of the CPU of threads from that of their process which is an error, and its
least amount in cores: threads that have ended are in the latter alone."""
MAX_PATH = 4000
"""Longest request in characters that is sent; Flink reads at most 4,096."""


class _Mark(NamedTuple):
    """State between two windows: threads of the cluster, and lag."""

    moment: float
    cluster: ClusterSnapshot
    reports: Mapping[str, CpuReport]  # TaskManager → report of its reporter
    throttled: Mapping[str, float]  # TaskManager → seconds of stops by its quota
    pending: Mapping[str, Sequence[float]]  # source → records that wait for each of its subtasks
    # Source of Kafka → subtask → its partitions with their offsets.
    offsets: Mapping[str, Mapping[int, Mapping[str, float]]]


@dataclass(frozen=True, slots=True)
class JobInterval:
    """Measurements of a job in an interval of time."""

    activity: Mapping[str, Activity]  # metrics of each task
    cluster: ClusterInterval  # subtasks of all jobs, and threads of TaskManagers on this machine
    # Tuples/s that each task reads, or generates if it is a source.
    tuples: Mapping[str, float]
    # Task → its subtasks, in order, with their CPU.
    subtasks: Mapping[str, Sequence[tuple[RunningSubtask, TaskCpu]]]
    # Source → flow of each of its subtasks; only sources that report their backlog.
    flows: Mapping[str, Sequence[SubtaskFlow]] = field(default_factory=dict)
    # Source → its partitions of Kafka, if known.
    partitions: Mapping[str, int] = field(default_factory=dict)
    # TaskManager → share of the time for which its quota has stopped it, if known.
    throttled: Mapping[str, float] = field(default_factory=dict)
    # TaskManagers with different CPU of their reported threads and of their process.
    unlike: Sequence[str] = ()


class JobWindows:
    """A running job, measured window by window.

    Tasks that have ended before are not measured: they count as idle.
    """

    def __init__(self, rest: Rest, job: str) -> None:
        self.rest, self.job = rest, job
        self.name, self.tasks, self.edges = read_plan(rest, job)
        sources = sources_of(self.tasks, self.edges)
        self.generated = {task.id: sent_by(task.operators[0]) for task in sources}
        """Source → metric that counts its output, even if it is fused to other operators."""
        self.processes = processes_of(rest)
        """TaskManager of the cluster on this machine → process."""
        self.buffer_timeout = buffer_timeout(shown_settings(rest) or {})
        """Seconds after which a buffer is sent that is not full; None if only full ones are."""
        self.reporters = Reporters(rest)
        """Reporters of TaskManagers on other machines."""
        self._marks = [self._mark(None)]
        first = self._marks[0].cluster
        self.devices = self._devices(first)
        """TaskManagers on which tasks of the job run."""
        unread = [device for device in self.devices if not first.threads.get(device)]
        self.dumps = ThreadDumps(rest, unread)
        """Thread dumps of those of them whose threads cannot be read."""
        self._sampler = Sampler(
            rest,
            job,
            [task.id for task in self.tasks if not task.has_ended],
            {task.id: source_metrics(task.operators[0]) for task in sources},
            unread,
        )

    def add(self, seconds: float) -> None:
        """Measure one more window of at least ``seconds``."""
        self._sampler.measure(seconds, self.dumps.take)
        self._marks.append(self._mark(self._marks[-1]))
        before, after = (
            {own.key: own.thread for own in mark.cluster.subtasks if own.job == self.job}
            for mark in self._marks[-2:]
        )
        if before != after:  # counters of a subtask that began again may hide it by growing fast
            self.rest.running_job(self.job)
            raise restarted(self.job)

    def last(self, number: int = 1) -> JobInterval:
        """Measurements of the last ``number`` windows together."""
        end = len(self._marks) - 1
        first, last = self._marks[end - number], self._marks[end]
        sampled = self._sampler.between(end - number, end)
        activity = {task.id: IDLE if task.has_ended else sampled[task.id] for task in self.tasks}
        processes = {
            device: sampled[device].rates[PROCESS_CPU] * 1e-9
            for device in self.devices & sampled.keys()
            if PROCESS_CPU in sampled[device].rates
        }
        cluster = ClusterInterval.between(first.cluster, last.cluster, self.generated, processes)
        busy = {task: own.busy for task, own in activity.items()}
        tuples = {
            task: own.rates.get(self.generated[task], own.records_out)
            if task in self.generated
            else own.records_in
            for task, own in activity.items()
        }
        interval = JobInterval(activity, cluster, tuples, cpu_by_subtask(self.job, cluster, busy))
        return replace(
            interval,
            flows=self._flows(first, last, interval),
            partitions={source: sum(map(len, of.values())) for source, of in last.offsets.items()},
            throttled=_throttled(first, last),
            unlike=[*_unlike_processes(first.reports, last.reports)],
        )

    def _flows(
        self, first: _Mark, last: _Mark, interval: JobInterval
    ) -> dict[str, list[SubtaskFlow]]:
        """Flows of the subtasks of the sources that report their lag."""
        flows, seconds = {}, last.moment - first.moment
        operators = {task.id: task.operators[0] for task in self.tasks}
        for source, before in first.pending.items():
            after, by_subtask = last.pending.get(source, ()), last.offsets.get(source, {})
            own = [s for s in last.cluster.subtasks if (s.job, s.vertex) == (self.job, source)]
            sent = [subtask.wrote for subtask in sorted(own)]
            grown = [subtask.wrote for subtask, _ in interval.subtasks.get(source, ())]
            is_counted = sum(grown) > 0 and sum(sent) > 0  # NaN is not
            if not (is_counted and len(sent) == len(grown) == len(before) == len(after)):
                continue
            # the chain of a source may emit fewer tuples, or more, than the source has read
            rate = interval.tuples[source] / sum(grown)
            tuples = tuples_per_record(operators[source], interval.activity[source])
            offsets = [[*by_subtask.get(i, {}).values()] for i in range(len(sent))]
            if min(itertools.chain(*offsets), default=-1.0) >= 0:
                read = [tuples * sum(partitions) for partitions in offsets]
            else:  # an offset is -1 until a tuple of its partition was read
                read = [rate * interval.activity[source].seconds * count for count in sent]
            flows[source] = [
                SubtaskFlow(
                    rate * count, number + tuples * end, (tuples * begin, tuples * end), seconds
                )
                for count, number, begin, end in zip(grown, read, before, after, strict=True)
            ]
        return flows

    def _devices(self, cluster: ClusterSnapshot) -> set[str]:
        running = {task.id for task in self.tasks if not task.has_ended}
        return {
            subtask.device
            for subtask in cluster.subtasks
            if (subtask.job == self.job and subtask.vertex in running)
            and (subtask.device and not subtask.has_ended)
        }

    def _mark(self, before: _Mark | None) -> _Mark:
        cluster = snapshot(self.rest, self.job, self.processes, before and before.cluster)
        if before is not None:
            cluster = replace(cluster, dumps=self.dumps.counts())
        devices = self._devices(cluster) - self.processes.keys()
        reports = self.reporters.read(sorted(devices), before and before.reports)
        threads = {device: report.threads for device, report in reports.items()}
        cluster = replace(cluster, threads={**cluster.threads, **threads})
        running = [t for t in self.tasks if t.id in self.generated and not t.has_ended]
        pending = {task.id: self._pending(task) for task in running}
        offsets = {task.id: self._offsets(task) if pending[task.id] else {} for task in running}
        throttled = {device: throttled_seconds(pid) for device, pid in self.processes.items()}
        throttled |= {device: report.throttled for device, report in reports.items()}
        return _Mark(time.monotonic(), cluster, reports, throttled, pending, offsets)

    @property
    def pools(self) -> dict[str, CpuPool]:
        """CPU that limits each TaskManager that has a reporter."""
        return {device: report.pool for device, report in self._marks[-1].reports.items()}

    def _pending(self, source: FlinkTask) -> list[float]:
        """Records that wait for each subtask of a source; empty if no subtask reports any.

        Kafka's source reports none for a subtask that has never read a record.
        """
        metric = pending_of(source.operators[0])
        names = [f"{i}.{metric}" for i in range(source.parallelism)]
        values = self._values(source, names)
        return [values.get(name, 0.0) for name in names] if values else []

    def _offsets(self, source: FlinkTask) -> dict[int, dict[str, float]]:
        """Subtask → its partitions of Kafka with their offsets; empty if the source reads others.

        Offsets outlast jobs, so they show the shares of partitions in the input whenever a job was
        started again.
        """
        try:
            names = [str(row["id"]) for row in self.rest.get(self._metrics(source))]
        except Refusal:
            return {}
        matches = [match for name in names if (match := _OFFSET.fullmatch(name))]
        values = self._values(source, [match[0] for match in matches])
        offsets: dict[int, dict[str, float]] = {}
        for match in matches:
            offsets.setdefault(int(match[1]), {})[match[3]] = values.get(match[0], -1.0)
        return offsets

    def _metrics(self, source: FlinkTask) -> str:
        return job_path(self.job, "vertices", source.id, "metrics")

    def _values(self, source: FlinkTask, names: Sequence[str]) -> dict[str, float]:
        """Metrics of subtasks of a source; empty if they are not all numbers.

        Flink reads no request that is longer than 4 kB, so there may be several.
        """
        path, values = f"{self._metrics(source)}?get=", dict[str, float]()
        quoted = [quote(name, safe="") for name in names]
        for request in _requests(quoted, MAX_PATH - len(path)):
            try:
                rows = self.rest.get(path + request)
                values |= {str(row["id"]): as_number(row.get("value")) for row in rows}
            except Refusal:
                return {}
        return values if all(map(math.isfinite, values.values())) else {}


def _throttled(first: _Mark, last: _Mark) -> dict[str, float]:
    seconds = last.moment - first.moment
    return {
        device: min(1.0, max(0.0, last.throttled[device] - stopped) / seconds)
        for device, stopped in first.throttled.items()
        if device in last.throttled and seconds > 0
    }


def _unlike_processes(
    first: Mapping[str, CpuReport], last: Mapping[str, CpuReport]
) -> Iterator[str]:
    for device in first.keys() & last.keys():
        seconds = last[device].moment - first[device].moment
        whole = (last[device].cpu - first[device].cpu) / seconds if seconds > 0 else math.nan
        loads = thread_loads(first[device].threads, last[device].threads)
        if abs(sum(load.cores for load in loads) - whole) > max(
            RELATIVE_TOLERANCE * whole, CORES_TOLERANCE
        ):
            yield device


def _requests(names: Sequence[str], length: int) -> Iterator[str]:
    """Names in lists, separated by commas, each of at most some length.

    >>> [*_requests(["a", "bc", "d"], 4)]
    ['a,bc', 'd']
    """
    request = ""
    for name in names:
        if request and len(request) + 1 + len(name) > length:
            yield request
            request = ""
        request = f"{request},{name}" if request else name
    if request:
        yield request
