"""All jobs of a namespace in one table: the pods of each, the pods that it needs, and the saving.

Jobs on Kubernetes are judged one by one, as by `advise`. From Prometheus alone, the streams between
operators are unknown: a job then needs its CPU at the peak, and no placement is planned.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from math import ceil, inf
from typing import Any, NamedTuple

import numpy as np

from streamplace.display.report import Bar, Cell, Part, Report, Sheet, brief_and_detail
from streamplace.flink.advise.advise import Advice, MeasuredJob, current_machines
from streamplace.flink.constants import MIN_CAUSE
from streamplace.flink.cpu.limits import FULL
from streamplace.flink.measure.cluster import finite
from streamplace.flink.measure.profile import JobProfile
from streamplace.flink.measure.source_lag import SourceFlow, requested_rate
from streamplace.flink.prometheus.job_history import JobHistory, percentile
from streamplace.flink.prometheus.reading import JobMetrics
from streamplace.io.ledger import NOISE
from streamplace.model.arrays import Floats
from streamplace.model.message_text import counted, shown
from streamplace.model.mixins import Displayed
from streamplace.model.units import digits, format_bytes
from streamplace.model.units import mips as parsed_mips
from streamplace.planning.offers import Catalogue

CPU, MEMORY, STATE = "CPU", "memory", "state"
FREE = 0.25
"""Share of the CPU that stays free if only metrics are known; judgement: windows of five minutes
hide peaks, and a few operators may get most of the CPU."""
FROM_METRICS = (
    f"Streams between operators are in no metric. So a job needs cores for its CPU at the peak, of "
    f"which {FREE:.0%} stay free, and the memory that it held; whether an operator can use so many "
    "cores, and where it should run, is not judged. For that, give --rest, too."
)


@dataclass(frozen=True, slots=True)
class Pods:
    """Equal pods."""

    number: int
    cores: float  # of each pod
    memory: float | None = None  # bytes of each pod
    offer: str = ""

    def __str__(self) -> str:
        """Return a short text.

        >>> str(Pods(2, 0.5)), str(Pods(1, 4.0, offer="large"))
        ('2 × 0.5', '1 × 4 (large)')
        """
        text = f"{self.number} × {self.cores:.3g}"
        return f"{text} ({self.offer})" if self.offer else text

    @property
    def cpu(self) -> float:
        """Cores of all."""
        return self.number * self.cores

    def is_like(self, other: "Pods") -> bool:
        """Whether each of these pods has the cores of the other pods, and at least their memory."""
        is_large = (self.memory or inf) >= (other.memory or 0.0) * (1 - NOISE)
        return is_large and math.isclose(self.cores, other.cores, rel_tol=NOISE)


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job, or why it is not judged; unknown quantities are None."""

    name: str
    why: str | None = None  # why it is not judged
    pods: Pods | None = None
    cost: float | None = None  # per hour by the offers, otherwise cores
    load: float | None = None  # share of the CPU in use at the peak
    cores: float | None = None  # needed cores
    needs: Pods | None = None
    saves: float | None = None  # negative if it needs more than it has
    limit: str | None = None  # the fullest of CPU, operators, memory, and state (its checkpoints)
    full: float | None = None  # how full that is


class JobUsage(NamedTuple):
    """Use of TaskManagers by a job at its peak, or while it was measured."""

    cores: float
    # Possible limit other than CPU → how full it is: operators by the share of the time for which
    # their busiest subtask is busy, the heap, and the interval of checkpoints.
    full: Mapping[str, float]
    throttled: float = 0.0  # largest share of periods in which a quota has stopped a TaskManager

    def limit(self, cores: float | None) -> tuple[str, float]:
        """The fullest resource on a number of cores, and how full it is.

        If the CPU is used up, it counts as the fullest, since threads that lack CPU are busy for
        longer.

        >>> usage = JobUsage(1.9, {"map": 1.0, "memory": 0.4})
        >>> usage.limit(8.0), usage.limit(2.0)
        (('map', 1.0), ('CPU', 0.95))
        """
        load = 0.0 if not cores else self.cores / cores
        if load >= FULL or self.throttled >= MIN_CAUSE:
            return CPU, load
        loads = {CPU: load, **self.full}
        fullest = max(loads, key=lambda name: loads[name])
        return fullest, loads[fullest]

    @classmethod
    def of_history(cls, history: JobHistory | JobMetrics) -> "JobUsage":
        """Use in the window with most CPU."""
        at = int(np.nanargmax(history.used))

        def largest(rows: Mapping[str, Floats]) -> float:
            return max((float(row[at]) for row in rows.values() if np.isfinite(row[at])), default=0)

        full = {shown(name, 40): largest({name: row}) for name, row in history.busy.items()}
        if (memory := history.memory) is not None:
            full[MEMORY] = memory.heap_needed / memory.heap_size
        if (checkpoints := history.checkpoints) is not None and checkpoints.interval:
            full[STATE] = checkpoints.longest / checkpoints.interval
        return cls(float(history.used[at]), full, largest(history.devices.throttled))

    @classmethod
    def of_profile(cls, profile: JobProfile) -> "JobUsage":
        """Use while a job was measured."""
        full = {}
        for task in profile.tasks:
            activity = profile.activity[task.id]
            mean = (activity.busy or 0.0) / max(1, task.parallelism)
            busy = [subtask.busy for subtask, _ in profile.subtasks.get(task.id, ())]
            shares = [ms / 1000 / activity.seconds for ms in busy if math.isfinite(ms)]
            full[shown(task.name, 40)] = max([mean, *shares])
        devices = {name for names in profile.present.devices.values() for name in names}
        cores = sum(cpu.cores for cpu in profile.cpu.values()) + len(devices) * (profile.java or 0)
        return cls(cores, full, max(profile.throttled.values(), default=0.0))


@dataclass(frozen=True, slots=True, eq=False)
class NamespaceAdvice(Displayed):
    """The jobs of a namespace, or of a Prometheus."""

    title: str
    jobs: Sequence[JobRow]
    unit: str  # of costs
    notes: Sequence[str] = ()

    @property
    def rows(self) -> list[JobRow]:
        """Jobs in the order of their saving; jobs that are not judged come last."""

        def key(row: JobRow) -> tuple[bool, bool, float, str]:
            return row.why is not None, row.saves is None, -(row.saves or 0.0), row.name

        return sorted(self.jobs, key=key)

    def report(self) -> Report:
        """Return a sentence, the table, and why other jobs are not in it."""
        judged = [row for row in self.rows if row.why is None]
        others = tuple((row.name, row.why) for row in self.rows if row.why is not None)
        cost = sum(row.cost or 0.0 for row in judged)
        saves = sum(max(0.0, row.saves or 0.0) for row in judged)
        parts: list[Part] = [
            f"Judged: {len(judged)} of {counted(len(self.rows), 'job')}. "
            f"{self.unit.capitalize()}: {cost:.4g} today, of which {saves:.4g} can be saved."
        ]
        if judged:
            parts += brief_and_detail(partial(self._sheet, judged))
        if others:
            parts.append(Sheet(("job", "not judged, because"), others))
        return Report((*parts, *self.notes), self.title)

    def _sheet(self, rows: Sequence[JobRow], is_brief: bool) -> Sheet:
        """Table of judged jobs; the long one has memory and bars."""
        load = "CPU" if is_brief else "CPU at the peak"
        head = ("job", "pods × cores", self.unit, load, "needs", "saves", "fullest")
        return Sheet(head, tuple(_cells(row, is_brief=is_brief) for row in rows))

    def to_json(self) -> dict[str, Any]:
        """Return a JSON document."""
        jobs = [asdict(row) for row in self.rows]
        return {"unit": self.unit, "jobs": jobs, "notes": [*self.notes]}


def _cells(row: JobRow, *, is_brief: bool) -> tuple[Cell, ...]:
    """Cells of a judged job."""
    needs = "more" if row.cores is None else f"{digits(row.cores)} cores"
    size = None if is_brief or row.pods is None else row.pods.memory
    load: Cell = "—"
    if row.load is not None:
        load = f"{100 * row.load:.0f} %" if is_brief else Bar(row.load)
    return (
        row.name,
        f"{row.pods or '—'}" + (f", {format_bytes(size)}" if size else ""),
        "—" if row.cost is None else f"{row.cost:.4g}",
        load,
        str(row.needs or needs),
        "—" if row.saves is None else f"{row.saves:.4g}",
        f"{shown(row.limit or '', 16 if is_brief else 80)} {100 * (row.full or 0.0):.0f} %",
    )


def row_of_job(
    name: str,
    job: MeasuredJob,
    history: JobHistory | None,
    advice: Advice | None,
    speed: float,
    offers: Catalogue | None,
) -> JobRow:
    """Row of a measured job.

    ``advice``: None if the job is held back, and needs more than it has.
    ``speed``: MIPS of a core.
    """
    devices, current = job.alone.devices, current_machines(job.alone, offers, job.profile)
    total = sum(device.cores * parsed_mips(device.mips) for device in devices) / speed
    pods = Pods(len(devices), total / len(devices), devices[0].memory)
    usage = JobUsage.of_profile(job.profile) if history is None else JobUsage.of_history(history)
    limit, full = usage.limit(total)
    cost: float | None = total
    if offers is not None:
        cost = None if current.unmatched else current.cost
    row = JobRow(name, None, pods, cost, usage.cores / total, limit=limit, full=full)
    if advice is None:
        return row
    if not advice.commands:
        return replace(row, cores=total, needs=pods, saves=None if cost is None else 0.0)
    kinds = {pod.offer: pod.cores for pod, _ in _kinds(offers, pods, speed)}
    machines = advice.plan.machines
    cores = sum(n * kinds.get(kind, pods.cores) for kind, n in machines.items())
    number, names = sum(machines.values()), ", ".join(kind for kind in machines if kind in kinds)
    needs = Pods(number, cores / number, offer=names)
    planned = cores if offers is None else advice.plan.cost
    saves = None if cost is None else cost - planned
    return replace(row, cores=cores, needs=needs, saves=saves)


def row_of_metrics(
    name: str, metrics: JobMetrics, rate: str, speed: float, offers: Catalogue | None
) -> JobRow:
    """Row of a job of which only metrics are known.

    It needs c / (1 - `FREE`) cores, where c is a percentile of its CPU or a multiple of the peak,
    and as much memory as all its pods hold together.
    """
    usage, managers, share = JobUsage.of_history(metrics), metrics.managers, percentile(rate)
    used = metrics.used[np.isfinite(metrics.used)]
    level = float(np.quantile(used, share or 1.0, method="inverted_cdf"))
    cores = level * (1.0 if share else requested_rate(rate, SourceFlow(1.0))) / (1 - FREE)
    size, memory = (_mean(limits, managers) for limits in (metrics.cores, metrics.bytes))
    pods = None if size is None else Pods(len(managers), size, memory)
    held = memory if metrics.memory is None or memory is None else metrics.memory.process(memory)
    kinds = _kinds(offers, pods, speed)
    plans = [_pods_for(cores, len(managers) * (held or 0.0), pod, price) for pod, price in kinds]
    limit, full = usage.limit(None if pods is None else pods.cpu)
    row = JobRow(name, None, pods, None, None, cores, limit=limit, full=full)
    if plans:
        needs, planned = min(plans, key=lambda plan: plan[1])
        row = replace(row, needs=needs)
    if pods is None:
        return row
    like = [price for pod, price in kinds if pod.is_like(pods)]
    cost = len(managers) * min(like) if like else None
    saves = None if cost is None else cost - planned
    return replace(row, cost=cost, load=usage.cores / pods.cpu, saves=saves)


def _kinds(offers: Catalogue | None, pods: Pods | None, speed: float) -> list[tuple[Pods, float]]:
    """Pods of each offer and their prices; without offers, a present pod and its cores."""
    if offers is None:
        return [] if pods is None else [(replace(pods, number=1), pods.cores)]
    return [
        (Pods(1, o.cores * float(o.mips) / speed, finite(float(o.memory)), o.name), o.price)
        for o in offers.offers
    ]


def _pods_for(cores: float, memory: float, pod: Pods, price: float) -> tuple[Pods, float]:
    """Number of equal pods with these cores and bytes in all, and their price."""
    needed = max(cores / pod.cores, memory / (pod.memory or inf))
    number = max(1, ceil(needed * (1 - NOISE)))
    return replace(pod, number=number), number * price


def _mean(limits: Mapping[str, Floats], managers: Sequence[str]) -> float | None:
    """Mean of the last limits of TaskManagers; None if one is unknown."""
    last = [
        values[np.isfinite(values)][-1:]
        for name in managers
        if (values := limits.get(name)) is not None
    ]
    known = np.concatenate([np.empty(0), *last])
    return float(known.mean()) if len(known) == len(managers) else None
