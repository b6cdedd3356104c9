"""Settling: check that a job that was just started keeps running as well as before."""

import itertools
import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import stdev
from urllib.parse import quote

from streamplace.engines.flink.cpu.limits import FULL, CpuTime, cpu_limit
from streamplace.engines.flink.cpu.threads import processes_of
from streamplace.engines.flink.measure.sampling import Activity, sample, sent_by
from streamplace.engines.flink.move.carried import PERIODIC_LIMIT_MS
from streamplace.engines.flink.move.state import checkpoint_counts
from streamplace.engines.flink.rest.answer_shapes import Job
from streamplace.engines.flink.rest.client import FINISHED, FlinkError, Refusal, Rest
from streamplace.model.units import digits

LOOK_SECONDS = 0.5
RATE_SECONDS = 5.0
"""Duration of each measurement of the rate."""
BLOCKED = 0.02
"""A source that is back-pressured for a larger share of its time is limited."""
LEAST_NOISE = 0.03
"""Relative difference between runs of one placement (docs/calibration.md)."""
ERRORS = 2.0
"""Minimum difference of two rates in standard errors for one to be lower."""
MOST_LOOKS = 6
"""Maximum number of measurements while a job becomes faster, as its code is compiled."""


@dataclass(frozen=True, slots=True)
class Settling:
    """Conditions that a moved job must meet after its start; otherwise it is moved back.

    Attributes
    ----------
    seconds
        Duration of the check; 0 omits it.
    least_rate
        Share of the previous rate that its sources must reach; 0 compares no rates.
    never_slower
        Whether a job whose sources were back-pressured must not become slower at all, if both
        rates are known.
    """

    seconds: float = 30.0
    least_rate: float = 0.8
    never_slower: bool = False

    @property
    def compares_rates(self) -> bool:
        """Whether the rates before and after are compared."""
        return self.seconds > 0 and self.least_rate > 0


@dataclass(frozen=True, slots=True)
class SourceFlow:
    """Output of the sources of a job.

    Attributes
    ----------
    rate
        Tuples/s of all of them.
    error
        Standard error of the rate, from its variation during the measurement.
    is_limited
        Whether one of them was back-pressured, or had no CPU left on its device.
    """

    rate: float
    error: float = 0.0
    is_limited: bool = False

    def is_below(self, other: "SourceFlow") -> bool:
        """Whether the rate is lower than another, beyond the noise of both."""
        noise = ERRORS * math.hypot(self.error, other.error)
        return self.rate + max(noise, LEAST_NOISE * other.rate) < other.rate


def source_rate(rest: Rest, job: str) -> float | None:
    """Tuples/s that the sources of a job emit; None if Flink does not report them."""
    flow = source_flow(rest, job)
    return None if flow is None else flow.rate


def source_flow(rest: Rest, job: str) -> SourceFlow | None:
    """Measure the output of the sources of a job; None if Flink does not report it."""
    document = rest.running_job(job)
    names = _sources(document)
    number = {vertex["id"]: vertex["parallelism"] for vertex in document["vertices"]}
    processes = processes_of(rest)
    before = {device: CpuTime.of(pid) for device, pid in processes.items()}
    try:
        counters = {vertex: (metric,) for vertex, metric in names.items()}
        activities = sample(rest, job, [*names], RATE_SECONDS, counters)
    except FlinkError:  # the job has ended
        return None
    rates = [activities[vertex].rates.get(metric) for vertex, metric in names.items()]
    full = _full(processes, before)
    if None in rates or not rates:
        return None
    if any(activities[vertex].seconds == 0 for vertex in names):  # Flink fetches no metrics now
        return None
    return SourceFlow(
        math.fsum(rate for rate in rates if rate),
        _error(activities, names),
        any(activities[v].back_pressured > BLOCKED * number[v] for v in names)
        or bool(full and full & _devices(rest, job, names)),
    )


def _full(processes: Mapping[str, int], before: Mapping[str, CpuTime]) -> set[str]:
    """TaskManagers of this machine that had no CPU left since an earlier measurement."""
    return {
        device
        for device, pid in processes.items()
        if (limit := cpu_limit(pid)) and before[device].cores_until(CpuTime.of(pid)) >= FULL * limit
    }


def _devices(rest: Rest, job: str, vertices: Iterable[str]) -> set[str]:
    """TaskManagers with subtasks of some vertices."""
    answers = (rest.get(f"/jobs/{job}/vertices/{quote(v, safe='')}") for v in vertices)
    return {str(row.get("taskmanager-id")) for one in answers for row in one["subtasks"]}


def _error(activities: Mapping[str, Activity], names: Mapping[str, str]) -> float:
    """Standard error of the sum of the rates of vertices, from the rates between updates."""
    errors = []
    for vertex, metric in names.items():
        looks = [(at, row[metric]) for at, row in activities[vertex].looks if metric in row]
        pairs = itertools.pairwise(looks)
        rates = [(high - low) / (end - start) for (start, low), (end, high) in pairs]
        errors.append(stdev(rates) / math.sqrt(len(rates)) if len(rates) > 1 else 0.0)
    return math.hypot(*errors)


def settle(rest: Rest, job: str, settling: Settling, before: SourceFlow | None) -> None:
    """Check a running job until it has settled.

    Raises
    ------
    FlinkError
        When it stops running, completes no checkpoint, or is slower than before.
    """
    deadline = time.monotonic() + settling.seconds
    while True:
        document = rest.job(job)
        if document["state"] == FINISHED:
            return
        if document["state"] != "RUNNING" or document.get("timestamps", {}).get("RESTARTING"):
            raise FlinkError(
                f"job {job} is {document['state']} after its start: {rest.failure(job)}"
            )
        left = deadline - time.monotonic()
        if left <= 0:
            break
        time.sleep(min(LOOK_SECONDS, left))
    _check_checkpoint(rest, job, settling.seconds)
    if settling.compares_rates and before is not None and before.rate:
        _check_rate(rest, job, settling, before)


def _check_rate(rest: Rest, job: str, settling: Settling, before: SourceFlow) -> None:
    """Raise FlinkError if a job is slower than before, and does not become faster."""
    strictly = settling.never_slower and before.is_limited
    flow = source_flow(rest, job)
    for _ in range(MOST_LOOKS):
        if flow is None or not strictly or not flow.is_below(before):
            break
        earlier, flow = flow, source_flow(rest, job)
        if flow is not None and not earlier.is_below(flow):
            break
    if flow is None:
        return
    if flow.rate < settling.least_rate * before.rate:
        required = f"at least {settling.least_rate:.0%} required"
    elif strictly and flow.is_below(before):
        required = "it was held back there, so it must not be slower"
    else:
        return
    raise FlinkError(
        f"job {job} reads {digits(flow.rate)} tuples/s, {flow.rate / before.rate:.0%} of the "
        f"{before.rate:.4g} before it was moved ({required})"
    )


def _check_checkpoint(rest: Rest, job: str, seconds: float) -> None:
    """Raise FlinkError if a checkpoint was due and none has completed."""
    try:
        settings = rest.get(f"/jobs/{job}/checkpoints/config")
        interval = settings.get("interval", PERIODIC_LIMIT_MS) / 1000
        counts = checkpoint_counts(rest, job)
    except Refusal:  # it takes none, or has ended
        return
    if 2 * interval <= seconds and not counts.completed:
        raise FlinkError(
            f"job {job} has completed no checkpoint {seconds:g} s after its start, though one was "
            f"due every {interval:g} s ({counts.failed} failed)"
        )


def _sources(document: Job) -> dict[str, str]:
    """Vertices without inputs that run, with the metric that counts the output of their sources."""
    plan = document.get("plan") or {"nodes": []}
    fed = {node["id"] for node in plan["nodes"] if node.get("inputs")}
    return {
        vertex["id"]: sent_by(vertex["name"].partition(" -> ")[0])
        for vertex in document["vertices"]
        if vertex["id"] not in fed and vertex["status"] != FINISHED
    }
