"""Blocks of a move: what is said of an error in them, and what becomes of the lock."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from streamplace.engines.flink.journal import MoveLock
from streamplace.engines.flink.outcomes import Forgotten, Undecided, untouched
from streamplace.engines.flink.rest import FlinkError, NoAnswer, Rest
from streamplace.engines.flink.submission import chain_states
from streamplace.errors import StreamplaceError


@contextmanager
def leaving_untouched() -> Iterator[None]:
    """Say of what fails in the block that it has done nothing to the job."""
    try:
        yield
    except StreamplaceError as error:
        untouched(error)
        raise


@contextmanager
def remembered(rest: Rest, job: str) -> Iterator[None]:
    """Raise Forgotten for what fails in the block because the JobManager is another."""
    try:
        yield
    except StreamplaceError as error:
        if isinstance(error, NoAnswer) or rest.state(job) is not None:
            raise
        raise Forgotten(f"the JobManager no longer knows job {job}: {error}") from None


@contextmanager
def resumable(line: str) -> Iterator[None]:
    """Say of what fails in the block that the move can still be finished."""
    try:
        yield
    except StreamplaceError as error:
        error.args = (f"{str(error).rstrip('.')}. Finish the move with: {line}", *error.args[1:])
        raise


@contextmanager
def releasing(lock: MoveLock) -> Iterator[None]:
    """Give a lock up when the block ends, unless what became of the job is not decided.

    An interruption has been dealt with when it comes here.

    Raises
    ------
    Forgotten
        When the moved job is gone in the end: the JobManager was restarted meanwhile.
    """
    try:
        yield
    except Undecided:
        raise
    except (StreamplaceError, KeyboardInterrupt):
        with suppress(FlinkError):
            lock.release()
        raise
    if not chain_states(lock.folder.rest, lock.journal.job):
        raise Forgotten(
            f"the JobManager no longer knows job {lock.journal.successor}, because it was "
            "restarted without high availability. Finish the move with: "
            f"{lock.journal.resume_by}"
        )
    with suppress(FlinkError):
        lock.release()
