"""Apply a placement: submit an unchanged job so that its subtasks run on their devices."""

import base64
import re
import secrets
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress

from streamplace.flink.deployment import deployment_of
from streamplace.flink.layout import Layout
from streamplace.flink.move.savepoints import CopyRuns, free_ids, refuse_copy, refuse_moved
from streamplace.flink.pin.free_resources import fitted
from streamplace.flink.pin.pinning import Pinning
from streamplace.flink.program.jars import placed_jar
from streamplace.flink.program.program import Program, Savepoint, remember
from streamplace.flink.program.submission import (
    ClusterJar,
    explained,
    is_spent,
    own_name,
    submit,
    uploaded,
)
from streamplace.flink.rest.client import (
    AT_WORK,
    FINISHED,
    JAR_SECONDS,
    RUNNING,
    FlinkError,
    NoAnswer,
    Refusal,
    Rest,
    turns,
)
from streamplace.flink.rest.plan import plan_of
from streamplace.flink.rest.settings import job_fault
from streamplace.model.defaults import START_SECONDS
from streamplace.model.message_text import listed, quoted

RESTORING = "INITIALIZING"
"""State of a task that has its slots and restores its state, and of a job without a plan yet."""
STARTING = frozenset({RESTORING, "CREATED", RUNNING})
CHECK = {"streamplace.check": "true"}
"""Settings that make the pinning class check a job without submitting it."""
FITS = "the job fits its placement"
"""Message of the pinning class after it has checked a job, before the settings of the job."""


class StillStarting(NoAnswer):
    """A job has all its slots, but restores its state for longer than was waited."""


def apply(
    rest: Rest,
    program: Program,
    layout: Layout,
    *,
    savepoint: Savepoint | None = None,
    seconds: float = START_SECONDS,
) -> str:
    """Submit a job with a placement, wait until all of it runs or has run, and return its id.

    Operators without a parallelism of their own get the parallelism of the placement.

    Raises PlacementError when a device of the placement is not a TaskManager of the cluster, or
    cannot be pinned to. Raises CopyRuns when a job that was started from the same savepoint is
    running, or an unfinished move has taken it. Raises FlinkError when the cluster's scheduler
    ignores placements, when the job is not the placed one, or when it does not start; nothing keeps
    running unless Flink stops answering. Raises StillStarting when it still restores its state
    after ``seconds``; it is not cancelled.
    """
    deployment_of(rest).check_jobs()
    if savepoint is not None:
        refuse_moved(savepoint.path)
        refuse_copy(rest, savepoint.path)
    rest.wait_released()
    with placed_upload(rest, program, fitted(rest, layout, program.managed_mb)) as jar:
        job = _submitted(rest, jar, program, savepoint)
    try:
        remember(job, program)
        wait_started(rest, job, seconds, layout.devices)
    except StillStarting:
        raise
    except BaseException as error:
        _cancelled(rest, job, error)
        raise
    return job


def _submitted(rest: Rest, jar: ClusterJar, program: Program, savepoint: Savepoint | None) -> str:
    """Submit a job and return its id.

    Flink remembers the ids of jobs from a savepoint that ended long ago, so it gets the next one.
    """
    request = program.run_request(savepoint)
    ids = iter([secrets.token_hex(16)]) if savepoint is None else free_ids(rest, savepoint.path)
    while True:
        job = next(ids)
        try:
            is_new = submit(rest, jar, request, job, rest.wait_released, JAR_SECONDS)
        except Refusal as error:
            if savepoint is None or not is_spent(error):
                raise
            refuse_copy(rest, savepoint.path)
            continue
        except NoAnswer as error:
            raise NoAnswer(
                f"{error}; whether job {job} was started is not known, so look for it before you "
                "submit it again"
            ) from None
        if is_new or savepoint is None:  # a random id is nobody else's
            return job
        raise CopyRuns(f"another command has started job {job} from the same savepoint")


def _cancelled(rest: Rest, job: str, error: BaseException) -> None:
    """Cancel a job that did not start; if Flink does not answer, the error names its id."""
    try:
        rest.cancel(job)
    except NoAnswer as silence:
        reason = f"{error}; " if isinstance(error, FlinkError) else ""
        raise NoAnswer(
            f"{reason}job {job} could not be cancelled and may run ({silence}), so look for it "
            "before you submit it again"
        ) from None


def check(
    rest: Rest, program: Program, layout: Layout, without: str, savepoint: Savepoint | None = None
) -> dict[str, str]:
    """Run a job's main method as ``apply`` would, submit nothing, and return the job's settings.

    The resources of the job ``without`` count as free. The program must have all operators whose
    state is in the ``savepoint``, if it can still be read.
    """
    plan = None
    with suppress(FlinkError):  # it may not run any more
        plan = plan_of(rest.running_job(without))
    answer = fitted(rest, layout, program.managed_mb, [without], plan)
    with placed_upload(rest, program, answer) as jar:
        try:
            job = str(jar.run(program.run_request(savepoint, CHECK))["jobid"])
        except FlinkError as error:
            text = error.complaint if isinstance(error, Refusal) else ""
            if FITS not in text:
                raise explained(error) from None
            return _settings(text)
    rest.cancel(job)
    raise FlinkError("the job is not submitted by its main method, so it cannot be placed")


def _settings(answer: str) -> dict[str, str]:
    """Settings of a job, from the answer of the pinning class."""
    match = re.search(rf"{FITS} <([A-Za-z0-9+/=]*)>", answer)
    lines = base64.b64decode(match[1]).decode().splitlines() if match else []
    pairs = (line.partition("=") for line in lines)
    as_it_is = (".dir", ".name")
    return {key: text if key.endswith(as_it_is) else text.lower() for key, _, text in pairs}


@contextmanager
def placed_upload(rest: Rest, program: Program, answer: Pinning) -> Iterator[ClusterJar]:
    """Upload the job's jar with the pinning class in it, and delete it when the block ends."""
    program.check()
    name = own_name(f"placed-{program.jar.name}")
    made = placed_jar(program.jar, program.libraries, answer, name)
    with made as path, uploaded(rest, path) as jar:
        yield jar


def wait_started(rest: Rest, job: str, seconds: float, needed: Collection[str]) -> None:
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
        waiting = [v for v in document["vertices"] if v["status"] not in AT_WORK]
        if document["vertices"] and not waiting:
            return
        refuse_lost(rest, needed)
    if document["state"] == RUNNING and {v["status"] for v in waiting} == {RESTORING}:
        raise StillStarting(
            f"job {job} is still starting after {seconds:g} s: {quoted(waiting[0]['name'])} is "
            f"{RESTORING}, as tasks are while they restore their state"
        )
    late = [f"; {quoted(v['name'])} is {v['status']}" for v in waiting[:1]]
    raise FlinkError(f"job {job} does not run after {seconds:g} s{''.join(late)}")


def refuse_lost(rest: Rest, needed: Collection[str]) -> None:
    """Raise FlinkError if the cluster lacks one of these TaskManagers."""
    if needed and (lost := sorted(set(needed).difference(rest.offered()))):
        raise FlinkError(f"the cluster has lost {listed(lost)}")
