"""Submit a job with an id that is chosen in advance, so that repeated requests create one job."""

import time

from streamplace.engines.flink.move.folder import SavepointFolder
from streamplace.engines.flink.pin.apply import explained
from streamplace.engines.flink.program.uploads import ClusterJar
from streamplace.engines.flink.rest.client import ENDED, FlinkError, NoAnswer, Refusal, Rest
from streamplace.engines.flink.rest.job_ids import chain_of

ANSWER_SECONDS = 60.0
"""Timeout for the answer to a submission, after which the job is looked up."""
LOOK_SECONDS = 3.0
"""Time for which a job without an answer is looked up, before it is submitted again."""


def chain_states(rest: Rest, job: str) -> dict[str, str]:
    """States of a job and its successors, as far as Flink knows them."""
    states = rest.jobs()
    return {one: states[one] for one in chain_of(job) if one in states}


def submit(rest: Rest, jar: ClusterJar, request: dict[str, object], job: str) -> None:
    """Submit a job with a given id from a jar; the job exists when this returns.

    Parameters
    ----------
    rest
        A patient client; NoAnswer is raised when its patience is over.

    Raises
    ------
    NoAnswer
        When it is unknown whether the job exists.
    FlinkError
        When Flink rejects the job.
    """
    once = rest.patient(0.0, rest.tell)
    deadline = time.monotonic() + rest.patience
    while True:
        try:
            jar.run({**request, "jobId": job}, once, ANSWER_SECONDS)
            return
        except NoAnswer as error:
            if time.monotonic() > deadline:
                raise
            rest.tell(f"{error}; checking whether job {job} was started")
            if _appears(rest, job):
                return
        except Refusal as error:
            if rest.state(job) is None:
                raise explained(error) from None
            return


def _appears(rest: Rest, job: str) -> bool:
    """Whether a job exists, or will within seconds."""
    deadline = time.monotonic() + LOOK_SECONDS
    while rest.state(job) is None:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True


def withdraw(rest: Rest, folder: SavepointFolder, job: str) -> None:
    """Ensure that a job neither runs nor will: cancel it, or use up its id."""
    if rest.state(job) is None:
        try:
            folder.spend(job)
        except FlinkError:
            if rest.state(job) is None:
                raise
    if rest.state(job) not in (None, *ENDED):
        rest.cancel(job)
