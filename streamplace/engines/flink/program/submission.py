"""Submit a job with an id that is chosen in advance, so that repeated requests create one job.

A request without an answer may have started it, which is looked up by its id.
"""

import time
from collections.abc import Callable

from streamplace.engines.flink.program.jars import SPENT
from streamplace.engines.flink.program.uploads import ClusterJar
from streamplace.engines.flink.rest.answers import OURS
from streamplace.engines.flink.rest.client import ENDED, FlinkError, NoAnswer, Refusal, Rest, turns
from streamplace.engines.flink.rest.job_ids import chain_of

ANSWER_SECONDS = 60.0
"""Timeout for the answer to a submission, after which the job is looked up."""
LOOK_SECONDS = 3.0
"""Time for which a job without an answer is looked up, before it is submitted again."""
SPENT_SECONDS = 60.0
"""Time within which a job appears that another command is submitting, and whose id is refused."""
FITS = "the job fits its placement"
"""Message of the pinning class after it has checked a job."""
DUPLICATE = ("DuplicateJobSubmissionException", "DuplicateApplicationSubmissionException")
"""Exceptions for an id that Flink has accepted before, whether or not it still lists the job.

The second one is that of Flink 2.3, in which every job belongs to an application of its id.
"""
UNMAPPED = "Cannot map checkpoint/savepoint state"
FOREIGN = (
    f"{UNMAPPED} to the job: the savepoint contains state of operators that this job does not "
    "have; submit the job that was saved, or drop that state (allow-non-restored in --settings)"
)


def chain_states(rest: Rest, job: str) -> dict[str, str]:
    """States of a job and its successors, as far as Flink knows them."""
    states = rest.jobs()
    return {one: states[one] for one in chain_of(job) if one in states}


def submit(
    rest: Rest,
    jar: ClusterJar,
    request: dict[str, object],
    job: str,
    await_ready: Callable[[], None],
) -> bool:
    """Submit a job with a given id from a jar; the job exists when this returns.

    Returns whether this call has started it, or may have: an earlier request with the same id has
    done so otherwise. Before each request, ``await_ready`` waits until the cluster can run the job,
    or raises an error: its JobManager may have been restarted. The client is patient; when its
    patience since the first request without an answer is over, and it is unknown whether the job
    exists, NoAnswer is raised.
    """
    once = rest.patient(0.0, rest.tell)
    deadline: float | None = None
    while True:
        await_ready()
        try:
            jar.run({**request, "jobId": job}, once, ANSWER_SECONDS)
            return True
        except NoAnswer as error:
            deadline = deadline or time.monotonic() + rest.patience
            rest.tell(f"{error}; checking whether job {job} was started")
            if appears(rest, job):
                return True
            if time.monotonic() > deadline:
                raise
        except Refusal as error:
            if not exists(rest, job, error):
                raise explained(error) from None
            return deadline is not None


def is_spent(error: BaseException) -> bool:
    """Whether Flink refuses to start a job because it has accepted its id before."""
    return isinstance(error, Refusal) and any(one in error.complaint for one in DUPLICATE)


def exists(rest: Rest, job: str, error: FlinkError) -> bool:
    """Whether Flink lists a job that it refuses to start, now or soon.

    If its id is spent and it does not appear, it ended long ago.
    """
    if not is_spent(error):
        return rest.state(job) is not None
    rest.tell(f"job {job} was submitted before; looking for it")
    return appears(rest, job, SPENT_SECONDS)


def explained(error: FlinkError) -> FlinkError:
    """Why Flink rejects a job, in the words of the pinning class if it gave a reason."""
    if UNMAPPED in str(error):
        return FlinkError(FOREIGN)
    fits = isinstance(error, Refusal) and FITS in str(error)
    text = error.complaint if isinstance(error, Refusal) and fits else str(error)
    _, ours, fault = text.partition(OURS)
    return FlinkError(fault.partition("\n")[0]) if ours else error


def appears(rest: Rest, job: str, seconds: float | None = None) -> bool:
    """Whether a job exists, or will within some seconds."""
    for _ in turns(LOOK_SECONDS if seconds is None else seconds):
        if rest.state(job) is not None:
            return True
    return False


def withdraw(rest: Rest, jar: Callable[[], ClusterJar], job: str) -> None:
    """Ensure that a job neither runs nor will: cancel it, or use up its id.

    ``jar`` uploads any jar that pins a job. A job that Flink does not list, and whose id is used
    up, ended long ago.
    """
    if rest.state(job) is None:
        try:
            jar().run({"entryClass": SPENT, "jobId": job})
            rest.cancel(job)
        except FlinkError as error:
            if not exists(rest, job, error) and not is_spent(error):
                raise
    if rest.state(job) not in (None, *ENDED):
        rest.cancel(job)
