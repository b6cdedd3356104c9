"""Applying a placement: an unchanged job, submitted so that it runs where it was placed."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import quote

from streamplace.engines.flink.dist import Flink
from streamplace.engines.flink.fitting import (
    check_cluster,
    check_upload,
    fitted,
    left_by_all,
    left_without,
)
from streamplace.engines.flink.jars import placed_jar
from streamplace.engines.flink.pinning import Pinning, Vectors
from streamplace.engines.flink.program import Program
from streamplace.engines.flink.rest import FINISHED, OURS, SLOT_SECONDS, FlinkError, Rest
from streamplace.engines.flink.scheduler import job_fault
from streamplace.engines.flink.state import Savepoint
from streamplace.model.messages import quoted

STARTING = frozenset({"INITIALIZING", "CREATED", "RUNNING"})
FITS = "the job fits its placement"
CHECK = {"streamplace.check": "true"}
"""The settings that have the pinning class look at a job, and not submit it."""
UNMAPPED = "Cannot map checkpoint/savepoint state"
FOREIGN = (
    f"{UNMAPPED} to the job: the savepoint holds state of operators that this job does not have; "
    "give the job that was saved, or leave that state behind by --allow-non-restored"
)


def apply(
    rest: Rest,
    flink: Flink,
    program: Program,
    vectors: Vectors,
    *,
    savepoint: Savepoint | None = None,
    seconds: float = 60.0,
) -> str:
    """Submit a job with a placement and wait until all of it runs, or has run; returns its id.

    Operators whose parallelism the job leaves open get the one that they are placed with.

    Raises
    ------
    PlacementError
        When a device of the placement is no TaskManager of the cluster, or does not offer itself.
    FlinkError
        When the cluster's scheduler ignores placements, when the job is not the one that was
        placed, or when it does not come up; it quotes why, and nothing is left running.
    """
    request = program.run_request(savepoint)
    check_cluster(rest, vectors)
    rest.wait_released()
    with _placed(rest, flink, program, *fitted(rest, vectors, program.managed_mb)) as jar:
        job = _run(rest, jar, request)
    try:
        _wait_started(rest, job, seconds)
    except BaseException:
        rest.cancel(job)
        raise
    return job


def check(
    rest: Rest, flink: Flink, program: Program, vectors: Vectors, without: str | None = None
) -> None:
    """Run a job's main method as ``apply`` would, but submit nothing.

    Parameters
    ----------
    without
        The job that is moved: what it has of the cluster counts as free, what other jobs have does
        not. None counts everything as free.

    Raises
    ------
    PlacementError, FlinkError
        What ``apply`` would refuse before anything runs.
    """
    request = program.run_request(more=CHECK)
    check_cluster(rest, vectors)
    managers = left_by_all(rest) if without is None else left_without(rest, without)
    answer, managed = fitted(rest, vectors, program.managed_mb, managers)
    with _placed(rest, flink, program, answer, managed) as jar:
        try:
            job = _run(rest, jar, request)
        except FlinkError as error:
            if FITS not in str(error):
                raise
            return
    rest.cancel(job)
    raise FlinkError("the job is not submitted by its main method, so it cannot be placed")


@contextmanager
def _placed(
    rest: Rest, flink: Flink, program: Program, answer: Pinning, managed: dict[str, int]
) -> Iterator[str]:
    """Id of the job's jar with the pinning class in it, on the cluster while the block runs."""
    check_upload(rest)
    with placed_jar(flink, program.jar, program.libraries, answer, managed) as jar:
        uploaded = rest.upload(jar)
        try:
            yield uploaded
        finally:
            with suppress(FlinkError):
                rest.delete(f"/jars/{quote(uploaded, safe='')}")


def _run(rest: Rest, jar: str, request: dict[str, object]) -> str:
    """Id of the job that an uploaded jar submits."""
    try:
        return str(rest.post(f"/jars/{quote(jar, safe='')}/run", request)["jobid"])
    except FlinkError as error:
        if UNMAPPED in str(error):
            raise FlinkError(FOREIGN) from None
        _, ours, fault = str(error).partition(OURS)
        if not ours:
            raise
        raise FlinkError(fault) from None


def _wait_started(rest: Rest, job: str, seconds: float) -> None:
    """Wait until every subtask of a job runs; raise FlinkError as soon as one cannot."""
    deadline = time.monotonic() + seconds
    while True:
        document = rest.job(job)
        if document["state"] == FINISHED:
            return
        if document["state"] not in STARTING:
            raise FlinkError(f"job {job} is {document['state']}: {rest.failure(job)}")
        if fault := job_fault(rest, document):
            raise FlinkError(f"{fault}; job {job} is cancelled")
        waiting = [v for v in document["vertices"] if v["status"] not in ("RUNNING", "FINISHED")]
        if document["vertices"] and not waiting:
            return
        if time.monotonic() > deadline:
            late = [f"{quoted(v['name'])} is {v['status']}" for v in waiting[:1]]
            raise FlinkError(f"job {job} does not run after {seconds:g} s; {''.join(late)}")
        time.sleep(SLOT_SECONDS)
