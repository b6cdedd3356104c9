"""A running job in adjacent windows of time: rates of its metrics, and the CPU of its threads.

Flink answers with the values that it last fetched from the TaskManagers. It fetches them on
request, at most every ten seconds (``metrics.fetcher.update-interval``). So rates are computed
between two times at which counters changed, because both answers are then equally old. A window
begins with the last such time of the previous window, and windows can be combined.
"""

import itertools
import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import quote

from streamplace.engines.flink.cpu.charging import (
    ClusterInterval,
    ClusterSnapshot,
    RunningSubtask,
    TaskCpu,
    cpu_by_subtask,
)
from streamplace.engines.flink.cpu.threads import PAUSE_SECONDS, as_number, processes_of, snapshot
from streamplace.engines.flink.rest.answers import Metric
from streamplace.engines.flink.rest.client import FlinkError, Refusal, Rest, job_path
from streamplace.engines.flink.rest.plan import FlinkTask, JobPlan, read_plan, sources_of
from streamplace.engines.flink.rest.settings import buffer_timeout, shown_settings
from streamplace.model.message_text import shown

UPDATE_SECONDS = 30.0
"""Maximum wait for metrics; Flink has fetched them thrice by then, so what has not changed is idle.
"""
LATE = 0.05
"""Part of a window that may be missing because its ends were noticed late."""
RISING = ("numRecordsIn", "numRecordsOut", "numBytesIn")
"""Counters that fall only if a subtask begins again or ends.

Kafka's sink lets its bytes fall whenever a transaction gets another producer.
"""
COUNTS = (*RISING, "numBytesOut")
BUSY_MS, BACK_PRESSURED_MS = "accumulateBusyTimeMs", "accumulateBackPressuredTimeMs"
MOST_BACK_PRESSURED_MS = f"{BACK_PRESSURED_MS}.max"
"""Largest back-pressured time of a subtask of a vertex, which Flink tells beside the sum."""
_METRICS = (*COUNTS, BUSY_MS, BACK_PRESSURED_MS)
PROCESS_CPU = "Status.JVM.CPU.Time"
"""Metric of a TaskManager: nanoseconds of CPU of all its threads."""
PENDING = ".pendingRecords"
"""Suffix of the metric for unread records of a source; few connectors report it."""
_OFFSET = re.compile(r"(\d+)\.(.+)\.KafkaSourceReader\.topic\.(.+\.partition\.\d+)\.currentOffset")
"""Name of the offset that a subtask has of a partition of Kafka: subtask, source and partition."""
Look = tuple[float, Mapping[str, float]]
"""Time in s, and values of counters at that time."""
LONGEST_OPERATOR = 80
"""Length to which Flink cuts the names of operators in the names of their metrics."""
LONGEST_PATH = 4000
"""Longest request in characters that is sent; Flink reads at most 4,096."""


@dataclass(frozen=True, slots=True)
class Activity:
    """Metrics of all subtasks of a vertex together."""

    # Change of each metric per second; times are in ms, between 0 and 1000 × the parallelism.
    # Missing metrics and NaN are left out.
    rates: Mapping[str, float]
    seconds: float  # length of the measurement
    totals: Mapping[str, float] = field(default_factory=dict)  # value of each metric at the end
    looks: Sequence[Look] = ()  # times at which the metrics had just changed, with their values
    reporting: int = 0  # number of subtasks whose metrics Flink tells; 0 if that is unknown

    @property
    def records_in(self) -> float:
        """Tuples/s that it read."""
        return self.rates.get("numRecordsIn", 0.0)

    @property
    def records_out(self) -> float:
        """Tuples/s that it sent to other vertices; a tuple to several of them counts once."""
        return self.rates.get("numRecordsOut", 0.0)

    @property
    def busy(self) -> float | None:
        """Busy seconds of its threads per second; None if Flink does not report them."""
        return self.rates[BUSY_MS] / 1000 if BUSY_MS in self.rates else None

    @property
    def back_pressured(self) -> float:
        """Back-pressured seconds of its threads per second."""
        return self.rates.get(BACK_PRESSURED_MS, 0.0) / 1000

    @property
    def most_back_pressured(self) -> float:
        """Share of the time for which one of its subtasks was back-pressured at least.

        The times of subtasks are counted since their start, so while that of another subtask is
        larger, nothing is known of a subtask; 0 also if Flink reports only sums.
        """
        return self.rates.get(MOST_BACK_PRESSURED_MS, 0.0) / 1000

    def growth(self, metric: str) -> float | None:
        """Change of a metric per second, possibly negative; None if it was not read twice."""
        seen = self.values(metric)
        if len(seen) < 2:
            return None
        (start, low), (end, high) = seen[0], seen[-1]
        return (high - low) / (end - start)

    def values(self, metric: str) -> list[tuple[float, float]]:
        """Times at which a metric was read, with its values."""
        return [(now, counters[metric]) for now, counters in self.looks if metric in counters]


IDLE = Activity(dict.fromkeys((*COUNTS, BUSY_MS, BACK_PRESSURED_MS), 0.0), 0.0)
"""Activity of a vertex that has ended."""


def sent_by(operator: str) -> str:
    """Metric that counts the output of one operator of a vertex, even to a fused operator.

    >>> sent_by("Source: rides, v1.0")
    'Source__rides__v1_0.numRecordsOut'
    """
    return f"{_prefix(operator)}.numRecordsOut"


def pending_of(operator: str) -> str:
    """Metric that counts the unread records of a source."""
    return f"{_prefix(operator)}{PENDING}"


def _prefix(operator: str) -> str:
    return re.sub("[ .:,]", "_", operator[:LONGEST_OPERATOR])


@dataclass(slots=True)
class _Watch:
    """Records the counters of a vertex or a TaskManager at times when they have just changed."""

    path: str
    wanted: tuple[str, ...]
    offered: frozenset[str] = frozenset()
    previous: dict[str, float] | None = None
    changed: float | None = None
    looks: list[Look] = field(default_factory=list)
    asked: float | None = None
    unsure: float = 0.0
    reporting: int = 0
    is_used: bool = False  # whether a window has been measured by its recorded times

    def see(self, now: float, counters: dict[str, float], reporting: int = 0) -> None:
        """Add an answer; the one after a change contains the new values of all TaskManagers.

        Flink asks each TaskManager separately. If one answers for the first time, what it has
        counted since its start would seem to be new, so earlier times are forgotten.
        """
        if reporting > self.reporting:
            self.reporting, self.previous, self.changed = reporting, None, None
            self.looks.clear()
        if self.asked is not None:
            self.unsure = max(self.unsure, now - self.asked)
        self.asked = now
        if self.changed is not None:
            self.looks.append((self.changed, counters))
            self.changed = None
        elif self.previous is not None and not self.previous.items() <= counters.items():
            self.changed = now  # a further metric is no change of those that were read
        self.previous = counters

    def span(self, since: int) -> float:
        """Seconds since a recorded time; 0 if there is none."""
        return self.looks[-1][0] - self.looks[since][0] if self.looks[since:] else 0.0

    def activity(self, since: int, until: int) -> Activity:
        """Rates between two recorded times; 0 if nothing changed meanwhile."""
        looks = self.looks[since : until + 1]
        if len(looks) < 2:
            totals = self.previous or {}
            return Activity(dict.fromkeys(totals, 0.0), 0.0, totals, reporting=self.reporting)
        (start, before), (end, after) = looks[0], looks[-1]
        metrics = before.keys() & after.keys()
        rates = {name: max(0.0, (after[name] - before[name]) / (end - start)) for name in metrics}
        return Activity(rates, end - start, after, tuple(looks), self.reporting)


def sample(
    rest: Rest,
    job: str,
    vertices: Sequence[str],
    seconds: float,
    further: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Activity]:
    """Activity of the vertices, each measured for at least ``seconds``.

    ``further``: vertex → additional metrics to read.
    """
    sampler = Sampler(rest, job, vertices, further)
    sampler.watch(seconds)
    return sampler.between(0, 1)


class Sampler:
    """Measures vertices and TaskManagers in adjacent windows.

    ``further``: vertex → additional metrics to read.
    ``managers``: TaskManagers whose CPU is read as a whole.
    """

    def __init__(
        self,
        rest: Rest,
        job: str,
        vertices: Sequence[str],
        further: Mapping[str, Sequence[str]] | None = None,
        managers: Sequence[str] = (),
    ) -> None:
        more = further or {}
        self._rest, self._job, self._vertices = rest, job, vertices
        self._watches = {
            v: _Watch(
                f"{job_path(job, 'vertices', v, 'subtasks', 'metrics')}?agg=sum,max,avg&",
                (*_METRICS, *more.get(v, ())),
            )
            for v in vertices
        }
        self._watches |= {
            m: _Watch(f"/taskmanagers/{quote(m, safe='')}/metrics?", (PROCESS_CPU,))
            for m in managers
        }
        self._marks = [dict.fromkeys(self._watches, 0)]

    def watch(self, seconds: float) -> None:
        """Measure one more window of at least ``seconds`` for each vertex."""
        began = time.monotonic()
        deadline = began + seconds + UPDATE_SECONDS
        while time.monotonic() < deadline and self._is_short(seconds):
            self._rest.running_job(self._job)
            for watch in self._watches.values():
                if time.monotonic() < deadline:
                    _look(self._rest, self._job, watch)
            is_silent = all(self._watches[v].previous is None for v in self._vertices)
            if is_silent and time.monotonic() >= began + UPDATE_SECONDS:
                raise FlinkError(
                    f"Flink has reported no metrics of job {shown(self._job)} for "
                    f"{UPDATE_SECONDS:g} s, so nothing can be measured; after the loss of a "
                    "TaskManager it reports none for up to web.timeout (by default 10 min): wait "
                    "that long, or set it to 1 min; otherwise check that "
                    "metrics.fetcher.update-interval is not 0, and that the JobManager reaches "
                    "metrics.internal.query-service.port of its TaskManagers"
                )
            time.sleep(PAUSE_SECONDS)
        for watch in self._watches.values():
            watch.is_used = bool(watch.looks)
        self._marks.append({key: max(0, len(one.looks) - 1) for key, one in self._watches.items()})

    def between(self, first: int, last: int) -> dict[str, Activity]:
        """Activity of vertices and of TaskManagers from the end of one window to that of another.

        Windows are numbered from 1; 0 is the beginning.
        """
        return {
            key: watch.activity(self._marks[first][key], self._marks[last][key])
            for key, watch in self._watches.items()
        }

    def _is_short(self, seconds: float) -> bool:
        """Whether a vertex or TaskManager needs more time; changes are noticed late."""
        return any(
            watch.span(self._marks[-1][key]) < seconds - min(watch.unsure, LATE * seconds)
            for key, watch in self._watches.items()
        )


def restarted(job: str) -> FlinkError:
    """Error of a job that was not the same all the time while it was measured."""
    return FlinkError(
        f"job {shown(job)} was restarted during the measurement, or metrics of some of its "
        "subtasks began or ended; profile it when it runs steadily"
    )


def _look(rest: Rest, job: str, watch: _Watch) -> None:
    """Read the current counters of a watch; ignore an answer without values."""
    needed = [name for name in watch.wanted if not name.endswith(PENDING)]
    # A source of Kafka tells what is pending from its first record on, which may be late.
    may_tell = watch.changed is not None and not watch.offered.issuperset(watch.wanted)
    if may_tell or (not watch.looks and not watch.offered.issuperset(needed)):
        rows = rest.get(watch.path.partition("?")[0])
        watch.offered |= {row["id"] for row in rows}  # Flink may list some only
    offered = [name for name in watch.wanted if name in watch.offered]
    if not offered:
        return
    # if one metric is unknown, Flink returns none at all, so only known ones are requested
    now, query = time.monotonic(), ",".join(quote(name, safe="") for name in offered)
    rows = rest.get(f"{watch.path}get={query}")
    counters, reporting = _numbers(rows), _reporting(rows)
    before, change = watch.previous or {}, reporting - watch.reporting
    has_fallen = any(counters.get(name, math.inf) < before.get(name, 0.0) for name in RISING)
    if has_fallen or (reporting and change < 0) or (watch.is_used and change > 0):
        raise restarted(job)
    if counters:
        watch.see(now, counters, reporting)


def _reporting(rows: Sequence[Metric]) -> int:
    """Number of subtasks whose metrics were summed up; 0 if that is unknown."""
    sums = ((as_number(row.get("sum")), as_number(row.get("avg"))) for row in rows)
    numbers = (total / mean for total, mean in sums if mean > 0)
    return max([0, *(round(one) for one in numbers if math.isfinite(one))])


def _numbers(rows: Sequence[Metric]) -> dict[str, float]:
    """Sums over the subtasks, or values of a TaskManager, that are numbers."""
    told = {row["id"]: as_number(row.get("sum", row.get("value"))) for row in rows}
    most = next((row.get("max") for row in rows if row["id"] == BACK_PRESSURED_MS), None)
    told[MOST_BACK_PRESSURED_MS] = as_number(most)
    return {name: value for name, value in told.items() if math.isfinite(value)}


class _Mark(NamedTuple):
    """State between two windows: threads of the cluster, and lag."""

    moment: float
    cluster: ClusterSnapshot
    pending: Mapping[str, Sequence[float]]  # source → tuples that wait for each of its subtasks
    # Source of Kafka → subtask → its partitions with their offsets.
    offsets: Mapping[str, Mapping[int, Mapping[str, float]]]


class Lag(NamedTuple):
    """Progress of a subtask of a source that reports its lag."""

    sent: float  # tuples that it has sent since its start
    first: float  # tuples that waited for it when the measurement began
    last: float  # and when it ended
    # Tuples of its partitions of Kafka that this job and earlier ones have read; NaN if unknown.
    read: float = math.nan
    seconds: float = 0.0  # length of the measurement


@dataclass(frozen=True, slots=True)
class JobInterval:
    """Measurements of a job in an interval of time."""

    activity: Mapping[str, Activity]  # metrics of each task
    cluster: ClusterInterval  # subtasks of all jobs, and threads of TaskManagers on this machine
    # Task → its subtasks, in order, with their CPU.
    subtasks: Mapping[str, Sequence[tuple[RunningSubtask, TaskCpu]]]
    # Source → lag of each of its subtasks; without sources that do not report what waits.
    lags: Mapping[str, Sequence[Lag]]
    # Source → partitions of Kafka that it reads, as far as known.
    partitions: Mapping[str, int] = field(default_factory=dict)


class JobWindows:
    """A running job, measured window by window.

    Tasks that have ended before are not measured: they count as idle.

    ``plan``: its plan, if it was already read.
    """

    def __init__(self, rest: Rest, job: str, plan: JobPlan | None = None) -> None:
        self.rest, self.job = rest, job
        self.name, self.tasks, self.edges = plan or read_plan(rest, job)
        sources = sources_of(self.tasks, self.edges)
        self.generated = {task.id: sent_by(task.operators[0]) for task in sources}
        """Source → metric that counts its output, even if it is fused to other operators."""
        self.processes = processes_of(rest)
        """TaskManager of the cluster on this machine → process."""
        self.buffer_timeout = buffer_timeout(shown_settings(rest) or {})
        """Seconds after which a buffer is sent that is not full; None if only full ones are."""
        self._marks = [self._mark(None)]
        running = {task.id for task in self.tasks if not task.has_ended}
        first = self._marks[0].cluster
        own = (one for one in first.subtasks if one.job == job and one.vertex in running)
        self.devices = {one.device for one in own if one.device and not one.has_ended}
        """TaskManagers on which tasks of the job run."""
        self._sampler = Sampler(
            rest,
            job,
            [task.id for task in self.tasks if task.id in running],
            {task.id: (self.generated[task.id], pending_of(task.operators[0])) for task in sources},
            [device for device in self.devices if not first.threads.get(device)],
        )

    def add(self, seconds: float) -> None:
        """Measure one more window of at least ``seconds``."""
        self._sampler.watch(seconds)
        self._marks.append(self._mark(self._marks[-1].cluster))
        before, after = (
            {one.key: one.thread for one in mark.cluster.subtasks if one.job == self.job}
            for mark in self._marks[-2:]
        )
        if before != after:  # counters of a subtask that began again may hide it by growing fast
            self.rest.running_job(self.job)
            raise restarted(self.job)

    def last(self, number: int = 1) -> JobInterval:
        """Measurements of the last ``number`` windows together."""
        end = len(self._marks) - 1
        first, last = self._marks[end - number], self._marks[end]
        seen = self._sampler.between(end - number, end)
        activity = {task.id: IDLE if task.has_ended else seen[task.id] for task in self.tasks}
        cluster = ClusterInterval.between(first.cluster, last.cluster, self.generated)
        processes = {
            device: seen[device].rates[PROCESS_CPU] * 1e-9
            for device in self.devices & seen.keys()
            if PROCESS_CPU in seen[device].rates
        }
        busy = {task: one.busy for task, one in activity.items()}
        subtasks = cpu_by_subtask(self.job, cluster, busy, processes)
        partitions = {source: sum(map(len, own.values())) for source, own in last.offsets.items()}
        return JobInterval(activity, cluster, subtasks, self._lags(first, last), partitions)

    def _lags(self, first: _Mark, last: _Mark) -> dict[str, list[Lag]]:
        answer = {}
        for source, before in first.pending.items():
            own = [one for one in last.cluster.subtasks if one.vertex == source]
            sent = [one.wrote for one in sorted(own) if one.job == self.job]
            after = last.pending.get(source, ())
            by_subtask = last.offsets.get(source, {})
            offsets = [[*by_subtask.get(i, {}).values()] for i in range(len(sent))]
            # An offset is -1 until a tuple of its partition was read.
            is_known = min(itertools.chain(*offsets), default=-1.0) >= 0
            read = [sum(one) if is_known else math.nan for one in offsets]
            if len(sent) == len(before) == len(after):
                seconds = itertools.repeat(last.moment - first.moment)
                answer[source] = [*map(Lag, sent, before, after, read, seconds)]
        return answer

    def _mark(self, before: ClusterSnapshot | None) -> _Mark:
        cluster = snapshot(self.rest, self.job, self.processes, before)
        running = [one for one in self.tasks if one.id in self.generated and not one.has_ended]
        pending = {task.id: self._pending(task) for task in running}
        offsets = {task.id: self._offsets(task) if pending[task.id] else {} for task in running}
        return _Mark(time.monotonic(), cluster, pending, offsets)

    def _pending(self, source: FlinkTask) -> list[float]:
        """Tuples that wait for each subtask of a source; empty if no subtask reports any.

        That of Kafka reports none for a subtask that has never read a record.
        """
        metric = pending_of(source.operators[0])
        wanted = [f"{i}.{metric}" for i in range(source.parallelism)]
        told = self._told(source, wanted)
        return [told.get(name, 0.0) for name in wanted] if told else []

    def _offsets(self, source: FlinkTask) -> dict[int, dict[str, float]]:
        """Subtask → its partitions of Kafka with their offsets; empty if the source reads others.

        Offsets outlast jobs, so they tell the shares of partitions in the input whenever a job was
        started again.
        """
        try:
            names = [str(row["id"]) for row in self.rest.get(self._metrics(source))]
        except Refusal:
            return {}
        found = [match for name in names if (match := _OFFSET.fullmatch(name))]
        told = self._told(source, [match[0] for match in found])
        answer: dict[int, dict[str, float]] = {}
        for match in found:
            answer.setdefault(int(match[1]), {})[match[3]] = told.get(match[0], -1.0)
        return answer

    def _metrics(self, source: FlinkTask) -> str:
        return job_path(self.job, "vertices", source.id, "metrics")

    def _told(self, source: FlinkTask, names: Sequence[str]) -> dict[str, float]:
        """Metrics of subtasks of a source; empty if they are not all numbers.

        Flink reads no request that is longer than 4 kB, so there may be several.
        """
        path, told = f"{self._metrics(source)}?get=", dict[str, float]()
        for wanted in _requests([quote(name, safe="") for name in names], LONGEST_PATH - len(path)):
            try:
                rows = self.rest.get(path + wanted)
                told |= {str(row["id"]): as_number(row.get("value")) for row in rows}
            except Refusal:
                return {}
        return told if all(map(math.isfinite, told.values())) else {}


def _requests(names: Sequence[str], length: int) -> Iterator[str]:
    """Names in lists, separated by commas, each of at most some length.

    >>> [*_requests(["a", "bc", "d"], 4)]
    ['a,bc', 'd']
    """
    wanted = ""
    for name in names:
        if wanted and len(wanted) + 1 + len(name) > length:
            yield wanted
            wanted = ""
        wanted = f"{wanted},{name}" if wanted else name
    if wanted:
        yield wanted
