"""Endings: whether a job has ended by itself, by a failure, or by others, and its last state.

What another user has ended is not started again. If a job should not stay on its new devices, it
continues on its previous ones from the last state.
"""

import time
from collections.abc import Callable
from contextlib import suppress

from streamplace.engines.flink.move.copies import maker
from streamplace.engines.flink.move.journal import Journal
from streamplace.engines.flink.move.state import (
    outlives,
    restored_path,
    resumable,
    saved_by,
    stopped_with,
)
from streamplace.engines.flink.move.stopping import Saving, begin_stop, stop_status, stopped_at
from streamplace.engines.flink.program.submission import withdraw
from streamplace.engines.flink.program.uploads import ClusterJar
from streamplace.engines.flink.rest.client import (
    ENDED,
    FINISHED,
    POLL_SECONDS,
    FlinkError,
    NoAnswer,
    Refusal,
    Rest,
)
from streamplace.engines.flink.rest.job_ids import return_trigger
from streamplace.model.messages import shown

CANCELLED = frozenset({"CANCELLING", "CANCELED"})
"""Flink itself never cancels a job."""
STEADY_SECONDS = 3.0
"""A job that still runs this long after a failed stop is assumed to continue."""
PASSING = frozenset({"FAILING", "CANCELLING", "RESTARTING", "RECONCILING"})
TWICE = "what it wrote since then may be written twice"


class EndedByOthers(FlinkError):
    """Another user has cancelled or stopped a job, so it is not started again."""


def refuse_ended(rest: Rest, job: str) -> None:
    """Raise EndedByOthers if another user has cancelled a job, or stopped it with a savepoint."""
    state = rest.state(job)
    if state in CANCELLED:
        rest.wait(job, ENDED)
        raise EndedByOthers(
            f"job {job} was cancelled by another user, and is not started again"
            f"{state_clause(rest, job)}"
        )
    if state == FINISHED and (path := stopped_with(rest, job)) is not None:
        raise EndedByOthers(
            f"job {job} was stopped by another user, and is not started again; its state is in "
            f"{shown(path, 300)}"
        )


def may_live(rest: Rest, job: str) -> bool:
    """Whether a job exists and has not ended; also if Flink does not tell."""
    try:
        return rest.state(job) not in (None, *ENDED)
    except FlinkError:
        return True


def state_clause(rest: Rest, job: str) -> str:
    """Clause on the remaining state of a job that has ended; empty if there is none."""
    path = last_kept(rest, job)
    return "" if path is None else f"; its state is in {shown(path, 300)}"


def last_kept(rest: Rest, job: str) -> str | None:
    """Path of the last state of a job that outlives it; see `Saved`."""
    try:
        saved = saved_by(rest, job)
    except Refusal:
        return None
    return None if saved is None else saved.last


def only_start(rest: Rest, job: str) -> str | None:
    """Path that a job which has failed was started from, if it has saved nothing since.

    After a restart of the JobManager that may be a checkpoint of its own, if it still exists.
    """
    path = resumable(rest, job) if saved_by(rest, job) is None else None
    if path is None or (maker(path) == job and not outlives(rest, job, is_failure=True)):
        return None
    return path


def steady_state(rest: Rest, job: str, seconds: float) -> str | None:
    """State of a job once it is stable, or after ``seconds``; None if the job is gone."""
    state, since = "", time.monotonic()
    while True:
        seen = rest.state(job)
        if seen is None:
            return None
        if seen != state:
            state, since = seen, time.monotonic()
        stays = time.monotonic() - since
        if state in ENDED or (stays > STEADY_SECONDS and state not in PASSING) or stays > seconds:
            return state
        time.sleep(POLL_SECONDS)


def latest_of(
    rest: Rest,
    folder: str,
    jar: Callable[[], ClusterJar],
    job: str,
    path: str,
    saving: Saving,
    tell: Callable[[str], None],
) -> str:
    """End a job and return the path of its last state; empty if it has finished by itself.

    No progress is lost: a running job is stopped with a savepoint. The state of any other job is
    its last checkpoint, if that outlives the job. The path is that of the savepoint or checkpoint
    that the job was to be started from. The job may finish at any moment, and then cannot be saved
    any more. Savepoints are written to a folder, and ``jar`` uploads a jar that pins the job.
    """
    state, trigger = rest.state(job), return_trigger(job)
    if state is None:
        withdraw(rest, jar, job)
        return path
    is_asked = stop_status(rest, job, trigger) is not None
    if state == "RUNNING" or is_asked:
        try:
            if not is_asked:
                begin_stop(rest, job, folder, trigger, native=saving.native)
            saved = stopped_at(rest, job, trigger, saving.seconds)
            rest.wait(job, ENDED)
            return saved
        except NoAnswer:
            raise
        except FlinkError:  # it cannot be saved
            pass
    withdraw(rest, jar, job)
    if rest.state(job) == FINISHED:
        return stopped_with(rest, job) or ""
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
