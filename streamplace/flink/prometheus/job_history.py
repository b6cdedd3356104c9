"""The history of a job as a profile and as a trace.

The CPU of a TaskManager, less what Java itself uses at any rate, is divided among subtasks in
proportion to their busy time, in every window. A subtask is busy from the arrival of a buffer on,
so the time until its thread runs, `WAKE_SECONDS`, is deducted for each buffer. Costs are fitted to
all windows (`measure.cost_fit`). The profile is that of the windows in which the rate was highest,
since a prediction from there reaches farthest; it has the parallelism of now, if the job ever had
it at such a rate.
"""

import csv
import io
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import NamedTuple

import numpy as np

from streamplace.display.report import duration, percent
from streamplace.errors import SettingError
from streamplace.flink.constants import MIN_CAUSE
from streamplace.flink.cpu.charging import (
    BUSY_SHARE,
    COMPILERS_AT_REST,
    JAVA_AT_REST,
    OF_PROCESS,
    UNKNOWN,
    RunningSubtask,
    TaskCpu,
)
from streamplace.flink.measure.cost_fit import SAME_RATE, Observation
from streamplace.flink.measure.key_shares import key_shares
from streamplace.flink.measure.profile import (
    BY_BUSY_TIME,
    BY_REPORTER,
    JobProfile,
    LoadWindow,
    Present,
    Remedy,
)
from streamplace.flink.measure.sampling import (
    BACK_PRESSURED_MS,
    BUSY_MS,
    IDLE,
    MAX_BACK_PRESSURED_MS,
    Activity,
    source_metrics,
)
from streamplace.flink.measure.source_lag import SourceFlow, flow_of, requested_rate, together
from streamplace.flink.prometheus.client import TimeGrid
from streamplace.flink.prometheus.memory import Checkpoints, MemoryUse
from streamplace.flink.rest.plan import Edge, FlinkTask, sources_of
from streamplace.model.arrays import Bools, Floats, Ints
from streamplace.model.message_text import listed, quoted, shown
from streamplace.model.units import digits
from streamplace.planning.result import moment
from streamplace.planning.traces import TIME, TOTAL, RateTrace
from streamplace.settings.convert import share_of

IDLE_MS = "accumulateIdleTimeMs"
EMITTED, TAKEN, PENDING = "emitted", "taken", "pending"
"""Rates of tuples and records of the operator that is a source, and what waits for it."""
ATTEMPTS, SAMPLES = "attempts", "samples"
"""Number of series of a subtask, which is two in a window in which it was restarted, and number of
their samples."""
BUFFERS = "buffers"
"""Number of buffers that a subtask receives."""
WAKE_SECONDS, MIN_WORKING = 60e-6, 0.1
"""Time until a thread that waits for a buffer runs, and minimum share of its busy time in which it
does (measured: benchmarks/cpu_sources.py)."""
MIN_COVERAGE = 0.75
"""Minimum ratio of the samples in a window to those in an adjacent one, if a subtask ran in both
all the time."""
FITTED_WINDOWS = 200
"""Most windows that costs are fitted to; they are means of adjacent ones."""
SPREAD = BY_REPORTER._replace(words="CPU of whole TaskManagers, which all run the same operators")
MIN_GAP = 0.01
"""Share of a range without metrics from which on it is noted."""


class SubtaskRow(NamedTuple):
    """A subtask on a TaskManager."""

    task: str  # its id
    number: int
    device: str


class DeviceTable(NamedTuple):
    """TaskManager → values of windows, [T], NaN where they are unknown."""

    cores: Mapping[str, Floats]  # CPU of its process
    busy: Mapping[str, Floats]  # busy seconds per second of the subtasks of all jobs
    throttled: Mapping[str, Floats]  # share of periods in which its quota has stopped it


def summed(rows: Iterable[Floats]) -> Floats:
    """Sum over rows, [T]; NaN where none of them has a value."""
    values = np.stack([*rows])
    return np.where(np.isfinite(values).any(axis=0), np.nansum(values, axis=0), np.nan)


def percentile(text: str) -> float | None:
    """Share of the time of a percentile; None for another rate, which is only checked.

    >>> percentile("95%"), percentile("2x")
    (0.95, None)
    """
    if not text.strip().endswith("%"):
        requested_rate(text)
        return None
    if not 0 < (share := share_of(text)) <= 1:
        raise SettingError(f"--rate is {quoted(text)}; a percentile is above 0 % and at most 100 %")
    return share


@dataclass(frozen=True, eq=False)
class JobHistory:
    """Metrics of a job in windows, as Prometheus has them."""

    name: str
    tasks: Sequence[FlinkTask]
    edges: Sequence[Edge]
    layout: Mapping[str, Sequence[str]]  # operator → TaskManagers of its subtasks now
    grid: TimeGrid
    rows: Sequence[SubtaskRow]
    metrics: Mapping[str, Floats]  # [S, T] per second, or what waits; NaN where unknown
    devices: DeviceTable
    buffer_timeout: float | None
    notes: Sequence[str] = ()
    memory: MemoryUse | None = None  # None if it is not told, as below
    checkpoints: Checkpoints | None = None

    @cached_property
    def sources(self) -> list[FlinkTask]:
        """Tasks without input from others."""
        return sources_of(self.tasks, self.edges)

    @cached_property
    def _of_task(self) -> dict[str, list[int]]:
        """Task that has not ended → its rows."""
        rows: dict[str, list[int]] = {task.id: [] for task in self.tasks if not task.has_ended}
        for i, row in enumerate(self.rows):
            if row.task in rows:
                rows[row.task].append(i)
        return rows

    @cached_property
    def tuples(self) -> Floats:
        """Tuples/s that each subtask reads, or generates if it is one of a source, [S, T]."""
        answer = self.metrics["numRecordsIn"].copy()
        for task in self.sources:
            rows = self._of_task.get(task.id, [])
            emitted = self.metrics[EMITTED][rows]  # also to operators that are fused to it
            is_known = np.isfinite(emitted).any()
            answer[rows] = emitted if is_known else self.metrics["numRecordsOut"][rows]
        return answer

    @cached_property
    def _parallelism(self) -> dict[str, Floats]:
        """Task → number of its subtasks in each window, [T]; 0 unless all have metrics.

        It is 0 also if one was started, ended or started again: what it did in the rest of the
        window is not known.
        """
        found = {}
        samples = np.pad(np.nan_to_num(self.metrics[SAMPLES]), ((0, 0), (1, 1)))
        adjacent = np.maximum(samples[:, :-2], samples[:, 2:])
        is_partial = np.isfinite(self.tuples) & (samples[:, 1:-1] < MIN_COVERAGE * adjacent)
        for task, rows in self._of_task.items():
            here = np.isfinite(self.tuples[rows])
            number = np.array([self.rows[i].number for i in rows]).reshape(-1, 1)
            highest = np.where(here, number + 1, 0).max(axis=0, initial=0)
            is_whole = np.nansum(self.metrics[ATTEMPTS][rows], axis=0) == highest
            is_whole &= ~is_partial[rows].any(axis=0)
            found[task] = np.where(is_whole, highest, 0).astype(np.float64)
        return found

    @property
    def incomplete_tasks(self) -> list[str]:
        """Tasks without a window in which all their subtasks have metrics; else all."""
        missing = [t.name for t in self.tasks if not self._parallelism.get(t.id, np.ones(1)).any()]
        return missing or [task.name for task in self.tasks]

    @cached_property
    def complete(self) -> Bools:
        """Windows with the metrics of all subtasks, and with the CPU of their TaskManagers, [T]."""
        whole = np.all([number > 0 for number in self._parallelism.values()], axis=0)
        if self._has_cores:
            whole = whole & ~(np.isfinite(self.tuples) & np.isnan(self._on_device("cores"))).any(0)
        return np.asarray(whole)

    @cached_property
    def _has_cores(self) -> bool:
        return any(np.isfinite(cores).any() for cores in self.devices.cores.values())

    def _on_device(self, column: str) -> Floats:
        """Values of the TaskManager of each subtask, [S, T]."""
        table: Mapping[str, Floats] = getattr(self.devices, column)
        unknown = np.full(self.grid.number, np.nan)
        values = [table.get(row.device, unknown) for row in self.rows]
        return np.array(values).reshape(-1, self.grid.number)

    @property
    def used(self) -> Floats:
        """Cores of all TaskManagers, [T]; of the subtasks where only their busy time is known."""
        return summed(self.devices.cores.values() if self._has_cores else self.cores)

    @property
    def busy(self) -> dict[str, Floats]:
        """Task → share of the time for which its busiest subtask is busy, [T]."""
        names = {task.id: task.name for task in self.tasks}
        shares = self.metrics[BUSY_MS] / 1000
        return {
            names[task]: np.fmax.reduce(shares[rows])
            for task, rows in self._of_task.items()
            if rows
        }

    @cached_property
    def cores(self) -> Floats:
        """Cores of each subtask, [S, T]; its busy time if the CPU of TaskManagers is unknown."""
        busy = self.metrics[BUSY_MS] / 1000
        wakes = WAKE_SECONDS * np.nan_to_num(self.metrics[BUFFERS])
        works = np.maximum(busy - wakes, MIN_WORKING * busy)
        if not self._has_cores:
            return works
        devices = np.array([row.device for row in self.rows])
        is_there = (devices == devices[:, None]).astype(np.float64)
        busy_there, works_there = (is_there @ np.nan_to_num(values) for values in (busy, works))
        others = np.fmax(self._on_device("busy") - busy_there, 0.0)
        cores = np.maximum(self._on_device("cores") - JAVA_AT_REST - COMPILERS_AT_REST, 0.0)
        return np.asarray(cores * works / np.maximum(works_there + others, 1e-9))

    def _sums(self, metric: Floats) -> dict[str, Floats]:
        """Task → sum of a metric over its subtasks, [T]; NaN if it has none of them."""
        sums = {}
        for task, rows in self._of_task.items():
            sums[task] = summed(metric[rows]) if rows else np.full(self.grid.number, np.nan)
        return sums

    @cached_property
    def arrived(self) -> dict[str, Floats]:
        """Source → tuples/s that arrive, [T]: emitted ones, and the growth of the lag."""
        emitted, taken = self._sums(self.tuples), self._sums(self.metrics[TAKEN])
        growth = self._growth
        answer = {}
        for task in self.sources:
            rate = emitted.get(task.id, np.zeros(self.grid.number))
            records = np.nan_to_num(taken.get(task.id, rate))
            each = np.ones(len(rate))  # tuples of a record
            np.divide(rate, records, out=each, where=(records > 0) & (rate > 0))
            grown = each * growth.get(task.id, 0.0)
            answer[task.name] = np.where(self.complete, np.maximum(rate + grown, 0.0), np.nan)
        return answer

    @cached_property
    def _growth(self) -> dict[str, Floats]:
        """Source → growth of what waits for it, in records/s; 0 where that is unknown."""
        return {
            task: np.nan_to_num(np.diff(waits, prepend=np.nan)) / self.grid.step
            for task, waits in self._sums(self.metrics[PENDING]).items()
        }

    @cached_property
    def total(self) -> Floats:
        """Tuples/s that arrive for all sources together, [T]; NaN where metrics are missing."""
        return np.asarray(np.sum([*self.arrived.values()], axis=0), np.float64)

    @property
    def peak(self) -> float:
        """Largest mean of a window."""
        return float(np.nanmax(self.total))

    def level(self, share: float) -> float:
        """Rate that was not exceeded for a share of the time."""
        known = self.total[self.complete]
        return float(np.quantile(known, share * (1 - 1e-9), method="inverted_cdf"))

    def requested_rate(self, text: str) -> float:
        """Tuples/s of a text: a percentile of the range, a multiple of its peak, or a rate."""
        share = percentile(text)
        return requested_rate(text, SourceFlow(self.peak)) if share is None else self.level(share)

    def trace(self) -> RateTrace:
        """Rates of the sources by window; of all together if one of them never sent anything."""
        columns = self.arrived
        if any(not np.nansum(rates) for rates in columns.values()):
            columns = {TOTAL: self.total}
        rates = np.stack([*columns.values()], axis=1)[self.complete]
        return RateTrace(self.grid.ends[self.complete] - self.grid.step, tuple(columns), rates)

    def trace_text(self) -> str:
        """Trace as a CSV file for ``plan --trace``."""
        trace, text = self.trace(), io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([TIME, *trace.sources])
        for time, rates in zip(trace.time.tolist(), trace.rates.tolist(), strict=True):
            date = datetime.fromtimestamp(time, UTC).isoformat(timespec="seconds")
            writer.writerow([date, *(f"{rate:.6g}" for rate in rates)])
        return text.getvalue()

    def __str__(self) -> str:
        """Return what was read, in one line."""
        begin = moment(self.grid.first - self.grid.step)
        peak = moment(self.grid.ends[int(np.nanargmax(self.total))] - self.grid.step)
        return (
            f"{duration(self.grid.step * self.grid.number)} of Prometheus from {begin} on, in "
            f"windows of {duration(self.grid.step)}: {digits(self.level(0.5))} tuples/s or less in "
            f"half of the time, {digits(self.level(0.95))} in 95 %, at most {digits(self.peak)} "
            f"(at {peak})"
        )

    def profile(self, *, is_spread: bool = False) -> JobProfile:
        """Profile of the windows with the highest rates; costs are fitted to all windows.

        ``is_spread``: whether all TaskManagers run, and will run, parts of all operators alike, so
        that errors of dividing their CPU among these cancel out.
        """
        windows, reference, is_now = self._averages()
        at = np.concatenate([window.at for window in reference])
        cpu, origin = self._cpu(at), BY_BUSY_TIME
        if not self._has_cores:
            origin = BY_BUSY_TIME._replace(words="busy time")
        elif is_spread and not any(task.slot_sharing_group for task in self.tasks):
            origin = SPREAD
        activity = {t.id: IDLE if t.has_ended else self._activity(t, at) for t in self.tasks}
        tuples = self._means(self.tuples, at)
        throttled = {
            device: float(np.nanmean(share[at]))
            for device, share in self.devices.throttled.items()
            if np.isfinite(share[at]).any()
        }
        rates = [window.rate for window in windows]
        is_fitted = max(rates) > SAME_RATE * min(rates)
        subtasks = self._subtasks(at)
        doubts: list[str] = [*self._doubts(throttled)]
        if not is_now:
            doubts.append(
                Remedy("in this time the job never had its present parallelism for a whole window")
            )
        doubts += [f"ipt of {t.name}: {cpu[t.id].source}" for t in self.tasks if not t.has_ended]
        others = [window for window in windows if all(window is not own for own in reference)]
        earlier = [self._observations(window) for window in others] if is_fitted else []
        return JobProfile(
            self.name,
            self.tasks,
            self.edges,
            activity,
            cpu,
            {task.id: tuples.get(task.id, 0.0) for task in self.tasks},
            together(self._flow(task, activity[task.id], throttled) for task in self.sources),
            Present(self.layout, {}, JAVA_AT_REST if self._has_cores else None),
            origin,
            doubts,
            [
                LoadWindow(
                    self.grid.step * len(window.at),
                    window.rate,
                    sum(self._means(self.cores, window.at).values()),
                    observations=self._observations(window) if is_fitted else {},
                )
                for window in reference
            ],
            shares=key_shares(self.tasks, self.edges, subtasks),
            buffer_timeout=self.buffer_timeout,
            earlier={
                task.name: [row for found in earlier for row in found.get(task.id, ())]
                for task in self.tasks
            },
            throttled=throttled,
        )

    def _averages(self) -> "tuple[list[_Average], list[_Average], bool]":
        """Means of adjacent windows of one parallelism; those of the highest rates.

        Also whether the latter have the present parallelism.
        """
        emitted = self._sums(self.tuples)
        rate = np.sum([emitted[t.id] for t in self.sources if t.id in emitted], axis=0)
        number = np.stack([*self._parallelism.values()])
        block = np.arange(self.grid.number) // math.ceil(self.grid.number / FITTED_WINDOWS)
        parts: dict[tuple[float, ...], list[int]] = defaultdict(list)
        for at in np.flatnonzero(self.complete).tolist():
            parts[(float(block[at]), *number[:, at].tolist())].append(at)
        windows = [_Average(np.array(at), float(rate[at].mean())) for at in parts.values()]
        present = [t.parallelism for t in self.tasks if t.id in self._parallelism]
        is_now = (number == np.array(present)[:, None]).all(axis=0)
        alike = [window for window in windows if is_now[window.at[0]] and window.rate > 0]
        highest = max(window.rate for window in alike or windows)
        chosen = [w for w in alike or windows if w.rate * SAME_RATE >= highest]
        return windows, chosen, bool(alike)

    def _means(self, metric: Floats, at: Ints) -> dict[str, float]:
        """Task → mean over windows of the sum of a metric over its subtasks."""
        return {
            task: float(np.nansum(metric[rows][:, at])) / len(at)
            for task, rows in self._of_task.items()
        }

    def _cpu(self, at: Ints) -> dict[str, TaskCpu]:
        """CPU of every task in some windows, and where it comes from."""
        cores, source = self._means(self.cores, at), OF_PROCESS if self._has_cores else BUSY_SHARE
        cpu = dict.fromkeys((task.id for task in self.tasks), TaskCpu(0.0))
        for task, rows in self._of_task.items():
            is_known = np.isfinite(self.cores[rows][:, at]).any()
            cpu[task] = TaskCpu(cores[task], source) if is_known else TaskCpu(0.0, UNKNOWN)
        return cpu

    def _activity(self, task: FlinkTask, at: Ints) -> Activity:
        """Metrics of a task in some windows."""
        rows = self._of_task[task.id]
        own = {name: values[rows][:, at] for name, values in self.metrics.items()}
        known = {name: values for name, values in own.items() if np.isfinite(values).any()}
        sums = {name: float(np.nansum(values)) / len(at) for name, values in known.items()}
        taken, pending, sent = source_metrics(task.operators[0])
        waits = sums.pop(PENDING, None)
        for number in (ATTEMPTS, BUFFERS, SAMPLES):
            sums.pop(number, None)
        rates = {{EMITTED: sent, TAKEN: taken}.get(name, name): rate for name, rate in sums.items()}
        if BACK_PRESSURED_MS in known:
            blocked = np.nan_to_num(known[BACK_PRESSURED_MS]).sum(axis=1) / len(at)
            rates[MAX_BACK_PRESSURED_MS] = float(blocked.max())
        seconds = self.grid.step * len(at)
        if waits is None:
            return Activity(rates, seconds)
        grown = waits + seconds * float(self._growth[task.id][at].mean())
        readings = ((0.0, {pending: waits}), (seconds, {pending: grown}))
        return Activity(rates, seconds, {pending: waits}, readings)

    def _flow(
        self, source: FlinkTask, activity: Activity, throttled: Mapping[str, float]
    ) -> SourceFlow:
        if source.has_ended:
            return SourceFlow(0.0, keeps_up=True, name=source.name)
        devices = {self.rows[i].device for i in self._of_task[source.id]}
        stopped = sorted(d for d in devices if throttled.get(d, 0.0) >= MIN_CAUSE)
        operator = source.operators[0]
        return flow_of(
            source.name, operator, activity, source.parallelism, full=stopped, sees_cpu=False
        )

    def _subtasks(self, at: Ints) -> dict[str, list[RunningSubtask]]:
        """Task → its subtasks, in order, with what they did in some windows."""
        seconds = self.grid.step
        wanted = (BUSY_MS, "numRecordsIn", EMITTED, IDLE_MS, BACK_PRESSURED_MS)
        columns = [self.tuples if name == EMITTED else self.metrics[name] for name in wanted]
        sums = [seconds * np.nansum(values[:, at], axis=1) for values in columns]
        found: dict[str, list[RunningSubtask]] = defaultdict(list)
        for task, rows in self._of_task.items():
            by_number: dict[int, list[int]] = defaultdict(list)
            for i in rows:
                by_number[self.rows[i].number].append(i)
            for number, own in sorted(by_number.items()):
                busy, read, wrote, idle, blocked = (float(v[own].sum()) for v in sums)
                device = self.rows[own[-1]].device
                subtask = RunningSubtask(
                    "", task, number, device, "", busy, read, wrote, idle, blocked
                )
                found[task].append(subtask)
        return found

    def _observations(self, window: "_Average") -> dict[str, list[Observation]]:
        """Task → rates and cores of its subtasks in a window."""
        tuples, cores = self.tuples[:, window.at], self.cores[:, window.at]
        known = np.isfinite(tuples) & np.isfinite(cores)
        number = np.maximum(known.sum(axis=1), 1)
        pairs = np.stack([np.where(known, v, 0.0).sum(axis=1) / number for v in (tuples, cores)])
        return {
            task: [Observation(*pairs[:, i].tolist()) for i in rows if known[i].any()]
            for task, rows in self._of_task.items()
        }

    def _doubts(self, throttled: Mapping[str, float]) -> Iterator[Remedy]:
        """Sentences on gaps, and on TaskManagers that had too little CPU."""
        yield from map(Remedy, self.notes)
        for facts in (self.memory, self.checkpoints):
            yield from map(Remedy, () if facts is None else facts.notes())
        missing = 1 - float(self.complete.mean())
        if missing > MIN_GAP:
            edges = np.flatnonzero(np.diff(self.complete, prepend=True, append=True))
            gaps = list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
            first, last = max(gaps, key=lambda gap: gap[1] - gap[0])
            yield Remedy(
                f"metrics of the job are missing in {percent(missing)} of this time, for "
                f"{duration((last - first) * self.grid.step)} from "
                f"{moment(float(self.grid.ends[first]) - self.grid.step)} on"
            )
        if stopped := [d for d, share in throttled.items() if share >= MIN_CAUSE]:
            most = max(throttled.values())
            yield Remedy(
                f"at the highest rates, a quota stopped {listed(sorted(map(shown, stopped)))} in "
                f"up to {percent(most)} of its periods: more CPU is the first remedy"
            )


class _Average(NamedTuple):
    """Adjacent windows."""

    at: Ints  # their numbers
    rate: float  # tuples/s of all sources
