"""Settling: check that a job that was just started keeps running as well as before."""

import time
from dataclasses import dataclass

from streamplace.engines.flink.measure.sources import RATE_SECONDS, SourceFlow, source_flow
from streamplace.engines.flink.move.carried import PERIODIC_LIMIT_MS
from streamplace.engines.flink.move.pause import draining_seconds
from streamplace.engines.flink.move.state import checkpoint_totals
from streamplace.engines.flink.rest.client import FINISHED, FlinkError, NoAnswer, Refusal, Rest
from streamplace.model.messages import quoted
from streamplace.model.units import digits

LOOK_SECONDS = 0.5
VARYING_SECONDS = 60.0
"""Duration of each measurement of a varying rate, as of windows that fire once a minute."""
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


def source_rate(rest: Rest, job: str) -> float | None:
    """Tuples/s that the sources of a job emit; None if Flink does not report them."""
    flow = source_flow(rest, job)
    return None if flow is None else flow.rate


def seconds_for(*, varies: bool) -> float:
    """Duration of each measurement of a rate that varies, or does not."""
    return VARYING_SECONDS if varies else RATE_SECONDS


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
