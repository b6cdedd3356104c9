"""Stopping: whether a job continues to run after its stop has failed."""

import time

from streamplace.engines.flink.rest import ENDED, POLL_SECONDS, Rest

STEADY_SECONDS = 3.0
"""A job that still runs this long after a failed stop is assumed to continue."""
PASSING = frozenset({"FAILING", "CANCELLING", "RESTARTING", "RECONCILING"})


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
