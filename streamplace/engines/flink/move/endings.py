"""Endings: whether a job has ended: by itself, by a failure, or by another user, which is final."""

import time

from streamplace.engines.flink.move.state import outlives, saved_by, stopped_with
from streamplace.engines.flink.rest.client import (
    ENDED,
    FINISHED,
    POLL_SECONDS,
    FlinkError,
    Refusal,
    Rest,
)
from streamplace.model.messages import shown

CANCELLED = frozenset({"CANCELLING", "CANCELED"})
"""Flink itself never cancels a job."""
STEADY_SECONDS = 3.0
"""A job that still runs this long after a failed stop is assumed to continue."""
PASSING = frozenset({"FAILING", "CANCELLING", "RESTARTING", "RECONCILING"})


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
    """Path of the last savepoint or checkpoint of a job that has ended, if it still exists."""
    try:
        saved, state = saved_by(rest, job), rest.state(job)
    except Refusal:
        return None
    if saved is None or saved.last is None:
        return None
    is_there = saved.is_savepoint or outlives(rest, job, is_failure=state == "FAILED")
    return saved.last if is_there else None


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
