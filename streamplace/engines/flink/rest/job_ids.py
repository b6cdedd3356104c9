"""Ids of jobs: of the one that is meant if the user names none, and of its successors.

Flink rejects a job with an id that it knows, whether that job is running or has ended. So the id of
a successor is a hash of the id of the job that it replaces: whoever submits it, and even if the
answer to the request is lost, a job has at most one successor.
"""

import hashlib

from streamplace.engines.flink.rest.client import SUSPENDED, Rest
from streamplace.errors import SettingError
from streamplace.model.messages import listed, shown


def other_jobs(rest: Rest, job: str) -> list[str]:
    """Ids of the other jobs that have not ended."""
    return [other for other in rest.live_jobs() if other != job]


def only_job(rest: Rest, given: str | None = None) -> str:
    """Id of the given job, else of the only one that has not ended.

    Flink takes ids in capitals, too, but the id of a successor is made from small letters.
    """
    if given is not None:
        return given.lower()
    states, live = rest.jobs(), rest.live_jobs()
    if len(live) > 1:
        raise SettingError(
            f"{len(live)} jobs are running: {listed(live)}; choose one with --job ID"
        )
    if not live and SUSPENDED in states.values():
        waiting = listed([name for name, state in states.items() if state == SUSPENDED])
        raise SettingError(
            f"no job is running; wait until a JobManager takes over what is suspended: {waiting}"
        )
    if not live:
        others = "; ".join(f"{shown(name)} is {shown(states[name])}" for name in [*states][:8])
        raise SettingError(
            f"no job is running{others and f' ({others})'}; start one, or name one with --job ID"
        )
    return live[0]


def successor(job: str) -> str:
    """Id of the successor of a job.

    >>> successor("0" * 32)
    'cf11261d0af4f3b322e9c4b7ae85b901'
    """
    return hashlib.sha256(f"streamplace successor of {job}".encode()).hexdigest()[:32]


def chain_of(job: str, length: int = 8) -> list[str]:
    """Ids of a job and of its successors, in order: of a move, where it goes, and its returns."""
    ids = [job]
    while len(ids) < length:
        ids.append(successor(ids[-1]))
    return ids


def stop_trigger(job: str, number: int) -> str:
    """Id of a request that stops a job so that it can be moved; the number is that of the try."""
    return hashlib.sha256(f"streamplace stop {number} of {job}".encode()).hexdigest()[:32]


def return_trigger(job: str) -> str:
    """Id of the request that stops a job so that it can return to its previous devices."""
    return hashlib.sha256(f"streamplace return of {job}".encode()).hexdigest()[:32]
