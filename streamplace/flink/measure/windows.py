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
from streamplace.flink.cpu.reporter import CpuReport, Reporters
from streamplace.flink.cpu.thread_dumps import ThreadDumps
from streamplace.flink.cpu.threads import as_number, processes_of, snapshot
from streamplace.flink.measure.sampling import (
    IDLE,
    PROCESS_CPU,
    Activity,
    Sampler,
    pending_of,
    restart_error,
    sent_by,
    source_metrics,
    tuples_per_record,
)
from streamplace.flink.measure.source_lag import SubtaskFlow
from streamplace.flink.rest.client import Refusal, Rest, job_path
from streamplace.flink.rest.plan import FlinkTask, read_plan, sources_of
from streamplace.flink.rest.settings import buffer_timeout, shown_settings

_OFFSET = re.compile(r"(\d+)\.(.+)\.KafkaSourceReader\.topic\.(.+\.partition\.\d+)\.currentOffset")
"""Metric of the offset of a subtask in a partition of Kafka: subtask, source and partition."""
MAX_DIFFERENCE, MAX_CORES_DIFFERENCE = 0.03, 0.02
"""Maximum difference between the CPU of threads and of their process, relative and in cores; the
larger one counts. Only the CPU of the process includes threads that have ended."""
MAX_PATH = 4000
"""Maximum length of a request in characters; Flink reads at most 4,096."""


class _Mark(NamedTuple):
    """State of a job between two windows."""

    moment: float
    cluster: ClusterSnapshot
    reports: Mapping[str, CpuReport]  # TaskManager → report of its reporter
    throttled: Mapping[str, float]  # TaskManager → seconds for which its quota has stopped it
    pending: Mapping[str, Sequence[float]]  # source → pending records of each of its subtasks
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
    # TaskManagers whose reported threads and process used different CPU.
    inconsistent: Sequence[str] = ()


class JobWindows:
    """A running job, measured window by window.

    Tasks that have ended before the first window count as idle.
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
        """Seconds after which Flink sends partly filled buffers; None if only full ones."""
        self.reporters = Reporters(rest)
        """Reporters of TaskManagers on other machines."""
        self._marks = [self._mark(None)]
        first = self._marks[0].cluster
        self.devices = self._devices(first)
        """TaskManagers that run tasks of the job."""
        unread = [device for device in self.devices if not first.threads.get(device)]
        self.dumps = ThreadDumps(rest, unread)
        """Thread dumps of the TaskManagers whose threads cannot be read."""
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
            {row.key: row.thread for row in mark.cluster.subtasks if row.job == self.job}
            for mark in self._marks[-2:]
        )
        if before != after:  # counters that grow fast may hide the restart of a subtask
            self.rest.running_job(self.job)
            raise restart_error(self.job)

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
        busy = {task: row.busy for task, row in activity.items()}
        tuples = {
            task: row.rates.get(self.generated[task], row.records_out)
            if task in self.generated
            else row.records_in
            for task, row in activity.items()
        }
        interval = JobInterval(activity, cluster, tuples, cpu_by_subtask(self.job, cluster, busy))
        return replace(
            interval,
            flows=self._flows(first, last, interval),
            partitions={source: sum(map(len, of.values())) for source, of in last.offsets.items()},
            throttled=_throttled(first, last),
            inconsistent=[*_inconsistent(first.reports, last.reports)],
        )

    def _flows(
        self, first: _Mark, last: _Mark, interval: JobInterval
    ) -> dict[str, list[SubtaskFlow]]:
        """Flows of the subtasks of the sources that report their lag."""
        flows, seconds = {}, last.moment - first.moment
        operators = {task.id: task.operators[0] for task in self.tasks}
        for source, before in first.pending.items():
            after, by_subtask = last.pending.get(source, ()), last.offsets.get(source, {})
            rows = [s for s in last.cluster.subtasks if (s.job, s.vertex) == (self.job, source)]
            sent = [subtask.wrote for subtask in sorted(rows)]
            grown = [subtask.wrote for subtask, _ in interval.subtasks.get(source, ())]
            is_counted = sum(grown) > 0 and sum(sent) > 0  # False if one is NaN
            if not (is_counted and len(sent) == len(grown) == len(before) == len(after)):
                continue
            # the chain of a source may emit more or fewer tuples than the source has read
            rate = interval.tuples[source] / sum(grown)
            tuples = tuples_per_record(operators[source], interval.activity[source])
            offsets = [[*by_subtask.get(i, {}).values()] for i in range(len(sent))]
            if min(itertools.chain(*offsets), default=-1.0) >= 0:
                read = [tuples * sum(partitions) for partitions in offsets]
            else:  # an offset is -1 until a record of its partition was read
                read = [rate * interval.activity[source].seconds * count for count in sent]
            flows[source] = [
                SubtaskFlow(
                    rate * count, past + tuples * end, (tuples * begin, tuples * end), seconds
                )
                for count, past, begin, end in zip(grown, read, before, after, strict=True)
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
        """CPU pool of each TaskManager with a reporter."""
        return {device: report.pool for device, report in self._marks[-1].reports.items()}

    def _pending(self, source: FlinkTask) -> list[float]:
        """Pending records of each subtask of a source; empty if no subtask reports them.

        A subtask of Kafka's source does not report them before it has read a record.
        """
        metric = pending_of(source.operators[0])
        names = [f"{i}.{metric}" for i in range(source.parallelism)]
        values = self._values(source, names)
        return [values.get(name, 0.0) for name in names] if values else []

    def _offsets(self, source: FlinkTask) -> dict[int, dict[str, float]]:
        """Subtask → its partitions of Kafka with their offsets; empty for other sources.

        Offsets outlast jobs, so they show the shares of partitions in the input even if the job was
        restarted.
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
        """Metrics of subtasks of a source; empty if they are not all numbers."""
        path, values = f"{self._metrics(source)}?get=", dict[str, float]()
        quoted = [quote(name, safe="") for name in names]
        for request in _requests(quoted, MAX_PATH - len(path)):
            try:
                rows = self.rest.get(path + request)
            except Refusal:
                return {}
            values |= {str(row["id"]): as_number(row.get("value")) for row in rows}
        return values if all(map(math.isfinite, values.values())) else {}


def _throttled(first: _Mark, last: _Mark) -> dict[str, float]:
    """TaskManager → share of the time for which its quota has stopped it."""
    seconds = last.moment - first.moment
    return {
        device: min(1.0, max(0.0, last.throttled[device] - stopped) / seconds)
        for device, stopped in first.throttled.items()
        if device in last.throttled and seconds > 0
    }


def _inconsistent(first: Mapping[str, CpuReport], last: Mapping[str, CpuReport]) -> Iterator[str]:
    """TaskManagers whose reported threads and process used different CPU."""
    for device in first.keys() & last.keys():
        seconds = last[device].moment - first[device].moment
        cores = (last[device].cpu - first[device].cpu) / seconds if seconds > 0 else math.nan
        loads = thread_loads(first[device].threads, last[device].threads)
        difference = abs(sum(load.cores for load in loads) - cores)
        if difference > max(MAX_DIFFERENCE * cores, MAX_CORES_DIFFERENCE):
            yield device


def _requests(names: Sequence[str], length: int) -> Iterator[str]:
    """Lists of names, separated by commas, each of at most ``length`` characters.

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
