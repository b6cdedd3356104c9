"""Plan of a job: its tasks, the streams between them, and the layout of their subtasks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streamplace.flink.layout import Layout
from streamplace.flink.program.operator_names import FUSED, TaskOperator, operators_of
from streamplace.flink.rest.answers import Job, JobVertex, PlanNode, Subtask
from streamplace.flink.rest.client import FINISHED, FlinkError, Rest, job_path
from streamplace.model.message_text import quoted, shown
from streamplace.model.operators import MAX_KEY_GROUPS

_ITERATIONS = ("IterationSource-", "IterationSink-")
"""Prefixes of the two ends of an iteration; Flink's plan shows no stream between them."""
_PARTITIONING = {"FORWARD": "forward", "HASH": "hash", "REBALANCE": "rebalance"}
_UNEVEN = ("CUSTOM", "GLOBAL")
_RESCALED, _BROADCAST = "RESCALE", "BROADCAST"


@dataclass(frozen=True, slots=True)
class FlinkTask:
    """A vertex of the plan; its operators are fused, so they are placed together."""

    id: str
    name: str  # names of its operators in placements, joined by `` -> ``
    thread_name: str  # its name as Flink shows it, also used for its threads
    parallelism: int
    # Its operators as Flink shows them, such as ``Source: lines``, in order.
    operators: tuple[str, ...]
    unsure: tuple[str, ...] = ()  # names of operators that may belong to operators of other tasks
    about: str = ""  # description of its operators by the SQL planner; empty if there is none
    max_parallelism: int = 0  # number of its key groups; 0 if Flink does not report it
    slot_sharing_group: str = ""  # name of the group; "" if the job has only one
    has_ended: bool = False  # whether its subtasks have read all of their input
    # Texts of its operators in the plan besides their names, such as texts of windows.
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Edge:
    """A stream between two tasks, by their ids."""

    source: str
    target: str
    partitioning: str
    copies: int = 1  # number of the target's subtasks that get each tuple
    # Whether the program chooses the subtask of each tuple, not by a key, or all go to the first.
    is_uneven: bool = False
    is_rescaled: bool = False  # whether it joins only neighbouring subtasks, at any parallelism
    is_broadcast: bool = False  # whether each of the target's subtasks gets every tuple

    @property
    def is_pointwise(self) -> bool:
        """Whether it joins only subtasks i and i, or groups of neighbours (`joined_subtasks`)."""
        return self.is_rescaled or self.partitioning == "forward"


JobPlan = tuple[str, list[FlinkTask], list[Edge]]
"""Name, tasks in topological order and streams of a job."""


def read_plan(rest: Rest, job: str) -> JobPlan:
    """Read the plan of a running job, as by `plan_of`."""
    document = rest.running_job(job)
    for row in document["vertices"]:
        if row["name"].startswith(_ITERATIONS):
            raise FlinkError(
                f"job {shown(job)} has an iteration, {quoted(row['name'])}; jobs with iterations "
                "cannot be measured or placed"
            )
    return plan_of(document)


def plan_of(document: Job) -> JobPlan:
    """Name, tasks in topological order and streams of a job."""
    nodes = _nodes(document)
    tasks = _tasks(document["vertices"], nodes)
    return document["name"], tasks, _edges(nodes, {task.id: task.parallelism for task in tasks})


def sources_of(tasks: Sequence[FlinkTask], edges: Sequence[Edge]) -> list[FlinkTask]:
    """Tasks without input from others."""
    fed = {edge.target for edge in edges}
    return [task for task in tasks if task.id not in fed]


def _nodes(document: Job) -> list[PlanNode]:
    """Tasks of the plan of a job; none until Flink has planned it."""
    return (document.get("plan") or {"nodes": []})["nodes"]


def _tasks(vertices: Sequence[JobVertex], nodes: Sequence[PlanNode]) -> list[FlinkTask]:
    ids = [row.get("slotSharingGroupId") or "" for row in vertices]
    names = {group: f"group-{i}" for i, group in enumerate(dict.fromkeys(ids))}
    groups = [names[group] if len(names) > 1 else "" for group in ids]
    return [
        FlinkTask(
            row["id"],
            FUSED.join(dict.fromkeys(operator.name for operator in operators)),
            row["name"],
            row["parallelism"],
            tuple(operator.shown for operator in operators),
            tuple(operator.name for operator in operators if not operator.is_sure),
            FUSED.join(dict.fromkeys(operator.about for operator in operators if operator.about)),
            min(MAX_KEY_GROUPS, max(0, row.get("maxParallelism", 0))),
            group,
            row["status"] == FINISHED,
            tuple(operator.text for operator in operators if operator.text),
        )
        for row, operators, group in zip(
            vertices, operators_of(vertices, nodes), groups, strict=True
        )
    ]


def _edges(nodes: Sequence[PlanNode], parallelism: Mapping[str, int]) -> list[Edge]:
    edges = []
    for node in nodes:
        for row in node.get("inputs", ()):
            if not parallelism.keys() >= {row["id"], node["id"]}:
                raise FlinkError(
                    f"the plan contains a task that the job does not have: {quoted(row['id'])}"
                )
            ship = row.get("ship_strategy") or ""
            is_broadcast = ship == _BROADCAST
            copies = parallelism[node["id"]] if is_broadcast else 1
            kind = _PARTITIONING.get(ship, "rebalance")
            is_uneven, is_rescaled = ship in _UNEVEN, ship == _RESCALED
            if kind == "forward":  # the adaptive scheduler may have changed the parallelism
                is_rescaled = parallelism[row["id"]] != parallelism[node["id"]]
            edges.append(
                Edge(row["id"], node["id"], kind, copies, is_uneven, is_rescaled, is_broadcast)
            )
    return edges


def placed_subtasks(rest: Rest, job: str, document: Job) -> list[tuple[list[str], list[Subtask]]]:
    """Names of the operators of each task of a job, and its subtasks."""
    tasks = zip(document["vertices"], job_operators(document), strict=True)
    return [
        (
            [operator.name for operator in operators],
            rest.get(job_path(job, "vertices", row["id"]))["subtasks"],
        )
        for row, operators in tasks
    ]


def layout_of(rest: Rest, job: str, document: Job) -> Layout:
    """Layout of a running job.

    Subtasks that have ended may have run on a TaskManager that was released since. They count as
    subtasks of the other devices of the job.
    """
    placed: dict[str, list[str]] = {}
    used, running = set[str](), set[str]()
    for names, subtasks in placed_subtasks(rest, job, document):
        devices = [str(subtask.get("taskmanager-id") or "") for subtask in subtasks]
        placed.update(dict.fromkeys(names, devices))
        used.update(devices)
        pairs = zip(devices, subtasks, strict=True)
        running.update(device for device, row in pairs if row.get("status") != FINISHED)
    released = (used - running).difference(rest.offered()) if used - running else set[str]()
    layout = Layout(placed)
    return layout if released == used else layout.without(released)


def job_operators(document: Job) -> list[list[TaskOperator]]:
    """Operators of each task of a job."""
    return operators_of(document["vertices"], _nodes(document))
