"""Ids of jobs and requests that follow from the id of the job that is moved.

Flink takes a job of an id that it knows from nobody, be that job running or ended. So the id of the
job that follows another is made of the other's: whoever starts it, and whatever becomes of the
answer, a job has one successor.
"""

import hashlib


def successor(job: str) -> str:
    """Id of the job that takes the place of another.

    >>> successor("0" * 32)
    'cf11261d0af4f3b322e9c4b7ae85b901'
    """
    return hashlib.sha256(f"streamplace successor of {job}".encode()).hexdigest()[:32]


def chain_of(job: str, length: int = 8) -> list[str]:
    """Ids of a job and of those that take its place, one after the other."""
    ids = [job]
    while len(ids) < length:
        ids.append(successor(ids[-1]))
    return ids


def return_trigger(job: str) -> str:
    """Id of the request that stops a job because it shall go back to where it ran."""
    return hashlib.sha256(f"streamplace return of {job}".encode()).hexdigest()[:32]
