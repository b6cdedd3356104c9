"""Context managers of a move: they complete the messages of errors, and release the lock."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from streamplace.engines.flink.move.journal import MoveLock
from streamplace.engines.flink.move.outcomes import Forgotten, Undecided, untouched
from streamplace.engines.flink.program.submission import chain_states
from streamplace.engines.flink.rest.client import FlinkError, NoAnswer, Rest
from streamplace.errors import StreamplaceError


@contextmanager
def leaving_untouched() -> Iterator[None]:
    """Add to errors of the block that nothing has happened to the job."""
    try:
        yield
    except StreamplaceError as error:
        untouched(error)
        raise


@contextmanager
def remembered(rest: Rest, job: str) -> Iterator[None]:
    """Raise Forgotten for errors of the block whose cause is a restarted JobManager."""
    try:
        yield
    except StreamplaceError as error:
        if isinstance(error, NoAnswer) or rest.state(job) is not None:
            raise
        raise Forgotten(f"the JobManager no longer knows job {job}: {error}") from None


@contextmanager
def resumable(line: str) -> Iterator[None]:
    """Add to errors of the block how the move can be finished."""
    try:
        yield
    except StreamplaceError as error:
        error.args = (f"{str(error).rstrip('.')}. Finish the move with: {line}", *error.args[1:])
        raise


@contextmanager
def releasing(lock: MoveLock) -> Iterator[None]:
    """Release a lock when the block ends, unless the state of the job is undecided.

    An interruption has already been handled inside the block.

    Raises
    ------
    Forgotten
        When the moved job no longer exists, because the JobManager was restarted.
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
