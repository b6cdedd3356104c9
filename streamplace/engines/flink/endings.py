"""Endings: whether a job ended by itself, by a failure, or by another user, which is final."""

from streamplace.engines.flink.rest import ENDED, FINISHED, FlinkError, Refusal, Rest
from streamplace.engines.flink.state import outlives, saved_by, stopped_with
from streamplace.model.messages import shown

CANCELLED = frozenset({"CANCELLING", "CANCELED"})
"""Flink itself never cancels a job."""


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


def state_clause(rest: Rest, job: str) -> str:
    """Clause on the remaining state of a job that has ended; empty if there is none."""
    path = last_kept(rest, job)
    return "" if path is None else f"; its state is in {shown(path, 300)}"


def last_kept(rest: Rest, job: str) -> str | None:
    """Path of the last savepoint or checkpoint of a job that has ended, if it still exists."""
    try:
        saved, state = saved_by(rest, job), rest.state(job)
    except Refusal:
        return None
    if saved is None or saved.last is None:
        return None
    is_there = saved.is_savepoint or outlives(rest, job, is_failure=state == "FAILED")
    return saved.last if is_there else None
