"""Flows of the sources of a job: emitted and offered rates, and lag.

Lag decides first. The pending records of a source have arrived and were not read yet, so

    offered = emitted + growth of the lag,

with as many tuples per pending record as per read record. A source whose lag does not grow keeps
up, despite back-pressure and full CPU, unless draining the lag would take longer than
`MAX_BACKLOG_SECONDS`: then another layout may drain it sooner. Without a reported lag, a source
that is back-pressured, has no free CPU or is always busy may be offered more than it emits.

While a subtask of a source drains a backlog, it reads as fast as its TaskManager allows. Its share
of the input is the share of the records in its partitions of Kafka, or of the records that it has
read since the start of the job. The sustained rate of the source, at which no subtask falls behind,
is the smallest (rate of a draining subtask / its share). Sources without lag have no shares, and
count with their rate.
"""

import itertools
import math
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import stdev
from typing import NamedTuple

import numpy as np

from streamplace.display.report import duration
from streamplace.errors import SettingError
from streamplace.flink.constants import COUNT_ERRORS, RATE_ERRORS
from streamplace.flink.cpu.limits import FULL, cpu_seconds, cpu_shares
from streamplace.flink.cpu.threads import processes_of
from streamplace.flink.measure.sampling import (
    Activity,
    pending_of,
    sample,
    sent_by,
    source_metrics,
    tuples_per_record,
)
from streamplace.flink.program.operator_names import operators_in
from streamplace.flink.rest.client import FlinkError, NoAnswer, Rest, job_path
from streamplace.flink.rest.plan import plan_of, sources_of
from streamplace.model import StreamGraph
from streamplace.model.message_text import listed, quoted
from streamplace.model.units import MAX_VALUE, Quantity, digits, tuple_rate

MAX_BLOCKED_SHARE = 0.02
"""Maximum back-pressured share of the time of a source that emits its offered rate, and maximum
growth of its lag, relative to its rate."""
MAX_SUBTASK_BLOCKED_SHARE = 0.1
"""Maximum back-pressured share of the time of one of its subtasks; also Flink's own threshold."""
MIN_POLLED_RATE = 1000.0
"""Minimum tuples/s of a busy subtask of a source that is at its limit.

Below it, the subtask may be busy because it polls for input all the time.
"""
MAX_BACKLOG_SECONDS = 60.0
"""Maximum time in which a source that keeps up drains its backlog at its present rate.

Batches, late counts, and interruptions by restarts or moves, which took up to 46 s, leave such
backlogs, which are no reason to move a job.
"""
MIN_DRAINING_SECONDS = 2.0
"""Minimum time in which a draining subtask drains its backlog at its rate, at both ends of the
measurement: it fetches, and reports its lag, about once a second."""
MIN_RATE = 1e-9
"""Rate of silent sources, relative to the total rate: a source of a graph needs a rate above 0."""
RATE_SECONDS = 5.0
"""Duration of a measurement of the rates of sources."""
_FACTOR = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*[x×]\s*", re.ASCII)


class SubtaskFlow(NamedTuple):
    """A subtask of a source that reports its lag."""

    rate: float  # emitted tuples/s
    arrived: float  # read and pending tuples so far
    pending: tuple[float, float]  # pending tuples at both ends of the measurement
    seconds: float = RATE_SECONDS  # duration of the measurement

    @property
    def is_draining(self) -> bool:
        """Whether it has a backlog all the time, and so reads as fast as it can."""
        return min(self.pending) > MIN_DRAINING_SECONDS * self.rate > 0

    @property
    def growth(self) -> float:
        """Growth of its lag, in tuples/s."""
        return (self.pending[1] - self.pending[0]) / max(self.seconds, 1.0)

    @property
    def falls_behind(self) -> bool:
        """Whether its lag grows although it reads as fast as it can."""
        noise = COUNT_ERRORS * counting_error(self.rate, self.seconds)
        return self.is_draining and self.growth > MAX_BLOCKED_SHARE * self.rate + noise


@dataclass(frozen=True, slots=True)
class SourceFlow:
    """Flow of a source, or of all sources of a job together."""

    rate: float  # emitted tuples/s
    error: float = 0.0  # standard error of the rate, from its variation during the measurement
    is_limited: bool = False  # whether the source, or one of several, may be offered more
    # Whether the lag or the busy time of each source shows that it emits all that arrives.
    keeps_up: bool = False
    # Source → its flow; from `source_flow`, only sources whose name stays the same after a move.
    sources: Mapping[str, "SourceFlow"] = field(default_factory=dict)
    name: str = ""
    why: str | None = None  # why it may be offered more than it emits
    pending: float | None = None  # pending tuples; None unless all sources report them
    growth: float = 0.0  # growth of the lag, in tuples/s
    back_pressured: float = 0.0  # share of the time with back-pressure; 0 if unknown
    subtasks: Sequence[SubtaskFlow] = ()  # empty if they do not report their lag
    partitions: int = 0  # number of its partitions of Kafka; 0 if unknown, or for other sources

    @property
    def held_back(self) -> frozenset[str]:
        """Sources that may be offered more than they emit."""
        return frozenset(name for name, source in self.sources.items() if source.is_limited)

    @property
    def offered(self) -> float | None:
        """Tuples/s that arrive; None if a source without reported lag may be offered more."""
        if self.pending is not None:
            return max(0.0, self.rate + self.growth)
        if self.sources:
            rates = [source.offered for source in self.sources.values()]
            known = [rate for rate in rates if rate is not None]
            return math.fsum(known) if len(known) == len(rates) else None
        return None if self.is_limited else self.rate

    @property
    def lag(self) -> str:
        """Lag in words, with the subtasks that fall behind."""
        if self.pending is None:
            return "unknown, because its connector reports no pendingRecords"
        if not self.pending:
            return "nothing waits"
        words = f"{digits(self.pending)} tuples wait, "
        if self.growth < 0:
            words += f"drained in {duration(self.pending / -self.growth)} at this rate"
        else:
            words += f"{digits(self.growth)} more per second"
        for i, subtask in enumerate(self.subtasks):
            if subtask.falls_behind:
                words += f"; {self.name}#{i} falls behind by {digits(subtask.growth)} tuples/s"
        return words

    @property
    def sustained(self) -> float | None:
        """Tuples/s at which no subtask would fall behind its share of the input.

        None unless a subtask drains a backlog, and so shows how much it can read. Other subtasks
        are not assumed to read more than they do.
        """
        if self.sources:
            limits = [(source.sustained, source.rate) for source in self.sources.values()]
            if all(limit is None for limit, _ in limits):
                return None
            return math.fsum(rate if limit is None else limit for limit, rate in limits)
        total = math.fsum(subtask.arrived for subtask in self.subtasks)
        draining = [subtask for subtask in self.subtasks if subtask.is_draining]
        rates = [subtask.rate * total / subtask.arrived for subtask in draining]
        if draining and any(s.arrived > 0 and not s.is_draining for s in self.subtasks):
            rates.append(self.rate)
        return min(rates, default=None)

    def misses(self, other: "SourceFlow", share: float) -> bool:
        """Whether the rate is lower than a share of another, beyond the noise of both."""
        noise = RATE_ERRORS * math.hypot(self.error, share * other.error)
        return self.rate + noise < share * other.rate


def flow_of(
    name: str,
    operator: str,
    activity: Activity,
    parallelism: int,
    *,
    full: Sequence[str] = (),
    sees_cpu: bool = True,
    subtasks: Sequence[SubtaskFlow] = (),
    partitions: int = 0,
) -> SourceFlow:
    """Flow of one source.

    ``operator``: its name in the names of its metrics.
    ``activity``: metrics of its task.
    ``full``: TaskManagers with subtasks of it that had no free CPU.
    ``sees_cpu``: whether a TaskManager with a thread that cannot run more would be in ``full``.
    Otherwise, threads that are busy all the time show that a source is at its limit.
    """
    metric = sent_by(operator)
    metric = metric if metric in activity.rates else "numRecordsOut"
    rate = activity.rates.get(metric, 0.0)
    pending = pending_of(operator)
    tuples, records = tuples_per_record(operator, activity), activity.totals.get(pending)
    lag = None if records is None else tuples * records
    grows = lag_grows(activity, pending, rate / tuples)
    is_large = lag is not None and lag > MAX_BACKLOG_SECONDS * rate
    busy = None if activity.busy is None else activity.busy / parallelism
    is_busy = busy is not None and busy >= FULL
    blocked, max_blocked = activity.back_pressured / parallelism, activity.max_back_pressured
    why = None
    if grows:
        why = "its backlog grows"
    elif is_large:
        why = f"{digits(lag or 0.0)} tuples wait for it"
    elif grows is None:
        if blocked > MAX_BLOCKED_SHARE:
            why = f"it is back-pressured {100 * blocked:.0f} % of the time"
        elif max_blocked > MAX_SUBTASK_BLOCKED_SHARE:
            why = f"one of its subtasks is back-pressured {100 * max_blocked:.0f} % of the time"
        elif full:
            why = f"{listed(list(full))} has no CPU left for it"
        elif is_busy and not sees_cpu and rate >= MIN_POLLED_RATE * parallelism:
            why = f"it is busy {100 * (busy or 0.0):.0f} % of the time"
    return SourceFlow(
        rate,
        math.hypot(_error(activity, metric), counting_error(rate, activity.seconds)),
        is_limited=why is not None,
        keeps_up=rate > 0
        and why is None
        and (grows is False or (busy is not None and not is_busy)),
        name=name,
        why=why,
        pending=lag,
        growth=tuples * (activity.growth(pending) or 0.0),
        back_pressured=blocked,
        subtasks=subtasks,
        partitions=partitions,
    )


def together(flows: Iterable[SourceFlow]) -> SourceFlow:
    """Flow of several sources together."""
    sources = list(flows)
    pending = [flow.pending for flow in sources if flow.pending is not None]
    return SourceFlow(
        math.fsum(flow.rate for flow in sources),
        is_limited=any(flow.is_limited for flow in sources),
        keeps_up=all(flow.keeps_up for flow in sources),
        sources={flow.name: flow for flow in sources},
        pending=math.fsum(pending) if len(pending) == len(sources) else None,
        growth=math.fsum(flow.growth for flow in sources),
    )


def source_flow(rest: Rest, job: str, seconds: float = RATE_SECONDS) -> SourceFlow | None:
    """Measure the sources of a job; None if Flink does not report their output."""
    _, tasks, edges = plan_of(rest.running_job(job))
    running = [task for task in sources_of(tasks, edges) if not task.has_ended]
    metrics = {task.id: source_metrics(task.operators[0]) for task in running}
    processes = processes_of(rest)
    before = {device: cpu_seconds(pid) for device, pid in processes.items()}
    began = time.monotonic()
    try:
        sampled = sample(rest, job, [*metrics], seconds, metrics)
    except NoAnswer:
        raise
    except FlinkError:  # the job has ended
        return None
    # Flink may count no tuples of a source, or fetch no metrics now
    counts = {task.id: sent_by(task.operators[0]) for task in running}
    is_counted = (counts[v] in row.rates and row.seconds > 0 for v, row in sampled.items())
    if not sampled or not all(is_counted):
        return None
    passed = max(time.monotonic() - began, 1e-9)
    used = {
        device: max(0.0, cpu_seconds(pid) - before[device]) / passed
        for device, pid in processes.items()
    }
    shares = cpu_shares(processes, used)
    full = {device for device, share in shares.items() if share.is_full}
    visible = {device for device, share in shares.items() if share.shows_full_threads}
    flows, identified = [], {}
    for task in running:
        rows = rest.get(job_path(job, "vertices", task.id))["subtasks"]
        devices = {str(row.get("taskmanager-id")) for row in rows}
        operator, name = task.operators[0], operators_in(task.name)[0]
        is_sure = name not in task.unsure  # then the name is the same after a move
        flow = flow_of(
            name if is_sure else operator,
            operator,
            sampled[task.id],
            task.parallelism,
            full=sorted(full & devices),
            sees_cpu=devices <= visible,
        )
        flows.append(flow)
        if is_sure:
            identified[name] = flow
    return replace(
        together(flows),
        error=math.hypot(*(_error(sampled[v], sent) for v, sent in counts.items())),
        sources=identified,
    )


def lag_grows(activity: Activity, pending: str, rate: float) -> bool | None:
    """Return whether the lag of a source grows; None if it reports none.

    Records of a transaction arrive together. So a growing lag must grow in both halves of the time,
    and its minimum must be larger in the second half.

    ``pending``: metric of its unread records.
    ``rate``: read records/s.
    """
    growth, values, is_steady = activity.growth(pending), activity.values(pending), True
    if growth is None:
        return None
    if len(values) > 2:
        (start, low), *inner, (end, high) = values
        middle = (start + end) / 2
        _, half = min(inner, key=lambda value: abs(value[0] - middle))
        first = min(value for now, value in values if now <= middle)
        second = min(value for now, value in values if now > middle)
        is_steady = low < half < high and second > first
    noise = COUNT_ERRORS * counting_error(rate, activity.seconds)
    return is_steady and growth > MAX_BLOCKED_SHARE * rate + noise


def counting_error(rate: float, seconds: float) -> float:
    """Standard error of a counted rate, if tuples arrive at random."""
    return math.sqrt(rate / max(seconds, 1.0))


def _error(activity: Activity, metric: str) -> float:
    """Standard error of the rate of a metric, from the rates between updates."""
    pairs = itertools.pairwise(activity.values(metric))
    rates = [(high - low) / (end - start) for (start, low), (end, high) in pairs]
    return stdev(rates) / math.sqrt(len(rates)) if len(rates) > 1 else 0.0


def with_offered(graph: StreamGraph, flow: SourceFlow) -> StreamGraph:
    """Return the graph with the offered rates of its sources, where known.

    A source that only drains its backlog, with no new input, counts as silent. If no source is
    offered anything, the graph stays as it is.
    """
    offered = {
        name: source.rate if source.offered is None else source.offered
        for name, source in flow.sources.items()
    }
    min_rate = MIN_RATE * sum(offered.values())
    if not min_rate:
        return graph
    rates = [
        max(offered[name], min_rate) if name in offered else rate
        for name, rate in zip(graph.operators.name, graph.operators.rate.tolist(), strict=True)
    ]
    return graph.with_operators(replace(graph.operators, rate=np.array(rates, np.float64)))


def requested_rate(rate: Quantity, flow: SourceFlow | None = None) -> float:
    """Tuples/s of a text such as ``"2x"`` or ``"50 k/s"``; without a flow, it is only checked.

    >>> requested_rate("2x", SourceFlow(30.0)), requested_rate("1 k/s"), requested_rate("2x")
    (60.0, 1000.0, 2.0)
    """
    match = _FACTOR.fullmatch(rate) if isinstance(rate, str) else None
    offered = 1.0 if flow is None else flow.offered
    if match is None:
        total = tuple_rate(rate)
    elif offered is None and flow is not None:
        unknown = [name for name, source in flow.sources.items() if source.offered is None]
        raise SettingError(
            f"{listed(unknown)} may be offered more than is emitted, because of back-pressure or "
            "missing CPU, and no pending records are reported, so the rate that "
            f"--rate {rate} multiplies is unknown; give --rate in tuples/s"
        )
    else:
        total = float(match[1]) * (offered or 0.0)
    if not 0 < total <= MAX_VALUE:
        raise SettingError(
            f"--rate is {quoted(str(rate))}, or {total:g} tuples/s; it must be above 0 and at most "
            f"{MAX_VALUE:g}, such as 50000, or 2x for twice the offered rate"
        )
    return total
