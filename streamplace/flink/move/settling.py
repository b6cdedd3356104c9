"""Settling: whether a moved job runs as well as before; settings of moves.

Afterwards its rate is compared with the prediction for its placement.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from streamplace.flink.ledger import note_in_ledger
from streamplace.flink.measure.source_lag import SourceFlow, source_flow
from streamplace.flink.move.interruption import draining_seconds
from streamplace.flink.move.running_settings import PERIODIC_LIMIT_MS
from streamplace.flink.move.savepoints import (
    checkpoint_settings,
    checkpoint_totals,
    state_clause,
)
from streamplace.flink.rest.client import ENDED, FINISHED, FlinkError, NoAnswer, Rest, turns
from streamplace.io.placements import Prediction
from streamplace.model.defaults import SAVEPOINT_SECONDS, START_SECONDS
from streamplace.model.units import digits


@dataclass(frozen=True, slots=True)
class MoveSettings:
    """Settings of moves."""

    # Folder of savepoints (path or URI) that the JobManager can write to; by default the cluster's.
    savepoints: str | None = None
    # Whether state that belongs to no operator of the new job may be dropped.
    allow_non_restored: bool = False
    # Maximum number of seconds for the start of a job, with its state restored.
    seconds: float = START_SECONDS
    savepoint_seconds: float = SAVEPOINT_SECONDS  # maximum number of seconds for the savepoint
    # Whether savepoints have the format of the state backend: faster, but only for this backend.
    native: bool = False
    # Seconds for which a moved job is checked after its start; 0 omits the check.
    settle: float = 30.0
    # Minimum share of the previous rate that its sources must reach; 0 compares no rates.
    least_rate: float = 0.8

    @property
    def compares_rates(self) -> bool:
        """Whether the rates before and after are compared."""
        return self.settle > 0 and self.least_rate > 0


def settle(
    rest: Rest,
    job: str,
    settings: MoveSettings,
    before: SourceFlow | None,
    checkpoint_seconds: float = 0.0,
) -> None:
    """Check a running job until it has settled.

    Raises FlinkError when it stops running, completes no checkpoint although one was due, or is
    slower than before.
    """
    failed = checkpoint_totals(rest, job).failed
    for _ in turns(settings.settle):
        if _has_finished(rest, job):
            return
    try:
        _check_checkpoint(rest, job, settings.settle, checkpoint_seconds, failed)
        check_rate(rest, job, settings, before)
    except NoAnswer:
        raise
    except FlinkError:
        if not _has_finished(rest, job):
            raise
    _has_finished(rest, job)  # if it failed during the measurement, its rate is unknown


def _has_finished(rest: Rest, job: str) -> bool:
    """Whether a job has finished by itself; raise FlinkError if it does not run, or restarted."""
    document = rest.job(job)
    if document["state"] == FINISHED:
        return True
    if document["state"] != "RUNNING" or document.get("timestamps", {}).get("RESTARTING"):
        raise FlinkError(f"job {job} is {document['state']} after its start: {rest.failure(job)}")
    return False


def check_rate(rest: Rest, job: str, settings: MoveSettings, before: SourceFlow | None) -> None:
    """Raise FlinkError if a job is slower than before by more than the settings allow.

    A job that keeps up may be slower if it was held back before, because its backlog is gone, or if
    its sources report their lag, because fewer tuples arrive then. Silent sources may stay silent.
    """
    if not settings.compares_rates or before is None or not before.rate:
        return
    flow = source_flow(rest, job)
    if flow is None or before.sources.keys() - flow.sources.keys():  # a source has ended
        return
    silent = {name for name, source in before.sources.items() if not source.rate}
    others = [source.keeps_up for name, source in flow.sources.items() if name not in silent]
    keeps_up = flow.keeps_up or (bool(others) and all(others) and not flow.is_limited)
    if keeps_up and (before.is_limited or flow.pending is not None):
        return
    if flow.misses(before, settings.least_rate):
        raise FlinkError(
            f"job {job} reads {digits(flow.rate)} tuples/s, {flow.rate / before.rate:.0%} of the "
            f"{before.rate:.4g} before it was moved (at least {settings.least_rate:.0%} required)"
        )


def _check_checkpoint(
    rest: Rest, job: str, seconds: float, usual_seconds: float, failed_before: int
) -> None:
    """Raise FlinkError if no checkpoint has completed although one was due, or if one failed.

    One is due if twice the interval and its duration have passed: the usual duration, or the delay
    by the queues of the job.
    """
    if (settings := checkpoint_settings(rest, job)) is None:
        return
    # Flink takes no checkpoint within the minimum pause, not even after the start.
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


def compare(rest: Rest, job: str, predicted: Prediction, tell: Callable[[str], None]) -> None:
    """Measure a moved job, and report and record its rate beside the prediction.

    If it is held back below the lower end of the prediction, the message advises to plan it again.
    Raises FlinkError when the job has failed or was cancelled since the move.
    """
    flow = None
    try:
        flow = source_flow(rest, job)
    except FlinkError as error:
        tell(f"note: the rate of the moved job is not measured: {error}")
    if flow is None:
        state = None
        with suppress(FlinkError):  # Flink does not answer, or has forgotten the job
            state = rest.state(job)
        if state in ENDED and state != FINISHED:
            raise FlinkError(
                f"job {job} was moved, and is {state} since: {rest.failure(job)}"
                f"{state_clause(rest, job)}"
            )
    if flow is None or flow.rate <= 0:
        return
    carries = predicted.carries
    tell(f"there: {digits(flow.rate)} tuples/s (measured); the placement should carry {carries}")
    note_in_ledger("flink move --placement", predicted, flow.rate, flow.is_limited, tell)
    if flow.is_limited and flow.rate + flow.error < carries.low:
        tell(
            "its sources are held back below the predicted rates; 'streamplace flink advise' "
            "measures it there, scales its costs, and plans it again"
        )
