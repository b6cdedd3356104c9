"""Tasks of a job: their operators, parallelism and devices, and how long they restore state."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.program.chains import TaskOperators, check_names, operators_of
from streamplace.engines.flink.rest.answers import Job, Subtask
from streamplace.engines.flink.rest.client import AT_WORK, FINISHED, NoAnswer, Rest
from streamplace.model.messages import quoted

INITIALIZING = "INITIALIZING"
"""State of a task that has its slots and restores its state."""


@dataclass(frozen=True, slots=True)
class Vertex:
    """One task of a job: an operator, or several that Flink chained."""

    id: str
    operators: tuple[str, ...]  # names in placements, in order
    parallelism: int
    devices: dict[str, int]  # device → number of its subtasks


def read_vertices(rest: Rest, job: str, document: Job) -> list[Vertex]:
    """Vertices of a job with the devices of their subtasks."""
    return [
        Vertex(
            row["id"],
            operators.names,
            row["parallelism"],
            _devices(rest, job, row["id"]),
        )
        for row, operators in zip(document["vertices"], _placed_operators(document), strict=True)
    ]


def job_operators(document: Job) -> list[TaskOperators]:
    """Operators of each vertex of a job."""
    plan = document.get("plan") or {"nodes": []}
    return operators_of(document["vertices"], plan["nodes"])


def _placed_operators(document: Job) -> list[TaskOperators]:
    """Operators of each vertex of a job; an error if nothing tells those of one name apart."""
    operators = job_operators(document)
    check_names(operators)
    return operators


def source_names(document: Job) -> dict[str, str]:
    """Vertices of a job without inputs, with the names of their sources as Flink shows them."""
    plan = document.get("plan") or {"nodes": []}
    fed = {node["id"] for node in plan["nodes"] if node.get("inputs")}
    return {
        vertex["id"]: operators.shown[0]
        for vertex, operators in zip(document["vertices"], job_operators(document), strict=True)
        if vertex["id"] not in fed
    }


def layout_of(rest: Rest, job: str, document: Job) -> Layout:
    """Layout of a running job.

    Subtasks that have ended may have run on a TaskManager that was released since; they count as
    subtasks of the other devices of the job.
    """
    found: dict[str, list[str]] = {}
    used, running = set[str](), set[str]()
    tasks = zip(document["vertices"], _placed_operators(document), strict=True)
    for vertex, operators in tasks:
        subtasks = _subtasks(rest, job, vertex["id"])
        devices = [str(row.get("taskmanager-id") or "") for row in subtasks]
        found.update(dict.fromkeys(operators.names, devices))
        used.update(devices)
        pairs = zip(devices, subtasks, strict=True)
        running.update(device for device, row in pairs if row.get("status") != FINISHED)
    released = (used - running).difference(rest.offered()) if used - running else set[str]()
    layout = Layout(found)
    return layout if released == used else layout.without(released)


def _subtasks(rest: Rest, job: str, vertex: str) -> list[Subtask]:
    path = f"/jobs/{quote(job, safe='')}/vertices/{quote(vertex, safe='')}"
    subtasks: list[Subtask] = rest.get(path)["subtasks"]
    return subtasks


def _devices(rest: Rest, job: str, vertex: str) -> dict[str, int]:
    subtasks = _subtasks(rest, job, vertex)
    devices = Counter(str(row.get("taskmanager-id") or "(unassigned)") for row in subtasks)
    return dict(sorted(devices.items()))


class StillStarting(NoAnswer):
    """A job has all its slots, but restores its state for longer than was waited.

    Attributes
    ----------
    job
        The job; it is not cancelled.
    """

    def __init__(self, job: str, seconds: float, task: str) -> None:
        super().__init__(
            f"job {job} is still starting after {seconds:g} s: {quoted(task)} is {INITIALIZING}, "
            "as tasks are while they restore their state"
        )
        self.job = job


def refuse_restoring(document: Mapping[str, Any], job: str, seconds: float) -> None:
    """Raise StillStarting if all that keeps a job from running is that tasks initialize."""
    waiting = [v for v in document["vertices"] if v["status"] not in AT_WORK]
    states = {vertex["status"] for vertex in waiting}
    if document["state"] == "RUNNING" and states == {INITIALIZING}:
        raise StillStarting(job, seconds, waiting[0]["name"])


def seconds_running(document: Job) -> float:
    """Seconds since a job began to run, or ran again after a restart.

    >>> seconds_running({"name": "", "state": "RUNNING", "vertices": [], "duration": 5000})
    5.0
    """
    began, now = document.get("timestamps", {}).get("RUNNING", 0), document.get("now", 0)
    if 0 < began <= now:
        return (now - began) / 1000
    return document.get("duration", 0) / 1000
