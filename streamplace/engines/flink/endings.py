"""Endings: who ended a job, by itself, by a failure, or by another user; that is final."""

from streamplace.engines.flink.rest import ENDED, FINISHED, FlinkError, Refusal, Rest
from streamplace.engines.flink.state import outlives, saved_by, stopped_with
from streamplace.model.messages import shown

CANCELLED = frozenset({"CANCELLING", "CANCELED"})
"""Flink cancels no job by itself."""


class EndedByOthers(FlinkError):
    """Another user has cancelled or stopped a job, so it is not started again."""


def refuse_ended(rest: Rest, job: str) -> None:
    """Raise EndedByOthers for a job that somebody has cancelled, or stopped with a savepoint."""
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


def state_clause(rest: Rest, job: str) -> str:
    """Clause on what is left of the state of a job that has ended; empty where nothing is."""
    path = last_kept(rest, job)
    return "" if path is None else f"; its state is in {shown(path, 300)}"


def last_kept(rest: Rest, job: str) -> str | None:
    """Path of the last thing that a job has saved, if it is there now that the job has ended."""
    try:
        saved, state = saved_by(rest, job), rest.state(job)
    except Refusal:
        return None
    if saved is None or saved.last is None:
        return None
    is_there = saved.is_savepoint or outlives(rest, job, is_failure=state == "FAILED")
    return saved.last if is_there else None
