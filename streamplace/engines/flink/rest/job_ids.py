"""Ids of jobs and requests that are derived from the id of the job that is moved.

Flink rejects a job with an id that it knows, whether that job is running or has ended. So the id of
a successor is a hash of the id of the job that it replaces: whoever submits it, and even if the
answer to the request is lost, a job has at most one successor.
"""

import hashlib


def successor(job: str) -> str:
    """Id of the successor of a job.

    >>> successor("0" * 32)
    'cf11261d0af4f3b322e9c4b7ae85b901'
    """
    return hashlib.sha256(f"streamplace successor of {job}".encode()).hexdigest()[:32]


def chain_of(job: str, length: int = 8) -> list[str]:
    """Ids of a job and of its successors, in order."""
    ids = [job]
    while len(ids) < length:
        ids.append(successor(ids[-1]))
    return ids


def return_trigger(job: str) -> str:
    """Id of the request that stops a job so that it can return to its previous devices."""
    return hashlib.sha256(f"streamplace return of {job}".encode()).hexdigest()[:32]
