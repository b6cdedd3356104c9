"""Applying a placement: an unchanged job, submitted so that it runs where it was placed."""

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from streamplace.engines.flink.dist import Flink
from streamplace.engines.flink.jars import MAIN, main_class, placed_jar, placed_java
from streamplace.engines.flink.names import limit_name
from streamplace.engines.flink.pinning import Pinning, Vectors, devices_of, pinning
from streamplace.engines.flink.rest import POLL_SECONDS, FlinkError, Rest
from streamplace.engines.flink.scheduler import cluster_fault, job_fault
from streamplace.engines.flink.state import Savepoint
from streamplace.engines.names import resource
from streamplace.errors import PlacementError
from streamplace.io.files import spot
from streamplace.model.messages import listed, quoted

STARTING = frozenset({"INITIALIZING", "CREATED", "RUNNING"})
OURS = "streamplace: "
SQL = (
    "; the SQL planner numbers operators anew with every job that is submitted through REST, and "
    "from 1 in a process of its own: measure and place the job as 'flink run' submits it, and run "
    "it by 'flink run -c Placed' with the exported Placed.java"
)
UNMAPPED = "Cannot map checkpoint/savepoint state"
UIDS = (
    f"{UNMAPPED} to the job: operators without a uid are known by how they are chained, which "
    'placing changes; give those with state a uid (.uid("count") in the job) before they are '
    "saved, or leave their state behind by --allow-non-restored"
)
_SQL_UNPLACED = re.compile(r"operator '[^']*\[\d+\]' is not placed")


def apply(
    rest: Rest,
    flink: Flink,
    jar: Path,
    vectors: Vectors,
    *,
    entry_class: str | None = None,
    arguments: Sequence[str] = (),
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
    entry = entry_class or main_class(jar)
    if entry is None:
        raise PlacementError(f"{spot(jar)}: names no main class; give --entry-class")
    if fault := cluster_fault(rest):
        raise FlinkError(fault)
    source = placed_java(*fitted(rest, vectors))
    with placed_jar(flink, jar, source) as placed, _uploaded(rest, placed) as uploaded:
        job = _submitted(rest, uploaded, [entry, *arguments], savepoint)
    try:
        _wait_started(rest, job, seconds)
    except FlinkError:
        rest.cancel(job)
        raise
    return job


def fitted(rest: Rest, vectors: Vectors) -> tuple[Pinning, dict[str, int]]:
    """Pinning for what a cluster has free now, and its TaskManagers' free managed memory in MB."""
    check_offers(rest.offered(), vectors)
    rest.wait_released()
    managers = rest.task_managers()
    if any(len(set(devices_of(vector))) > 1 for vector in vectors.values()):
        _check_groups(managers)
    free = {row["id"]: int(row["freeResource"]["managedMemory"]) for row in managers}
    return pinning(vectors, list(free), free_groups(rest)), free


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
def _uploaded(rest: Rest, jar: Path) -> Iterator[str]:
    """Id of a jar that is on the cluster while the block runs."""
    uploaded = rest.upload(jar)
    try:
        yield uploaded
    finally:
        with suppress(FlinkError):
            rest.delete(f"/jars/{quote(uploaded, safe='')}")


def _submitted(rest: Rest, jar: str, arguments: Sequence[str], savepoint: Savepoint | None) -> str:
    """Id of the job that an uploaded jar submits."""
    document: dict[str, object] = {"entryClass": MAIN, "programArgsList": list(arguments)}
    if savepoint is not None:
        document["savepointPath"] = savepoint.path
        document["allowNonRestoredState"] = savepoint.allow_non_restored
    try:
        return str(rest.post(f"/jars/{quote(jar, safe='')}/run", document)["jobid"])
    except FlinkError as error:
        if UNMAPPED in str(error):
            raise FlinkError(UIDS) from None
        _, ours, fault = str(error).partition(OURS)
        if not ours:
            raise
        raise FlinkError(fault + SQL if _SQL_UNPLACED.search(fault) else fault) from None


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
