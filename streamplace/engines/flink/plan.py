"""The plan of a running job: which task feeds which, and how tuples reach its subtasks."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from streamplace.engines.flink.answers import JobVertex, PlanNode
from streamplace.engines.flink.chains import fused_operators
from streamplace.engines.flink.names import FUSED, operator_name
from streamplace.engines.flink.rest import FlinkError, Rest
from streamplace.model.messages import quoted

_PARTITIONING = {"FORWARD": "forward", "HASH": "hash", "REBALANCE": "rebalance"}


@dataclass(frozen=True, slots=True)
class Task:
    """A vertex of the plan; its operators are fused, so they are placed together.

    Attributes
    ----------
    name
        Of its operators, as the job's author gave them, joined by `` -> ``.
    thread_name
        As Flink shows it, and as its threads are called.
    operators
        Its operators as Flink shows them, such as ``Source: lines``, the first one first.
    is_namesake
        Whether an earlier task bears the same name, so that this one's has a number added.
    """

    id: str
    name: str
    thread_name: str
    parallelism: int
    operators: tuple[str, ...]
    is_namesake: bool = False


@dataclass(frozen=True, slots=True)
class Edge:
    """A stream between two tasks, by their ids.

    Attributes
    ----------
    copies
        How many of the target's subtasks get each tuple: all where it is broadcast, else one.
    """

    source: str
    target: str
    partitioning: str
    copies: int = 1


def read_plan(rest: Rest, job: str) -> tuple[str, list[Task], list[Edge]]:
    """Name, tasks in topological order and streams of a job."""
    document = rest.running_job(job)
    nodes: list[PlanNode] = rest.get(f"/jobs/{quote(job, safe='')}/plan")["plan"]["nodes"]
    descriptions = {node["id"]: node.get("description", "") for node in nodes}
    tasks = _tasks(document["vertices"], descriptions)
    return document["name"], tasks, _edges(nodes, {task.id: task.parallelism for task in tasks})


def _tasks(vertices: Sequence[JobVertex], descriptions: Mapping[str, str]) -> list[Task]:
    seen: Counter[str] = Counter()
    tasks = []
    for row in vertices:
        operators = tuple(fused_operators(row["name"], descriptions.get(row["id"], "")))
        name = FUSED.join(dict.fromkeys(map(operator_name, operators)))
        seen[name] += 1
        unique = f"{name} ({seen[name]})" if seen[name] > 1 else name
        tasks.append(
            Task(row["id"], unique, row["name"], row["parallelism"], operators, seen[name] > 1)
        )
    return tasks


def _edges(nodes: Sequence[PlanNode], parallelism: Mapping[str, int]) -> list[Edge]:
    edges = []
    for node in nodes:
        for row in node.get("inputs", ()):
            if not parallelism.keys() >= {row["id"], node["id"]}:
                raise FlinkError(f"the plan has a task that the job lacks: {quoted(row['id'])}")
            ship = row.get("ship_strategy", "")
            copies = parallelism[node["id"]] if ship == "BROADCAST" else 1
            edges.append(Edge(row["id"], node["id"], _PARTITIONING.get(ship, "rebalance"), copies))
    return edges
