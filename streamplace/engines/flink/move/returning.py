"""Returning: the state from which a job continues if its successor should not stay."""

from collections.abc import Callable
from contextlib import suppress

from streamplace.engines.flink.move.endings import last_kept
from streamplace.engines.flink.move.folder import SavepointFolder
from streamplace.engines.flink.move.journal import Journal
from streamplace.engines.flink.move.state import restored_path, saved_by, stopped_with
from streamplace.engines.flink.move.stopping import Saving, begin_stop, stop_status, stopped_at
from streamplace.engines.flink.program.submission import withdraw
from streamplace.engines.flink.rest.client import ENDED, FINISHED, FlinkError, NoAnswer, Rest
from streamplace.engines.flink.rest.job_ids import return_trigger

TWICE = "what it wrote since then may be written twice"


def latest_of(
    rest: Rest,
    folder: SavepointFolder,
    job: str,
    path: str,
    saving: Saving,
    tell: Callable[[str], None],
) -> str:
    """End a job and return the path of its last state; empty if it has finished by itself.

    No progress is lost: a running job is stopped with a savepoint. The state of any other job is
    its last checkpoint, if that outlives the job. The path is that of the savepoint or checkpoint
    that the job was to be started from.
    """
    state, trigger = rest.state(job), return_trigger(job)
    if state is None:
        withdraw(rest, folder, job)
        return path
    is_asked = stop_status(rest, job, trigger) is not None
    if state == FINISHED and not is_asked:
        return stopped_with(rest, job) or ""
    if state == "RUNNING" or is_asked:
        try:
            if not is_asked:
                begin_stop(rest, job, folder.uri, trigger, native=saving.native)
            saved = stopped_at(rest, job, trigger, saving.seconds)
            rest.wait(job, ENDED)
            return saved
        except NoAnswer:
            raise
        except FlinkError:  # it cannot be saved
            pass
    withdraw(rest, folder, job)
    checkpoint = last_kept(rest, job)
    if checkpoint is not None:
        tell(f"note: job {job} goes back to {checkpoint}; {TWICE}")
    elif saved_by(rest, job) is not None:
        tell(f"note: the checkpoints of job {job} end with it, so it goes back to {path}; {TWICE}")
    return checkpoint or path


def start_of(rest: Rest, journal: Journal, job: str) -> str:
    """Path that a job of a move was started from, else of the savepoint of its predecessor."""
    if journal.savepoint is not None:
        return journal.savepoint
    with suppress(FlinkError):
        return stopped_at(rest, journal.job, journal.trigger, 1.0)
    path = stopped_with(rest, journal.job) or restored_path(rest, job)
    if path is None:
        raise FlinkError(f"Flink does not tell what job {job} was started from")
    return path
