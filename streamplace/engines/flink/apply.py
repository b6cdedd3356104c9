"""Applying a placement: an unchanged job, submitted so that it runs where it was placed."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote

from streamplace.engines.flink.dist import Flink
from streamplace.engines.flink.jars import placed_jar
from streamplace.engines.flink.names import limit_name
from streamplace.engines.flink.pinning import Pinning, Vectors, devices_of, pinning
from streamplace.engines.flink.program import Program
from streamplace.engines.flink.rest import POLL_SECONDS, FlinkError, Rest
from streamplace.engines.flink.scheduler import cluster_fault, job_fault
from streamplace.engines.flink.state import Savepoint
from streamplace.engines.names import resource
from streamplace.errors import PlacementError
from streamplace.model.messages import listed, quoted

STARTING = frozenset({"INITIALIZING", "CREATED", "RUNNING"})
OURS = "streamplace: "
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
    """Submit a job with a placement and wait until all of it runs; returns its id.

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


def check(rest: Rest, flink: Flink, program: Program, vectors: Vectors) -> None:
    """Run a job's main method as ``apply`` would, on an empty cluster, but submit nothing.

    Raises
    ------
    PlacementError, FlinkError
        What ``apply`` would refuse before anything runs.
    """
    request = program.run_request(more=CHECK)
    check_cluster(rest, vectors)
    managers = rest.task_managers()
    answer = pinning(vectors, [row["id"] for row in managers], range(_most_groups(managers)))
    managed = _managed(managers, "totalResource", program.managed_mb)
    with _placed(rest, flink, program, answer, managed) as jar:
        try:
            job = _run(rest, jar, request)
        except FlinkError as error:
            if FITS not in str(error):
                raise
            return
    rest.cancel(job)
    raise FlinkError("the job is not submitted by its main method, so it cannot be placed")


def fitted(
    rest: Rest, vectors: Vectors, most_mb: int | None = None
) -> tuple[Pinning, dict[str, int]]:
    """Pinning for what a cluster has free now, and its TaskManagers' free managed memory in MB."""
    managers = rest.task_managers()
    answer = pinning(vectors, [row["id"] for row in managers], free_groups(rest))
    return answer, _managed(managers, "freeResource", most_mb)


def _managed(managers: Sequence[dict[str, Any]], kind: str, most_mb: int | None) -> dict[str, int]:
    found = {row["id"]: int(row[kind]["managedMemory"]) for row in managers}
    return {name: mb if most_mb is None else min(mb, most_mb) for name, mb in found.items()}


def check_cluster(rest: Rest, vectors: Vectors) -> None:
    """Raise what is wrong with a cluster, seen from a placement."""
    if fault := cluster_fault(rest):
        raise FlinkError(fault)
    check_offers(rest.offered(), vectors)
    if any(len(set(devices_of(vector))) > 1 for vector in vectors.values()):
        _check_groups(rest.task_managers())


def free_groups(rest: Rest) -> list[int]:
    """Group indexes that every TaskManager offers and of which no slot is taken."""
    managers = rest.task_managers()
    free = []
    for j in range(_most_groups(managers)):
        names = [limit_name(j, manager["id"]) for manager in managers]
        if all(_untouched(manager, names) for manager in managers):
            free.append(j)
    return free


def check_offers(offered: dict[str, dict[str, float]], vectors: Vectors) -> None:
    """Raise PlacementError for a device that the cluster lacks or that cannot be pinned to."""
    for operator, vector in vectors.items():
        for device in devices_of(vector):
            if device not in offered:
                raise PlacementError(
                    f"operator {quoted(operator)} is on {quoted(device)}, which is no TaskManager "
                    f"of the cluster; it has {listed(tuple(offered))}"
                )
            if resource(device) not in offered[device]:
                raise _unprepared(device, resource(device), "nothing can be pinned to it")


def _check_groups(managers: Sequence[dict[str, Any]]) -> None:
    """Raise PlacementError for a TaskManager that hinders spreading operators over others."""
    for manager in managers:
        offered = manager["totalResource"].get("extendedResources", {})
        for other in managers:
            if (name := limit_name(0, other["id"])) not in offered:
                why = "no operator can be spread over devices while it is there"
                raise _unprepared(manager["id"], name, why)


def _unprepared(device: str, name: str, why: str) -> PlacementError:
    return PlacementError(
        f"TaskManager {quoted(device)} does not offer {quoted(name)}, so {why}; add what "
        "'streamplace flink config' writes to its config.yaml and start it again"
    )


@contextmanager
def _placed(
    rest: Rest, flink: Flink, program: Program, answer: Pinning, managed: dict[str, int]
) -> Iterator[str]:
    """Id of the job's jar with the pinning class in it, on the cluster while the block runs."""
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
        time.sleep(POLL_SECONDS)


def _most_groups(managers: Sequence[dict[str, Any]]) -> int:
    """Group indexes that the first TaskManager offers for itself; the others must agree."""
    if not managers:
        return 0
    offered = managers[0]["totalResource"].get("extendedResources", {})
    name, j = managers[0]["id"], 0
    while limit_name(j, name) in offered:
        j += 1
    return j


def _untouched(manager: dict[str, Any], names: Sequence[str]) -> bool:
    total, free = (
        manager[kind].get("extendedResources", {}) for kind in ("totalResource", "freeResource")
    )
    return all(name in total and free.get(name) == total[name] for name in names)
