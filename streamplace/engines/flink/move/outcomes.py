"""Outcomes of a move: its result, its errors, and whether it has to be resumed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from streamplace.engines.flink.move.journal import Journal, MoveClaim, left_on_failure
from streamplace.engines.flink.move.saving import (
    UNDER_WAY,
    last_on_files,
    state_clause,
    stop_status,
    stopped_with,
)
from streamplace.engines.flink.program.submission import chain_states
from streamplace.engines.flink.rest.client import (
    ENDED,
    FINISHED,
    SUSPENDED,
    FlinkError,
    NoAnswer,
    Rest,
)
from streamplace.engines.flink.rest.job_ids import return_trigger
from streamplace.engines.flink.rest.tasks import StillStarting
from streamplace.errors import StreamplaceError
from streamplace.model.messages import shown


class Undecided(FlinkError):
    """Flink no longer answers; the state of the job is unknown, and the move must be resumed.

    Attributes
    ----------
    clause
        What is the case, without the advice for a command that ends now.
    """

    def __init__(self, clause: str, advice: str = "") -> None:
        super().__init__(clause + advice)
        self.clause = clause


class Forgotten(Undecided):
    """The JobManager was restarted without high availability, and no longer knows the job."""


class NotRunning(Undecided):
    """The job does not run, but its state exists: resuming the move starts it."""


class StoppedByOthers(NotRunning):
    """Another user stopped the job before the move did, so it is only started on request."""


class NotSaved(FlinkError):
    """The job was asked to stop with a savepoint, which failed; it runs where it ran before."""


@dataclass(frozen=True, slots=True)
class FlinkMoved:
    """A job that was moved."""

    job: str  # id of the job that runs now
    # Seconds for which it was stopped, until all of it runs again; None if unknown.
    outage: float | None
    # Savepoint or checkpoint that it was started from; None if it did not move.
    savepoint: str | None


def reason(error: BaseException) -> str:
    """Message of an error, or its type if it has none."""
    return str(error) or type(error).__name__


def ended_before(rest: Rest, job: str, state: str) -> FlinkError:
    """Error about a job that ended before the move could stop it and save its state."""
    if state == FINISHED:
        return FlinkError(f"job {job} finished before it could be saved; there is nothing to move")
    is_failure = state == "FAILED"
    why = f"has failed: {rest.failure(job)}" if is_failure else "was cancelled by another user"
    return FlinkError(f"job {job} {why}; nothing was started{state_clause(rest, job)}")


def forgotten(journal: Journal) -> FlinkError:
    """Error about a job that the JobManager no longer knows; Forgotten if its state is known."""
    text = (
        f"the JobManager no longer knows job {journal.job}, because it was restarted "
        "without high availability"
    )
    state = last_on_files(journal)
    path = journal.savepoint if state is None else state.path
    if path is None:
        return FlinkError(
            f"{text}, and no complete savepoint of it is known to this machine; if "
            f"{shown(journal.folder, 300)} contains one, start the job from that with "
            "'streamplace flink apply --savepoint', else as it was first submitted"
        )
    clause = f"{text}; its last complete state is {path}"
    return Forgotten(clause, f". Finish the move with: {journal.resume_by}")


def undecided(error: FlinkError, journal: Journal) -> Undecided:
    """Error about a move whose job still starts, or of which Flink tells nothing; with advice."""
    if isinstance(error, StillStarting):
        return Undecided(
            f"{error}. It is not stopped, and nothing else is started",
            "; to wait for it again and finish the move, perhaps with a longer timeout: "
            f"{journal.resume_by}",
        )
    return Undecided(
        f"{error}. Whether job {journal.job} or its successor {journal.successor} runs is not "
        "known",
        f"; when Flink answers again, finish the move by: {journal.resume_by}",
    )


def not_returned(
    why: str, failure: StreamplaceError, path: str, journal: Journal, live: str | None
) -> Undecided:
    """Error about a job that could not be started on its previous devices; with advice.

    ``live`` is the job on the previous devices if it may exist and has not ended.
    """
    words = f"{why}; the return to the previous devices failed, too: {failure}"
    if live is not None:
        return Undecided(
            f"{words}. Job {live} has not ended, so do not start another one from {path}",
            f"; when it runs or has ended, finish the move by: {journal.resume_by}",
        )
    return NotRunning(
        f"{words}. The job is not running. Its state is in {path}",
        f"; start it with: {journal.resume_by}",
    )


@contextmanager
def decided(journal: Journal) -> Iterator[None]:
    """Raise Undecided for errors of the block which say that Flink does not answer."""
    try:
        yield
    except NoAnswer as silence:
        raise undecided(silence, journal) from None


def has_to_go_on(rest: Rest, journal: Journal) -> bool:
    """Whether a move has to be resumed: no copy of its job runs, or the one that does stops."""
    states = chain_states(rest, journal.job)
    live = [job for job, state in states.items() if state not in ENDED]
    if SUSPENDED in states.values():  # whether it runs is not known
        return True
    if live:
        return any(_is_ending(rest, journal, job, states[job]) for job in live)
    last = next(reversed(states), "")
    if states and states[last] == FINISHED:
        return stopped_with(rest, last) is not None
    return not states or states[last] != "CANCELED" or journal.returns or journal.cancels


def _is_ending(rest: Rest, journal: Journal, job: str, state: str) -> bool:
    """Whether a move is ending one of its jobs."""
    trigger = journal.trigger if job == journal.job else return_trigger(job)
    is_withdrawn = state == "CANCELLING" and (journal.returns or journal.cancels)
    return is_withdrawn or stop_status(rest, job, trigger) == UNDER_WAY


@contextmanager
def ending(claim: MoveClaim, rest: Rest, tell: Callable[[str], None]) -> Iterator[None]:
    """End a move with the block, or leave it unfinished if the state of the job is undecided.

    An interrupted move has returned the job inside the block, unless it was interrupted again.
    Raises Forgotten when the moved job no longer exists, because the JobManager was restarted.
    """
    with left_on_failure(claim):
        try:
            yield
        except Undecided:
            raise
        except KeyboardInterrupt:
            is_unfinished = True
            with suppress(FlinkError):
                is_unfinished = has_to_go_on(rest, claim.journal)
            if is_unfinished:
                tell(f"the move is not finished; finish it with: {claim.journal.resume_by}")
            else:
                claim.end()
            raise
        except StreamplaceError:
            claim.end()
            raise
        with decided(claim.journal):
            if not chain_states(rest, claim.journal.job):
                raise forgotten(claim.journal)
    claim.end()
