"""Vertices of a running job: their operators, their parallelism, and their devices."""

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote

from streamplace.engines.flink.program.identity import TaskOperators, operators_of
from streamplace.engines.flink.rest.answer_shapes import Job, Subtask
from streamplace.engines.flink.rest.client import Rest


@dataclass(frozen=True, slots=True)
class Vertex:
    """One task of a job: an operator, or several that Flink chained."""

    id: str
    operators: tuple[str, ...]  # names in placements, in order
    # Names with a number that may belong to another operator of the same name.
    unsure: tuple[str, ...]
    parallelism: int
    devices: dict[str, int]  # device → number of its subtasks


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


def source_names(document: Job) -> dict[str, str]:
    """Vertices of a job without inputs, with the names of their sources as Flink shows them."""
    plan = document.get("plan") or {"nodes": []}
    fed = {node["id"] for node in plan["nodes"] if node.get("inputs")}
    return {
        vertex["id"]: operators.shown[0]
        for vertex, operators in zip(document["vertices"], job_operators(document), strict=True)
        if vertex["id"] not in fed
    }


def layout_of(rest: Rest, job: str, document: Job) -> dict[str, list[str]]:
    """Operator → device of each of its subtasks, in order."""
    layout: dict[str, list[str]] = {}
    for vertex, operators in zip(document["vertices"], job_operators(document), strict=True):
        devices = subtask_devices(rest, job, vertex["id"])
        layout.update(dict.fromkeys(operators.names, devices))
    return layout


def subtask_devices(rest: Rest, job: str, vertex: str) -> list[str]:
    """Device of each subtask of a vertex, in order; empty where it has none."""
    return [str(row.get("taskmanager-id") or "") for row in _subtasks(rest, job, vertex)]


def _subtasks(rest: Rest, job: str, vertex: str) -> list[Subtask]:
    path = f"/jobs/{quote(job, safe='')}/vertices/{quote(vertex, safe='')}"
    subtasks: list[Subtask] = rest.get(path)["subtasks"]
    return subtasks


def _devices(rest: Rest, job: str, vertex: str) -> dict[str, int]:
    devices: dict[str, int] = {}
    for subtask in _subtasks(rest, job, vertex):
        device = str(subtask.get("taskmanager-id") or "(unassigned)")
        devices[device] = devices.get(device, 0) + 1
    return dict(sorted(devices.items()))
