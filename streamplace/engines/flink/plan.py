"""The plan of a running job: which task feeds which, and how tuples reach its subtasks."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from streamplace.engines.flink.names import FUSED
from streamplace.engines.flink.rest import Rest
from streamplace.engines.flink.tasks import members

_PARTITIONING = {"FORWARD": "forward", "HASH": "hash", "REBALANCE": "rebalance"}


@dataclass(frozen=True, slots=True)
class Task:
    """A vertex of the plan; its operators are fused, so they are placed together.

    Attributes
    ----------
    name
        Of its operators, as the job's author gave them, joined by `` -> ``.
    is_namesake
        Whether an earlier task bears the same name, so that this one's has a number added.
    """

    id: str
    name: str
    thread_name: str
    parallelism: int
    is_namesake: bool = False


@dataclass(frozen=True, slots=True)
class Edge:
    """A stream between two tasks, by their ids."""

    source: str
    target: str
    partitioning: str


def read_plan(rest: Rest, job: str) -> tuple[str, list[Task], list[Edge]]:
    """Name, tasks in topological order and streams of a job."""
    document = rest.job(job)
    nodes = rest.get(f"/jobs/{quote(job, safe='')}/plan")["plan"]["nodes"]
    return str(document["name"]), _tasks(document["vertices"]), _edges(nodes)


def _tasks(vertices: list[dict[str, Any]]) -> list[Task]:
    names = [FUSED.join(members(row["name"], ())) for row in vertices]
    tasks = []
    for i, row in enumerate(vertices):
        earlier = names[:i].count(names[i])
        name = f"{names[i]} ({earlier + 1})" if earlier else names[i]
        tasks.append(Task(row["id"], name, row["name"], row["parallelism"], earlier > 0))
    return tasks


def _edges(nodes: list[dict[str, Any]]) -> list[Edge]:
    return [
        Edge(row["id"], node["id"], _PARTITIONING.get(row.get("ship_strategy", ""), "rebalance"))
        for node in nodes
        for row in node.get("inputs", ())
    ]
