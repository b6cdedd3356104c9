"""Settling: check that a job that was just started keeps running as well as before."""

import itertools
import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from statistics import stdev
from urllib.parse import quote

from streamplace.engines.flink.cpu.limits import FULL, CpuTime, cpu_shares
from streamplace.engines.flink.cpu.threads import processes_of
from streamplace.engines.flink.measure.backlogs import (
    BACKLOG_SECONDS,
    backlog_grows,
    counting_error,
    is_blocked,
)
from streamplace.engines.flink.measure.key_shares import WAITS
from streamplace.engines.flink.measure.sampling import Activity, pending_of, sample, sent_by
from streamplace.engines.flink.move.carried import PERIODIC_LIMIT_MS
from streamplace.engines.flink.move.pause import draining_seconds
from streamplace.engines.flink.move.state import checkpoint_totals
from streamplace.engines.flink.rest.answers import Job
from streamplace.engines.flink.rest.client import FINISHED, FlinkError, NoAnswer, Refusal, Rest
from streamplace.engines.flink.rest.tasks import job_operators, source_names
from streamplace.model.messages import quoted
from streamplace.model.units import digits

LOOK_SECONDS = 0.5
RATE_SECONDS = 5.0
"""Duration of each measurement of a rate that is steady."""
VARYING_SECONDS = 60.0
"""The same of a rate that varies, such as with windows that fire once a minute."""
LEAST_NOISE = 0.03
"""Relative difference between runs of one placement (docs/evidence.md)."""
ERRORS = 2.0
"""Minimum difference of two rates in standard errors for one to be lower."""
MOST_LOOKS = 6
"""Maximum number of measurements while a job becomes faster, as its code is compiled."""


@dataclass(frozen=True, slots=True)
class Settling:
    """Conditions that a moved job must meet after its start; otherwise it is moved back."""

    seconds: float = 30.0  # duration of the check; 0 omits it
    # Share of the previous rate that its sources must reach; 0 compares no rates.
    least_rate: float = 0.8
    # Whether the job must not become slower at all where it is held back before or afterwards, if
    # both rates are known.
    never_slower: bool = False

    @property
    def compares_rates(self) -> bool:
        """Whether the rates before and after are compared."""
        return self.seconds > 0 and self.least_rate > 0


@dataclass(frozen=True, slots=True)
class SourceFlow:
    """Output of the sources of a job."""

    rate: float  # tuples/s of all of them
    error: float = 0.0  # standard error of the rate, from its variation during the measurement
    # Whether one of them was back-pressured, or had no CPU left on its device.
    is_limited: bool = False
    # Whether all of them emit what arrives, as far as it is measured: none is silent, limited, or
    # busy all the time, and none has a backlog that grows. Of each, the busy time or the backlog
    # must be known.
    keeps_up: bool = False
    knows_backlog: bool = False  # whether all of them report their backlog
    # Whether each of those that are limited waits for input much of the time nevertheless.
    waits: bool = False
    # Whether the backlog of one of them grows, or one is busy all the time and has a large backlog
    # or does not report it.
    falls_behind: bool = False
    # Source → its own output, of those whose name does not depend on how a job is submitted.
    sources: Mapping[str, "SourceFlow"] = field(default_factory=dict)
    seconds: float = RATE_SECONDS  # minimum duration of the measurement

    def is_below(self, other: "SourceFlow") -> bool:
        """Whether the rate is lower than another, beyond the noise of both."""
        return self.rate + max(self._noise(other), LEAST_NOISE * other.rate) < other.rate

    def misses(self, other: "SourceFlow", share: float) -> bool:
        """Whether the rate is lower than a share of another, beyond the noise of both."""
        least = replace(other, rate=share * other.rate, error=share * other.error)
        return self.rate + self._noise(least) < least.rate

    def _noise(self, other: "SourceFlow") -> float:
        return ERRORS * math.hypot(self.error, other.error)

    @property
    def parts(self) -> dict[str, "SourceFlow"]:
        """Output of all sources together, under an empty name, and of each."""
        return {"": self, **self.sources}

    def slower(self, before: "SourceFlow") -> dict[str, tuple["SourceFlow", "SourceFlow"]]:
        """Parts that were held back before or are now, and are slower although they do not keep up.

        Each has its output before and now.
        """
        now = self.parts
        return {
            name: (was, now[name])
            for name, was in before.without_ended(self).parts.items()
            if name in now and (was.is_limited or now[name]._is_held_back)
            if not now[name].keeps_up and now[name].is_below(was)
        }

    @property
    def _is_held_back(self) -> bool:
        return self.falls_behind or (self.is_limited and not self.waits)

    def without_ended(self, now: "SourceFlow") -> "SourceFlow":
        """Output without that of sources which have ended since."""
        ended = [flow for name, flow in self.sources.items() if name not in now.sources]
        if not ended:
            return self
        left = {name: flow for name, flow in self.sources.items() if name in now.sources}
        is_limited = self.is_limited and (
            any(flow.is_limited for flow in left.values())
            or not any(flow.is_limited for flow in ended)
        )
        rate = max(0.0, self.rate - math.fsum(flow.rate for flow in ended))
        return replace(self, rate=rate, is_limited=is_limited, sources=left)

    def rises(self, earlier: "SourceFlow", names: Iterable[str]) -> bool:
        """Whether one of these parts is faster than earlier."""
        now, then = self.parts, earlier.parts
        return any(name in now and then[name].is_below(now[name]) for name in names)


def source_rate(rest: Rest, job: str) -> float | None:
    """Tuples/s that the sources of a job emit; None if Flink does not report them."""
    flow = source_flow(rest, job)
    return None if flow is None else flow.rate


def seconds_for(*, varies: bool) -> float:
    """Duration of each measurement of a rate that varies, or does not."""
    return VARYING_SECONDS if varies else RATE_SECONDS


def source_flow(rest: Rest, job: str, seconds: float = RATE_SECONDS) -> SourceFlow | None:
    """Measure the output of the sources of a job; None if Flink does not report it."""
    document = rest.running_job(job)
    names = _sources(document)
    number = {vertex["id"]: vertex["parallelism"] for vertex in document["vertices"]}
    processes = processes_of(rest)
    before = {device: CpuTime.of(pid) for device, pid in processes.items()}
    try:
        counters = {v: (sent_by(name), pending_of(name)) for v, name in names.items()}
        activities = sample(rest, job, [*names], seconds, counters)
    except FlinkError:  # the job has ended
        return None
    if not names or any(sent_by(name) not in activities[v].rates for v, name in names.items()):
        return None
    seen = [activities[vertex] for vertex in names]
    is_unread = any(one.seconds == 0 and not one.is_silent for one in seen)
    if is_unread or all(one.is_silent for one in seen):  # Flink fetches no metrics now
        return None
    full = _full(processes, before)
    flows = {
        v: _flow(
            activities[v], name, number[v], has_cpu=not (full and full & _devices(rest, job, v))
        )
        for v, name in names.items()
    }
    return SourceFlow(
        math.fsum(flow.rate for flow in flows.values()),
        math.hypot(*(_error(activities[v], sent_by(name)) for v, name in names.items())),
        any(flow.is_limited for flow in flows.values()),
        all(flow.keeps_up for flow in flows.values()),
        all(flow.knows_backlog for flow in flows.values()),
        all(flow.waits for flow in flows.values() if flow.is_limited),
        any(flow.falls_behind for flow in flows.values()),
        {name: flows[v] for v, name in _lasting_names(document).items() if v in flows},
        seconds,
    )


def _flow(seen: Activity, source: str, subtasks: int, *, has_cpu: bool) -> SourceFlow:
    """Output of one source, from the activity of its task."""
    rate = seen.rates[sent_by(source)]
    blocked = is_blocked(seen.back_pressured / subtasks, seen.most_back_pressured)
    is_limited = blocked or not has_cpu
    grows = backlog_grows(seen, pending_of(source), rate)
    is_busy = seen.busy is not None and seen.busy >= FULL * subtasks
    is_unknown = seen.busy is None and grows is None
    keeps_up = rate > 0 and not (is_limited or grows or is_busy or is_unknown)
    error = math.hypot(_error(seen, sent_by(source)), counting_error(seen, rate))
    waits = seen.idle >= WAITS * subtasks
    has_more = grows is None or seen.totals.get(pending_of(source), 0.0) > BACKLOG_SECONDS * rate
    falls_behind = bool(grows) or (is_busy and has_more)
    return SourceFlow(rate, error, is_limited, keeps_up, grows is not None, waits, falls_behind)


def _full(processes: Mapping[str, int], before: Mapping[str, CpuTime]) -> set[str]:
    """TaskManagers of this machine that had no CPU left since an earlier measurement."""
    used = {
        device: before[device].cores_until(CpuTime.of(pid)) for device, pid in processes.items()
    }
    return {device for device, share in cpu_shares(processes, used).items() if share.is_full}


def _devices(rest: Rest, job: str, vertex: str) -> set[str]:
    """TaskManagers with subtasks of a vertex."""
    answer = rest.get(f"/jobs/{job}/vertices/{quote(vertex, safe='')}")
    return {str(row.get("taskmanager-id")) for row in answer["subtasks"]}


def _error(seen: Activity, metric: str) -> float:
    """Standard error of the rate of a vertex, from the rates between updates."""
    looks = [(at, row[metric]) for at, row in seen.looks if metric in row]
    pairs = itertools.pairwise(looks)
    rates = [(high - low) / (end - start) for (start, low), (end, high) in pairs]
    return stdev(rates) / math.sqrt(len(rates)) if len(rates) > 1 else 0.0


def settle(
    rest: Rest,
    job: str,
    settling: Settling,
    before: SourceFlow | None,
    checkpoint_seconds: float = 0.0,
) -> None:
    """Check a running job until it has settled.

    Raises FlinkError when it stops running, completes no checkpoint that was due, or is slower than
    before.
    """
    failed = checkpoint_totals(rest, job).failed
    deadline = time.monotonic() + settling.seconds
    while True:
        if _has_finished(rest, job):
            return
        left = deadline - time.monotonic()
        if left <= 0:
            break
        time.sleep(min(LOOK_SECONDS, left))
    try:
        _check_checkpoint(rest, job, settling.seconds, checkpoint_seconds, failed)
        check_rate(rest, job, settling, before)
    except NoAnswer:
        raise
    except FlinkError:
        if not _has_finished(rest, job):
            raise
    _has_finished(rest, job)  # its rate is unknown if it has failed while that was measured


def _has_finished(rest: Rest, job: str) -> bool:
    """Whether a job has finished by itself; raise FlinkError if it does not run, or restarted."""
    document = rest.job(job)
    if document["state"] == FINISHED:
        return True
    if document["state"] != "RUNNING" or document.get("timestamps", {}).get("RESTARTING"):
        raise FlinkError(f"job {job} is {document['state']} after its start: {rest.failure(job)}")
    return False


def check_rate(rest: Rest, job: str, settling: Settling, before: SourceFlow | None) -> None:
    """Raise FlinkError if a job is slower than before, and does not become faster.

    A job that was held back may be slower if it keeps up now, because its backlog is gone; any job
    may be if its sources report that nothing waits longer, because less arrives. One that kept up
    and falls behind now must not be, nor one that is held back now, unless its sources wait for
    input nevertheless. Its rate is measured for as long as it was before.
    """
    if not settling.compares_rates or before is None or not before.rate:
        return
    flow = source_flow(rest, job, before.seconds)
    for _ in range(MOST_LOOKS):
        if flow is None or not settling.never_slower or not (slower := flow.slower(before)):
            break
        earlier, flow = flow, source_flow(rest, job, before.seconds)
        if flow is not None and not flow.rises(earlier, slower):
            break
    if flow is None:
        return
    before = before.without_ended(flow)
    if flow.keeps_up and (before.is_limited or flow.knows_backlog):
        return
    changes = flow.slower(before) if settling.never_slower else {}
    if flow.misses(before, settling.least_rate):
        required = f"at least {settling.least_rate:.0%} required"
        changes = {"": (before, flow)}
    elif changes:
        required = "it must not be slower where it is held back"
    else:
        return
    name, (was, now) = next(iter(changes.items()))
    raise FlinkError(
        f"{f'source {quoted(name)} of ' if name else ''}job {job} reads {digits(now.rate)} "
        f"tuples/s, {now.rate / was.rate:.0%} of the {was.rate:.4g} before it was moved "
        f"({required})"
    )


def _check_checkpoint(
    rest: Rest, job: str, seconds: float, usual_seconds: float, failed_before: int
) -> None:
    """Raise FlinkError if none has completed, and one has failed meanwhile or was due.

    One is due if twice the interval and its duration have passed: the usual duration, or that for
    which the queues of the job delay it.
    """
    try:
        settings = rest.get(f"/jobs/{job}/checkpoints/config")
    except Refusal:  # it takes none, or has ended
        return
    # Flink takes no checkpoint within the least pause, not even after the start
    interval = max(settings.get("interval", PERIODIC_LIMIT_MS), settings.get("min_pause", 0)) / 1000
    counts = checkpoint_totals(rest, job)
    if counts.completed:
        return
    failed = counts.failed - failed_before
    if failed > 0:
        raise FlinkError(
            f"job {job} has completed no checkpoint {seconds:g} s after its start ({failed} failed)"
        )
    if 2 * interval > seconds:
        return
    duration = max(usual_seconds, draining_seconds(rest, job))
    if 2 * (interval + duration) <= seconds:
        raise FlinkError(
            f"job {job} has completed no checkpoint {seconds:g} s after its start, though one was "
            f"due every {interval:g} s" + (f" and takes {duration:.2g} s" if duration else "")
        )


def _sources(document: Job) -> dict[str, str]:
    """Vertices without inputs that run, with the names of their sources."""
    ended = {vertex["id"] for vertex in document["vertices"] if vertex["status"] == FINISHED}
    return {v: name for v, name in source_names(document).items() if v not in ended}


def _lasting_names(document: Job) -> dict[str, str]:
    """Vertices with the names of their first operators, if these are the same after a move."""
    tasks = zip(document["vertices"], job_operators(document), strict=True)
    return {
        vertex["id"]: task.names[0]
        for vertex, task in tasks
        if task.names and task.names[0] not in task.unsure
    }
