"""Outcomes of a move, and messages on jobs that did not move."""

from dataclasses import dataclass

from streamplace.engines.flink.move.endings import last_kept
from streamplace.engines.flink.move.state import stopped_with
from streamplace.engines.flink.rest.client import FINISHED, FlinkError, Rest
from streamplace.engines.live import Moved
from streamplace.errors import StreamplaceError
from streamplace.model.messages import shown

NOT_TOUCHED = "The job was not touched"
ABANDONED = "the move is abandoned"


class Undecided(FlinkError):
    """Flink no longer answers; the state of the job is unknown, and the move must be resumed."""


class Forgotten(Undecided):
    """The JobManager was restarted without high availability, and no longer knows the job."""


class NotRunning(Undecided):
    """The job does not run, but its state exists: resuming the move starts it."""


@dataclass(frozen=True, slots=True)
class FlinkMoved(Moved):
    """A job that was moved; its outage ends when all of it runs again.

    Attributes
    ----------
    savepoint
        Savepoint or checkpoint that it was started from; None if it did not move.
    """

    savepoint: str | None


def reason(error: BaseException) -> str:
    """Message of an error, or its type if it has none."""
    return str(error) or type(error).__name__


def untouched(error: StreamplaceError) -> None:
    """Add to an error that the job was not touched, unless it says so already."""
    if NOT_TOUCHED not in str(error):
        error.args = (f"{str(error).rstrip('.')}. {NOT_TOUCHED}", *error.args[1:])


def ended_before(rest: Rest, job: str, state: str) -> str:
    """Sentence on a job that ended before the move could stop it and save its state."""
    if state == FINISHED:
        return f"job {job} finished before it could be saved; there is nothing to move"
    if state == "FAILED":
        ending = f"job {job} has failed: {rest.failure(job)}; nothing was started"
    else:
        ending = f"job {job} was cancelled by another user; nothing was started"
    path = stopped_with(rest, job) or last_kept(rest, job)
    return ending if path is None else f"{ending}. Its state is in {shown(path, 300)}"
