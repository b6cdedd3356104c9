"""Applying a placement: an unchanged job, submitted so that it runs where it was placed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from streamplace.engines.flink.dist import Flink
from streamplace.engines.flink.jars import MAIN, main_class, placed_jar
from streamplace.engines.flink.names import limit_name
from streamplace.engines.flink.pinning import Vectors, pinning
from streamplace.engines.flink.rest import FlinkError, Rest
from streamplace.engines.names import resource
from streamplace.errors import PlacementError
from streamplace.io.files import spot
from streamplace.model.messages import listed, quoted


def apply(
    rest: Rest,
    flink: Flink,
    jar: Path,
    vectors: Vectors,
    *,
    entry_class: str | None = None,
    arguments: Sequence[str] = (),
    seconds: float = 60.0,
) -> str:
    """Submit a job with a placement and wait until all of it runs; returns its id.

    Raises
    ------
    PlacementError
        When a device of the placement is no TaskManager of the cluster, or does not offer itself.
    FlinkError
        When the job does not come up; it quotes why, and nothing is left running.
    """
    entry = entry_class or main_class(jar)
    if entry is None:
        raise PlacementError(f"{spot(jar)}: names no main class; give --entry-class")
    offered = rest.offered()
    check_offers(offered, vectors)
    rest.wait_released()
    with placed_jar(flink, jar, pinning(vectors, list(offered), free_groups(rest))) as placed:
        uploaded = rest.upload(placed)
    job = rest.run_jar(uploaded, MAIN, [entry, *arguments])
    try:
        rest.wait_running(job, seconds)
    except FlinkError:
        rest.cancel(job)
        raise
    return job


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
        for device in vector:
            if device not in offered:
                raise PlacementError(
                    f"operator {quoted(operator)} is on {quoted(device)}, which is no TaskManager "
                    f"of the cluster; it has {listed(tuple(offered))}"
                )
            if resource(device) not in offered[device]:
                raise PlacementError(
                    f"TaskManager {quoted(device)} does not offer {quoted(resource(device))}, so "
                    "nothing can be pinned to it; start it with the exported config.yaml fragment"
                )


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
