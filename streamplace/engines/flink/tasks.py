"""Vertices of a running job: what Flink fused, how often it runs, and where."""

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote

from streamplace.engines.flink.answer_shapes import Job
from streamplace.engines.flink.identity import Operators, operators_of
from streamplace.engines.flink.rest import Rest


@dataclass(frozen=True, slots=True)
class Vertex:
    """One task of a job: an operator, or several that Flink chained.

    Attributes
    ----------
    operators
        As placements call them, the first one first.
    unsure
        Those whose numbers may belong to other operators of the same name.
    devices
        Device → number of subtasks that it runs.
    """

    id: str
    operators: tuple[str, ...]
    unsure: tuple[str, ...]
    parallelism: int
    devices: dict[str, int]


def read_vertices(rest: Rest, job: str, document: Job, known: Iterable[str] = ()) -> list[Vertex]:
    """Vertices of a job with the devices of their subtasks; known names may hold anything."""
    return [
        Vertex(
            row["id"], found.names, found.unsure, row["parallelism"], _devices(rest, job, row["id"])
        )
        for row, found in zip(document["vertices"], job_operators(document, known), strict=True)
    ]


def job_operators(document: Job, known: Iterable[str] = ()) -> list[Operators]:
    """Operators of each vertex of a job."""
    plan = document.get("plan") or {"nodes": []}
    return operators_of(document["vertices"], plan["nodes"], known)


def _devices(rest: Rest, job: str, vertex: str) -> dict[str, int]:
    subtasks = rest.get(f"/jobs/{quote(job, safe='')}/vertices/{quote(vertex, safe='')}")[
        "subtasks"
    ]
    found: dict[str, int] = {}
    for subtask in subtasks:
        device = str(subtask.get("taskmanager-id") or "(unassigned)")
        found[device] = found.get(device, 0) + 1
    return dict(sorted(found.items()))
