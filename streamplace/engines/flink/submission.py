"""Submission: a job whose id is chosen before, so that it exists once however often it is sent."""

import time

from streamplace.engines.flink.apply import explained
from streamplace.engines.flink.folder import SavepointFolder
from streamplace.engines.flink.job_ids import chain_of
from streamplace.engines.flink.rest import ENDED, FlinkError, NoAnswer, Refusal, Rest
from streamplace.engines.flink.uploads import ClusterJar

ANSWER_SECONDS = 60.0
"""In which a submission should be answered; else the job is looked up."""
LOOK_SECONDS = 3.0
"""For which a job is looked for whose submission was not answered, before it is sent again."""


def chain_states(rest: Rest, job: str) -> dict[str, str]:
    """Those of a job and the ones that take its place that Flink knows, with their states."""
    states = rest.jobs()
    return {one: states[one] for one in chain_of(job) if one in states}


def submit(rest: Rest, jar: ClusterJar, request: dict[str, object], job: str) -> None:
    """Have a jar submit a job of a given id; it exists when this returns.

    Parameters
    ----------
    rest
        A patient one; when its patience is over, Flink is given up that answers nothing.

    Raises
    ------
    NoAnswer
        When it is not known whether the job exists.
    FlinkError
        When Flink refuses the job.
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
    """Whether a job is there, or is there soon."""
    deadline = time.monotonic() + LOOK_SECONDS
    while rest.state(job) is None:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True


def withdraw(rest: Rest, folder: SavepointFolder, job: str) -> None:
    """See to it that a job does not run and never will: it is cancelled, or its id is used up."""
    if rest.state(job) is None:
        try:
            folder.spend(job)
        except FlinkError:
            if rest.state(job) is None:
                raise
    if rest.state(job) not in (None, *ENDED):
        rest.cancel(job)
