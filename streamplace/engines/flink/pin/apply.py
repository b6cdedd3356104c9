"""Apply a placement: submit an unchanged job so that its subtasks run on their devices."""

import base64
import re
import secrets
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.move.others import free_id, refuse_copy
from streamplace.engines.flink.move.saving import Savepoint
from streamplace.engines.flink.pin.fitting import (
    check_cluster,
    check_upload,
    fitted,
    left_without,
)
from streamplace.engines.flink.pin.pinning import Pinning
from streamplace.engines.flink.program.jars import placed_jar
from streamplace.engines.flink.program.program import Program
from streamplace.engines.flink.program.submission import FITS, appears, exists, explained, is_spent
from streamplace.engines.flink.program.submitted import remember
from streamplace.engines.flink.program.uploads import ClusterJar, own_name, uploaded
from streamplace.engines.flink.rest.client import (
    FINISHED,
    FlinkError,
    NoAnswer,
    Refusal,
    Rest,
    turns,
)
from streamplace.engines.flink.rest.plan import plan_with_loops
from streamplace.engines.flink.rest.settings import job_fault
from streamplace.engines.flink.rest.tasks import StillStarting, refuse_restoring
from streamplace.model.messages import listed, quoted

STARTING = frozenset({"INITIALIZING", "CREATED", "RUNNING"})
CHECK = {"streamplace.check": "true"}
"""Settings that make the pinning class check a job without submitting it."""
_SETTINGS = re.compile(rf"{FITS} <([A-Za-z0-9+/=]*)>")


def apply(
    rest: Rest,
    flink: Flink,
    program: Program,
    layout: Layout,
    *,
    savepoint: Savepoint | None = None,
    seconds: float = 60.0,
) -> str:
    """Submit a job with a placement, wait until all of it runs or has run, and return its id.

    Operators without a parallelism of their own get that of the placement.

    Raises
    ------
    PlacementError
        When a device of the placement is not a TaskManager of the cluster, or cannot be pinned to.
    CopyRuns
        When a job that was started from the same savepoint is running.
    FlinkError
        When the cluster's scheduler ignores placements, when the job is not the placed one, or
        when it does not start; the message quotes the reason, and nothing keeps running unless
        Flink stops answering.
    StillStarting
        When the job still restores its state after ``seconds``; it is not cancelled.
    """
    request = program.run_request(savepoint)
    if savepoint is None:
        request["jobId"] = secrets.token_hex(16)
    else:
        refuse_copy(rest, savepoint.path)
        request["jobId"] = free_id(rest, savepoint.path)
    check_cluster(rest, layout)
    rest.wait_released()
    with placed_upload(rest, flink, program, *fitted(rest, layout, program.managed_mb)) as jar:
        job = _submitted(rest, jar, request, savepoint)
    try:
        wait_started(rest, job, seconds, layout.devices)
    except StillStarting:
        remember(job, program)
        raise
    except BaseException as error:
        _cancelled(rest, job, error)
        raise
    remember(job, program)
    return job


def _cancelled(rest: Rest, job: str, error: BaseException) -> None:
    """Cancel a job that did not start; if Flink does not answer, its id is told with the error."""
    try:
        rest.cancel(job)
    except NoAnswer as silence:
        reason = f"{error}; " if isinstance(error, FlinkError) else ""
        raise NoAnswer(
            f"{reason}job {job} could not be cancelled and may run ({silence}), so look for it "
            "before you submit it again"
        ) from None


def check(
    rest: Rest, flink: Flink, program: Program, layout: Layout, without: str
) -> dict[str, str]:
    """Run a job's main method as ``apply`` would, submit nothing, and return the job's settings.

    The resources of the job ``without`` count as free.
    """
    request = program.run_request(more=CHECK)
    check_cluster(rest, layout)
    managers = left_without(rest, without)
    plan = None
    with suppress(FlinkError):  # it may not run any more
        plan = plan_with_loops(rest, without)
    answer, managed = fitted(rest, layout, program.managed_mb, managers, plan)
    with placed_upload(rest, flink, program, answer, managed) as jar:
        try:
            job = _run(jar, request)
        except FlinkError as error:
            if FITS not in str(error):
                raise
            return _planned(error)
    rest.cancel(job)
    raise FlinkError("the job is not submitted by its main method, so it cannot be placed")


def _planned(answer: FlinkError) -> dict[str, str]:
    """Settings of a job, from the answer of the pinning class."""
    match = _SETTINGS.search(str(answer))
    lines = base64.b64decode(match[1]).decode().splitlines() if match else []
    pairs = (line.partition("=") for line in lines)
    return {key: value if key.endswith(".dir") else value.lower() for key, _, value in pairs}


@contextmanager
def placed_upload(
    rest: Rest, flink: Flink, program: Program, answer: Pinning, managed: dict[str, int]
) -> Iterator[ClusterJar]:
    """Upload the job's jar with the pinning class in it, and delete it when the block ends."""
    program.check()
    check_upload(rest)
    name = own_name(f"placed-{program.jar.name}")

    def make() -> AbstractContextManager[Path]:
        return placed_jar(flink, program.jar, program.libraries, answer, managed, name)

    with uploaded(rest, make) as jar:
        yield jar


def check_made(flink: Flink, program: Program) -> None:
    """Raise an error if the jar that pins a job cannot be made: no compiler, a full disk."""
    with placed_jar(flink, program.jar, program.libraries, Pinning({}, {}, {}, {}), {}):
        return


def _run(jar: ClusterJar, request: dict[str, object]) -> str:
    """Run an uploaded jar and return the id of the job that it submits."""
    try:
        return str(jar.run(request)["jobid"])
    except FlinkError as error:
        raise explained(error) from None


def _submitted(
    rest: Rest, jar: ClusterJar, request: dict[str, object], savepoint: Savepoint | None
) -> str:
    """Submit a job with an id, and return that; if Flink does not answer, the job is looked up.

    Flink remembers the ids of jobs from a savepoint that ended long ago, so it gets the next one.
    """
    refused: list[str] = []
    while True:
        try:
            return _submitted_once(rest, jar, request)
        except Refusal as error:
            job = str(request["jobId"])
            if savepoint is None or not is_spent(error) or exists(rest, job, error):
                raise
            refuse_copy(rest, savepoint.path)
            refused.append(job)
            request["jobId"] = free_id(rest, savepoint.path, refused)


def _submitted_once(rest: Rest, jar: ClusterJar, request: dict[str, object]) -> str:
    job = str(request["jobId"])
    try:
        return _run(jar, request)
    except NoAnswer as error:
        with suppress(NoAnswer):
            if appears(rest, job):
                return job
        raise NoAnswer(
            f"{error}; whether job {job} was started is not known, so look for it before you "
            "submit it again"
        ) from None


def wait_started(rest: Rest, job: str, seconds: float, needed: Collection[str] = ()) -> None:
    """Wait until every subtask of a job runs; raise FlinkError as soon as one cannot.

    It cannot run without the TaskManagers ``needed``; others may join meanwhile. If it still
    restores its state at the end, StillStarting is raised.
    """
    for _ in turns(seconds):
        document = rest.job(job)
        if document["state"] == FINISHED:
            return
        if document["state"] not in STARTING:
            raise FlinkError(f"job {job} is {document['state']}: {rest.failure(job)}")
        if fault := job_fault(rest, document):
            raise FlinkError(fault)
        waiting = [v for v in document["vertices"] if v["status"] not in ("RUNNING", "FINISHED")]
        if document["vertices"] and not waiting:
            return
        refuse_lost(rest, needed)
    refuse_restoring(document, job, seconds)
    late = [f"; {quoted(v['name'])} is {v['status']}" for v in waiting[:1]]
    raise FlinkError(f"job {job} does not run after {seconds:g} s{''.join(late)}")


def refuse_lost(rest: Rest, needed: Collection[str]) -> None:
    """Raise FlinkError if the cluster lacks one of these TaskManagers."""
    if needed and (lost := sorted(set(needed).difference(rest.offered()))):
        raise FlinkError(f"the cluster has lost {listed(lost)}")
