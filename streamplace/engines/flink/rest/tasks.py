"""Vertices of a running job: their operators, their parallelism, and their devices."""

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote

from streamplace.engines.flink.program.identity import TaskOperators, operators_of
from streamplace.engines.flink.rest.answer_shapes import Job
from streamplace.engines.flink.rest.client import Rest


@dataclass(frozen=True, slots=True)
class Vertex:
    """One task of a job: an operator, or several that Flink chained.

    Attributes
    ----------
    operators
        Names in placements, in order.
    unsure
        Names with a number that may belong to another operator of the same name.
    devices
        Device → number of its subtasks.
    """

    id: str
    operators: tuple[str, ...]
    unsure: tuple[str, ...]
    parallelism: int
    devices: dict[str, int]


def read_vertices(
    rest: Rest, job: str, document: Job, expected: Iterable[str] = ()
) -> list[Vertex]:
    """Vertices of a job with the devices of their subtasks.

    Expected names of operators may contain any characters.
    """
    return [
        Vertex(
            row["id"],
            operators.names,
            operators.unsure,
            row["parallelism"],
            _devices(rest, job, row["id"]),
        )
        for row, operators in zip(
            document["vertices"], job_operators(document, expected), strict=True
        )
    ]


def job_operators(document: Job, expected: Iterable[str] = ()) -> list[TaskOperators]:
    """Operators of each vertex of a job."""
    plan = document.get("plan") or {"nodes": []}
    return operators_of(document["vertices"], plan["nodes"], expected)


def _devices(rest: Rest, job: str, vertex: str) -> dict[str, int]:
    subtasks = rest.get(f"/jobs/{quote(job, safe='')}/vertices/{quote(vertex, safe='')}")[
        "subtasks"
    ]
    devices: dict[str, int] = {}
    for subtask in subtasks:
        device = str(subtask.get("taskmanager-id") or "(unassigned)")
        devices[device] = devices.get(device, 0) + 1
    return dict(sorted(devices.items()))
