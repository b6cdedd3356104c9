"""Read the history of a job: metrics of Flink's PrometheusReporter, and of containers (cAdvisor).

No metric shows the streams of a job, so its plan comes from the running job, by REST. Counters are
preferred to the gauges of rates, which are means of a minute.

Flink's counter of busy time is the time since the start less idle and back-pressured time. The
counters of these lag by milliseconds, so busy time decreases now and then. Prometheus takes each
decrease for a restart, and adds all busy time so far. So busy time is computed here from idle and
back-pressured time, which never decrease.
"""

import itertools
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np

from streamplace.flink.measure.sampling import (
    BACK_PRESSURED_MS,
    BUSY_MS,
    COUNTS,
    MAX_OPERATOR_NAME,
)
from streamplace.flink.move.running_settings import PERIODIC_LIMIT_MS
from streamplace.flink.move.savepoints import checkpoint_settings
from streamplace.flink.prometheus.client import (
    Prometheus,
    PrometheusError,
    TimeGrid,
    TimeRange,
    equal,
)
from streamplace.flink.prometheus.job_history import (
    ATTEMPTS,
    BUFFERS,
    EMITTED,
    IDLE_MS,
    PENDING,
    SAMPLES,
    TAKEN,
    DeviceTable,
    JobHistory,
    SubtaskRow,
    summed,
)
from streamplace.flink.prometheus.memory import Checkpoints, MemoryUse
from streamplace.flink.rest.client import NoAnswer, Rest, job_path
from streamplace.flink.rest.plan import FlinkTask, read_plan, sources_of
from streamplace.flink.rest.settings import buffer_timeout, shown_settings
from streamplace.model.arrays import Floats
from streamplace.model.message_text import listed, quoted, shown
from streamplace.planning.result import moment

TASK, OPERATOR = "flink_taskmanager_job_task_", "flink_taskmanager_job_task_operator_"
MANAGER, CHECKPOINT = "flink_taskmanager_Status_", "flink_jobmanager_job_lastCheckpoint"
CPU_TIME = f"{MANAGER}JVM_CPU_Time"
CONTAINERS, POD = 'container!="",container!="POD"', 'pod!=""'
GAUGES = {
    BACK_PRESSURED_MS: "backPressuredTimeMsPerSecond",
    BUSY_MS: "busyTimeMsPerSecond",
    IDLE_MS: "idleTimeMsPerSecond",
}
"""Counters → gauges of their rates that do not have the name of the counter."""
RATES = (*COUNTS, BACK_PRESSURED_MS, IDLE_MS)
"""Counters of tasks whose rates are read."""
SERIES = len(RATES) + 7
"""Number of series of a subtask."""
RECORDS_IN = (f"{TASK}numRecordsIn", f"{TASK}numRecordsInPerSecond")
INPUT = f'__name__=~"{"|".join(RECORDS_IN)}"'
"""Metrics that all tasks have, as a counter or as a gauge, and their matcher."""
BY = "sum by (task_id, task_name, subtask_index, tm_id)"
MAX_PODS = 40
"""Maximum number of pods in a query; the address of a request has a few thousand characters."""
STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 43_200, 86_400)
"""Lengths of windows in seconds."""
MIN_SAMPLES = 4
"""Minimum number of samples of a series in a window; a rate needs two."""
MAX_WINDOWS, MAX_SAMPLES, MAX_LOOKS = 2016, 10_000_000, 500
"""Maximum number of windows (a week of five minutes each), of samples in all, and of times at which
jobs are looked for."""
MAX_OVERLAP_SECONDS = 600.0
"""Time for which a job and its restarted successor seem to run at once; Prometheus looks back 5
minutes."""
K = TypeVar("K")


def filtered(text: str) -> str:
    """Text as Flink's reporter writes it by default.

    >>> filtered("Source: lines -> Map")
    'Source:_lines____Map'
    """
    return re.sub(r"[^a-zA-Z0-9:_]", "_", text)


def named(label: str, *names: str) -> str:
    """Matcher of names, whether Flink's reporter filters them or not."""
    return equal(label, _any_of(form for name in names for form in (name, filtered(name))))


def _any_of(texts: Iterable[str]) -> str:
    """Regular expression that matches each text, as `equal` takes it."""
    return f"~{'|'.join(map(re.escape, dict.fromkeys(texts)))}"


def pod_of(labels: Mapping[str, str]) -> tuple[str, str]:
    """Namespace and name of the pod of a series."""
    return labels.get("namespace", ""), labels.get("pod", "")


def _cores(pods: str) -> str:
    """Query of the cores of pods, by their labels."""
    quota, period = (f"container_spec_cpu_{n}{{{CONTAINERS},{pods}}}" for n in ("quota", "period"))
    return _limit(f"{quota} / {period}", "cpu", pods)


def _bytes(pods: str) -> str:
    """Query of the memory of pods, by their labels."""
    return _limit(f"container_spec_memory_limit_bytes{{{CONTAINERS},{pods}}} > 0", "memory", pods)


def _limit(kernel: str, resource: str, pods: str) -> str:
    """Query of a limit of pods: the limit of the kernel, or else of Kubernetes."""
    declared = f'kube_pod_container_resource_limits{{resource="{resource}",{pods}}}'
    return " or ".join(f"sum by (namespace, pod) ({limit})" for limit in (kernel, declared))


def _rates(in_windows: Callable[[str], str], counter: str, kind: str = TASK) -> str:
    """Query of the rates of a counter, or of the means of its gauge.

    ``in_windows``: returns the selector of a metric, with its window.
    """
    gauge = GAUGES.get(counter, f"{counter}PerSecond")
    return f"rate({in_windows(kind + counter)}) or avg_over_time({in_windows(kind + gauge)})"


def _busy(in_windows: Callable[[str], str]) -> str:
    """Query of busy milliseconds per second of subtasks, without those that do not report it."""
    idle, blocked, busy = (
        f"({_rates(in_windows, counter)})" for counter in (IDLE_MS, BACK_PRESSURED_MS, BUSY_MS)
    )
    return f"(clamp_min(1e3 - {idle} - {blocked}, 0) and {busy} >= 0)"


def read_history(prometheus: Prometheus, rest: Rest, job: str, span: TimeRange) -> JobHistory:
    """Read the metrics of a running job, and of earlier jobs of its name, in a range."""
    try:
        name, tasks, edges = read_plan(rest, job)
        layout = {
            task.name: [
                str(row.get("taskmanager-id"))
                for row in rest.get(job_path(job, "vertices", task.id))["subtasks"]
            ]
            for task in tasks
        }
    except NoAnswer as error:
        raise NoAnswer(
            f"{error}; a history shows no streams between operators, so --rest must be the Flink "
            "that runs the job"
        ) from None
    matcher = named("job_name", name)
    n_subtasks, _, interval = _presence(prometheus, name, matcher, span)
    grid, notes = _grid(span, n_subtasks, interval)
    reader = _Reader(prometheus, matcher, grid, tasks, math.ceil(n_subtasks))
    rows, metrics = reader.subtasks(sources_of(tasks, edges))
    names = {filtered(row["id"]): str(row["id"]) for row in rest.task_managers()}
    history = JobHistory(
        name,
        tasks,
        edges,
        layout,
        grid,
        [row._replace(device=names.get(row.device, row.device)) for row in rows],
        metrics,
        reader.devices(names),
        buffer_timeout(shown_settings(rest) or {}),
        (*notes, *prometheus.warnings),
        reader.memory(),
        reader.checkpoints(_interval(rest, job)),
    )
    if not history.complete.any():
        raise PrometheusError(
            f"Prometheus has job {quoted(name)} from {span}, but at no time one series of every "
            f"subtask of {listed(history.incomplete_tasks)}; if it has two, choose by a label"
        )
    return history


class JobMetrics(NamedTuple):
    """Metrics of a job in windows, [T] each, without its streams."""

    busy: Mapping[str, Floats]  # task → share of the time for which its busiest subtask is busy
    devices: DeviceTable
    # TaskManager → limit of its pod, if known.
    cores: Mapping[str, Floats]
    bytes: Mapping[str, Floats]
    memory: MemoryUse | None
    checkpoints: Checkpoints | None

    @property
    def used(self) -> Floats:
        """Cores of all TaskManagers, [T]."""
        return summed(self.devices.cores.values() or self.devices.busy.values())

    @property
    def managers(self) -> list[str]:
        """TaskManagers in the last window with values."""
        rows = self.devices.cores or self.devices.busy
        last = int(np.flatnonzero(np.isfinite(self.used))[-1])
        return [name for name, values in rows.items() if np.isfinite(values[last])]


def jobs_in(prometheus: Prometheus, span: TimeRange) -> list[tuple[str, str]]:
    """Namespace, empty if its series have none, and name of every job in a range."""
    query = f"group by (namespace, job_name) ({prometheus.address.selector('', INPUT)})"
    jobs = prometheus.series(
        query,
        _looks(span),
        lambda labels: (labels.get("namespace", ""), labels.get("job_name", "")),
    )
    if not jobs:
        raise PrometheusError(f"Prometheus has no metrics of any job of Flink from {span}")
    return sorted(jobs)


def read_metrics(prometheus: Prometheus, name: str, span: TimeRange) -> JobMetrics:
    """Read the metrics of a job that runs at the end of a range."""
    matcher = named("job_name", name)
    n_subtasks, end, interval = _presence(prometheus, name, matcher, span)
    if end < span.end - 1:
        raise PrometheusError(f"it does not run: its metrics end at {moment(end)}")
    grid, _ = _grid(span, n_subtasks, interval)
    reader = _Reader(prometheus, matcher, grid, [], math.ceil(n_subtasks))
    if reader.shares_managers():
        raise PrometheusError(
            "its TaskManagers run other jobs, too, as in a session cluster, and metrics of a pod "
            "do not separate jobs"
        )
    devices = reader.devices({})
    if not (devices.cores or devices.busy):
        raise PrometheusError("Prometheus has neither CPU nor busy time of its TaskManagers")
    cores, memory = reader.limits()
    return JobMetrics(
        reader.busy(), devices, cores, memory, reader.memory(), reader.checkpoints(None)
    )


def _looks(span: TimeRange) -> TimeGrid:
    """Times at which jobs are looked for."""
    return TimeGrid.of(span, max(15.0, math.ceil((span.end - span.start) / MAX_LOOKS)))


def _presence(
    prometheus: Prometheus, name: str, matcher: str, span: TimeRange
) -> tuple[float, float, float]:
    """Mean number of subtasks of the job, end of its series, and seconds between their samples.

    A range without the job, and two jobs of its name at the same time, are refused.
    """
    grid = _looks(span)
    selector = prometheus.address.selector("", INPUT, matcher)
    subtasks = "count by (job_id, task_name, subtask_index, tm_id)"
    query = f"count by (job_id) ({subtasks} ({selector}))"
    by_job = prometheus.series(query, grid, lambda labels: labels.get("job_id", ""))
    if not by_job:
        of_jobs = {"match[]": prometheus.address.selector("", INPUT)}
        known = [*map(str, prometheus.get("label/job_name/values", **of_jobs))]
        if {name, filtered(name)} & {*known}:
            hint = "it has some of another time, so change --since"
        elif known:
            hint = f"it has those of {listed([*map(shown, known)])}"
        else:
            hint = "it has none of any job of Flink"
        raise PrometheusError(
            f"Prometheus has no metrics of job {quoted(name)} from {span}; {hint}"
        )
    present = {job: np.isfinite(counts) for job, counts in by_job.items()}
    max_overlap = max(1, MAX_OVERLAP_SECONDS / grid.step)
    for (job, row), (other, other_row) in itertools.combinations(present.items(), 2):
        overlap = np.count_nonzero(row & other_row)
        if overlap > min(max_overlap, min(row.sum(), other_row.sum()) / 2):
            raise PrometheusError(
                f"two jobs are called {quoted(name)} at the same time, {shown(job)} and "
                f"{shown(other)}; choose by a label, as in "
                f"prometheus:{prometheus.address.url}?job_id={shown(job)}"
            )
    total = np.nansum(np.stack([*by_job.values()]), axis=0)
    end = float(grid.ends[np.any([*present.values()], axis=0)].max())
    return float(total.mean()), end, _scrape_interval(prometheus, matcher, grid)


def _scrape_interval(prometheus: Prometheus, matcher: str, grid: TimeGrid) -> float:
    """Seconds between two samples of a series, from five minutes if one has fewer than three."""
    every = [prometheus.address.selector(metric, matcher) for metric in RECORDS_IN]
    interval = 0.0
    for seconds in (60, 300):
        query = " or ".join(f"max(count_over_time({one}[{seconds}s]))" for one in every)
        counts = prometheus.series(query, grid, lambda _: "").get("", np.ones(1))
        interval = seconds / max(1.0, float(np.nanmax(counts)))
        if interval <= seconds / 3:
            break
    return interval


def _interval(rest: Rest, job: str) -> float | None:
    """Seconds between two checkpoints of a job; None if they are not periodic."""
    settings = checkpoint_settings(rest, job)
    interval = PERIODIC_LIMIT_MS
    if settings is not None:
        interval = settings.get("interval", interval)
    return None if interval >= PERIODIC_LIMIT_MS else interval / 1000


def _grid(span: TimeRange, n_subtasks: float, interval: float) -> tuple[TimeGrid, list[str]]:
    """Windows with enough samples for rates, and a note if they are longer to save samples."""
    seconds = span.end - span.start
    min_step = max(MIN_SAMPLES * interval, seconds / MAX_WINDOWS)
    step = next((step for step in STEPS if step >= min_step - 1e-6), STEPS[-1])
    values = n_subtasks * SERIES * seconds  # samples at one per second
    if values / step <= MAX_SAMPLES:
        return TimeGrid.of(span, step), []
    longer = next((step for step in STEPS if values / step <= MAX_SAMPLES), STEPS[-1])
    note = (
        f"windows are {longer} s long instead of {step} s, since these would take "
        f"{values / step / 1e6:.0f} million samples of Prometheus"
    )
    return TimeGrid.of(span, longer), [note]


class _Reader(NamedTuple):
    """Queries of a job's metrics in windows."""

    prometheus: Prometheus
    matcher: str  # of the job
    grid: TimeGrid
    tasks: list[FlinkTask]
    n_subtasks: int

    def subtasks(self, sources: list[FlinkTask]) -> tuple[list[SubtaskRow], dict[str, Floats]]:
        """Subtasks of the job, and their metrics, [S, T] each; unknown values are NaN."""
        ids = {task.id: task.id for task in self.tasks}
        ids |= {
            form: task.id
            for task in self.tasks
            for form in (task.thread_name, filtered(task.thread_name))
        }

        def row_of(labels: Mapping[str, str]) -> SubtaskRow | None:
            task = ids.get(labels.get("task_id", "")) or ids.get(labels.get("task_name", ""))
            index = labels.get("subtask_index", "")
            if task is None or not index.isdecimal():
                return None
            return SubtaskRow(task, int(index), labels.get("tm_id", ""))

        first = named("operator_name", *(task.operators[0][:MAX_OPERATOR_NAME] for task in sources))
        of_job = self._in_windows

        def of_sources(metric: str) -> str:
            return self._in_windows(metric, first)

        samples = " or ".join(f"count_over_time({of_job(metric)})" for metric in RECORDS_IN)
        waits = of_sources(f"{OPERATOR}pendingRecords")
        queries = {counter: f"{BY} ({_rates(of_job, counter)})" for counter in RATES}
        queries |= {
            BUSY_MS: f"{BY} ({_busy(of_job)})",
            BUFFERS: " + ".join(
                f"{BY} ({_rates(of_job, counter)})"
                for counter in ("numBuffersInLocal", "numBuffersInRemote")
            ),
            EMITTED: f"{BY} ({_rates(of_sources, 'numRecordsOut', OPERATOR)})",
            TAKEN: f"{BY} ({_rates(of_sources, 'numRecordsIn', OPERATOR)})",
            SAMPLES: f"{BY} ({samples})",
            ATTEMPTS: f"{BY.replace('sum', 'count')} ({samples})",
            PENDING: f"{BY} (last_over_time({waits}))",
        }
        series = {metric: self._series(query, row_of) for metric, query in queries.items()}
        rows = sorted({row for values in series.values() for row in values})
        unknown = np.full(self.grid.number, np.nan)
        return rows, {
            metric: np.array([values.get(row, unknown) for row in rows]).reshape(len(rows), -1)
            for metric, values in series.items()
        }

    def busy(self) -> dict[str, Floats]:
        """Task → share of the time for which its busiest subtask is busy, [T]."""
        mean = f"avg_over_time({self._in_windows(TASK + GAUGES[BUSY_MS])})"
        query = f"max by (task_name) ({mean} or {_busy(self._in_windows)}) / 1e3"
        return self._series(query, lambda labels: labels.get("task_name"))

    def shares_managers(self) -> bool:
        """Whether TaskManagers of the job run another job, too."""
        inputs = self.prometheus.address.selector("", INPUT, without="job_")
        jobs = f"count by (tm_id) (group by (tm_id, job_name) ({inputs}))"
        return self._largest(f"max ({jobs} {self._on_its_managers})") > 1

    def devices(self, names: Mapping[str, str]) -> DeviceTable:
        """TaskManagers of the job: their CPU, busy time of all jobs, and throttling, [T] each.

        The CPU is that of the process, or else of the container, by the label ``pod`` of its
        series; throttling is the share of periods in which the quota of the container stopped it.
        """

        def manager(labels: Mapping[str, str]) -> str | None:
            return names.get(labels.get("tm_id", ""), labels.get("tm_id"))

        def rate(metric: str, pods: str) -> str:
            selector = f"container_cpu_{metric}_total{{{CONTAINERS},{pods}}}"
            return f"sum by (namespace, pod) (rate({selector}[{self._window}]))"

        def stopped(pods: str) -> str:
            return f"{rate('cfs_throttled_periods', pods)} / {rate('cfs_periods', pods)}"

        used, throttled = self._of_pods(manager, partial(rate, "usage_seconds"), stopped)
        busy = _busy(self._of_managers)
        clock = f"rate({self._of_managers(CPU_TIME)}) / 1e9"
        return DeviceTable(
            used | self._series(f"sum by (tm_id) ({clock}) {self._on_its_managers}", manager),
            self._series(f"sum by (tm_id) ({busy}) / 1e3 {self._on_its_managers}", manager),
            throttled,
        )

    def memory(self) -> MemoryUse | None:
        """Largest memory use of a TaskManager; None if that of the heap is unknown."""

        def largest(metric: str, function: str) -> float:
            uses = f"{function}_over_time({self._of_managers(MANAGER + metric)})"
            return self._largest(f"max ({uses} {self._on_its_managers})")

        heap, managed = "JVM_Memory_Heap_", "Flink_Memory_Managed_"
        of_heap = largest(f"{heap}Used", "min"), largest(f"{heap}Max", "max")
        of_managed = largest(f"{managed}Used", "max"), largest(f"{managed}Total", "max")
        if not all(map(math.isfinite, of_heap)):
            return None
        return MemoryUse(*of_heap, *(of_managed if all(map(math.isfinite, of_managed)) else ()))

    def checkpoints(self, interval: float | None) -> Checkpoints | None:
        """Longest and largest checkpoint; None if there is none."""
        duration, size = (
            self._largest(f"max (max_over_time({self._in_windows(CHECKPOINT + metric)}))")
            for metric in ("Duration", "Size")
        )
        is_known = duration >= 0 and size >= 0  # Flink reports -1 before the first checkpoint
        return Checkpoints(duration / 1e3, size, interval) if is_known else None

    def _largest(self, query: str) -> float:
        """Largest value of a query for one series; NaN without values."""
        series = self._series(query, lambda _: "").values()
        return max((float(np.nanmax(values)) for values in series), default=math.nan)

    def limits(self) -> list[dict[str, Floats]]:
        """TaskManager → cores and bytes of its pod, by cAdvisor or kube-state-metrics."""
        return self._of_pods(lambda labels: labels.get("tm_id"), _cores, _bytes)

    def _of_pods(
        self,
        manager: Callable[[Mapping[str, str]], str | None],
        *queries: Callable[[str], str],
    ) -> list[dict[str, Floats]]:
        """TaskManager → values of its pod, for each query by matchers of pods."""
        query = f"group by (tm_id, namespace, pod) ({self._selector('', INPUT, POD)})"
        managers: dict[tuple[str, str], set[str]] = defaultdict(set)
        for pod, name in self._series(query, lambda row: (pod_of(row), manager(row) or "")):
            managers[pod].add(name)
        pods, tables = sorted(managers), [dict[str, Floats]() for _ in queries]
        for first in range(0, len(pods), MAX_PODS):
            columns = zip(*pods[first : first + MAX_PODS], strict=True)
            matchers = [
                equal(label, _any_of(sorted(names)))
                for label, names in zip(("namespace", "pod"), columns, strict=True)
            ]
            for query_of, table in zip(queries, tables, strict=True):
                for pod, values in self._series(query_of(",".join(matchers)), pod_of).items():
                    table |= dict.fromkeys(managers.get(pod, ()), values)
        return tables

    def _series(self, query: str, key: Callable[[Mapping[str, str]], K | None]) -> dict[K, Floats]:
        return self.prometheus.series(query, self.grid, key, self.n_subtasks)

    @property
    def _on_its_managers(self) -> str:
        """Condition of a query that a TaskManager runs the job."""
        return f"and on (tm_id) group by (tm_id) ({self._selector('', INPUT)})"

    @property
    def _window(self) -> str:
        return f"{self.grid.step:g}s"

    def _in_windows(self, metric: str, *matchers: str) -> str:
        return f"{self._selector(metric, *matchers)}[{self._window}]"

    def _of_managers(self, metric: str) -> str:
        """Selector of a metric of TaskManagers, or of all jobs, in windows."""
        return f"{self.prometheus.address.selector(metric, without='job_')}[{self._window}]"

    def _selector(self, metric: str, *matchers: str) -> str:
        return self.prometheus.address.selector(metric, self.matcher, *matchers)
