"""WfFormat, the format of WfCommons for traces of workflows: tasks with runtimes and files.

A task feeds another with the files that it writes and the other reads. A runtime is the time that a
task took on its machine. One MHz counts as one MIPS, and a machine of unknown speed has 2500 MIPS.
Every task uses one core here, also one that had several.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from streamplace.errors import GraphError
from streamplace.io.field_types import Amount
from streamplace.io.files import located, spot
from streamplace.io.foreign import (
    INSTRUCTIONS_PER_SECOND,
    files_of,
    name_of,
    read_foreign,
)
from streamplace.io.problems import Known
from streamplace.io.registry import reader
from streamplace.model.cluster import Cluster
from streamplace.model.devices import Device
from streamplace.model.graph import StreamGraph
from streamplace.model.messages import quoted, shown
from streamplace.model.operators import ALL, Operator
from streamplace.model.problem import Problem
from streamplace.model.streams import Stream

LOG = logging.getLogger(__name__)
MHZ = 1e6
"""Instructions per second of one MHz."""


class Cpu(TypedDict):
    """Processors of a machine, with the fields of version 1.5 or of version 1.4."""

    coreCount: NotRequired[Annotated[int, Field(ge=1)]]
    speedInMHz: NotRequired[Amount]
    count: NotRequired[Annotated[int, Field(ge=1)]]
    speed: NotRequired[Amount]


class Machine(TypedDict):
    """A machine that ran tasks."""

    nodeName: str
    cpu: NotRequired[Cpu]


class Command(TypedDict):
    """Program that a task runs."""

    program: NotRequired[str]


class LinkedFile(TypedDict):
    """A file that a task reads or writes (1.4)."""

    name: str
    link: str
    sizeInBytes: NotRequired[Amount]


class WholeTask(TypedDict):
    """A task with all of its fields (1.4); others refer to it by its name or its id."""

    name: str
    id: NotRequired[str]
    parents: NotRequired[list[str]]
    children: NotRequired[list[str]]
    files: NotRequired[list[LinkedFile]]
    runtimeInSeconds: NotRequired[Amount]
    cores: NotRequired[float | None]
    command: NotRequired[Command]
    machine: NotRequired[str]


class PlannedTask(TypedDict):
    """Specification of a task (1.5)."""

    name: str
    id: str
    parents: list[str]
    children: list[str]
    inputFiles: NotRequired[list[str]]
    outputFiles: NotRequired[list[str]]


class SizedFile(TypedDict):
    """A file (1.5)."""

    id: str
    sizeInBytes: Amount


class DoneTask(TypedDict):
    """Execution of a task (1.5)."""

    id: str
    runtimeInSeconds: Amount
    coreCount: NotRequired[float | None]
    machine: NotRequired[str]
    machines: NotRequired[list[str]]


class Specification(TypedDict):
    """Specification of a workflow (1.5)."""

    tasks: list[PlannedTask]
    files: NotRequired[list[SizedFile]]


class Execution(TypedDict):
    """Execution of a workflow (1.5)."""

    tasks: list[DoneTask]
    machines: NotRequired[list[Machine]]


class Workflow(TypedDict):
    """A workflow: its specification and execution, or up to version 1.4 its tasks."""

    specification: NotRequired[Specification]
    execution: NotRequired[Execution]
    tasks: NotRequired[list[WholeTask]]
    machines: NotRequired[list[Machine]]


class WfFormat(TypedDict):
    """An instance."""

    name: NotRequired[str]
    workflow: Workflow


@dataclass(frozen=True, slots=True)
class WorkflowTask:
    """A task of any version, with the bytes of the files that it writes, and the files it reads.

    Parents and children are None where the document does not state them.
    """

    name: str
    kind: str
    parents: list[str] | None
    children: list[str] | None
    reads: frozenset[str]
    writes: Mapping[str, float]
    runtime: float | None
    machine: str = ""
    cores: float = 1.0


@reader("wfcommons")
def read_wfcommons(path: Path) -> Iterator[Known]:
    """Workflows of WfCommons (WfFormat 1.4 and later): a ``.json`` file, or a folder of them."""
    for file in files_of(path, ".json"):
        document = read_foreign(WfFormat, file)
        with located(spot(file)):
            yield _known(document, document.get("name") or name_of(file))


def _known(document: WfFormat, name: str) -> Known:
    workflow = document["workflow"]
    if "specification" in workflow:
        done = workflow.get("execution", Execution(tasks=[]))
        tasks, machines = _of_both(workflow["specification"], done), done.get("machines", [])
    else:
        tasks, machines = _of_old(workflow.get("tasks", [])), workflow.get("machines", [])
    _warn_of_cores(name, tasks)
    devices = [_device(machine) for machine in machines]
    graph = _graph(name, tasks, {device.name: float(device.mips) * MHZ for device in devices})
    return Problem(graph, Cluster.of(devices)) if devices else graph


def _warn_of_cores(name: str, tasks: list[WorkflowTask]) -> None:
    several = [task.name for task in tasks if task.cores > 1]
    if several:
        LOG.warning(
            "%s: %d of %d tasks used several cores, %s first; here, every task uses one",
            shown(name),
            len(several),
            len(tasks),
            shown(several[0]),
        )


def _of_both(planned: Specification, execution: Execution) -> list[WorkflowTask]:
    """Merge the specification and the execution of the tasks."""
    size = {file["id"]: file["sizeInBytes"] for file in planned.get("files", [])}
    done = {task["id"]: task for task in execution["tasks"]}
    return [_merged(task, done.get(task["id"]), size) for task in planned["tasks"]]


def _merged(task: PlannedTask, ran: DoneTask | None, size: Mapping[str, float]) -> WorkflowTask:
    return WorkflowTask(
        task["id"],
        task["name"],
        task["parents"],
        task["children"],
        frozenset(task.get("inputFiles", ())),
        {file: size.get(file, 0.0) for file in task.get("outputFiles", ())},
        None if ran is None else ran["runtimeInSeconds"],
        "" if ran is None else _machine(ran),
        1.0 if ran is None else ran.get("coreCount") or 1.0,
    )


def _machine(task: DoneTask) -> str:
    return next(iter(task.get("machines", ())), task.get("machine", ""))


def _of_old(rows: list[WholeTask]) -> list[WorkflowTask]:
    """Tasks of version 1.4, with names that contain their ids."""
    names = [_own_name(row) for row in rows]
    called = {row.get("id", ""): name for row, name in zip(rows, names, strict=True)}
    called |= {row["name"]: name for row, name in zip(rows, names, strict=True)}
    return [
        WorkflowTask(
            name,
            row.get("command", {}).get("program", ""),
            _called(row.get("parents"), called),
            _called(row.get("children"), called),
            frozenset(f["name"] for f in row.get("files", ()) if f["link"] == "input"),
            {
                f["name"]: f.get("sizeInBytes", 0.0)
                for f in row.get("files", ())
                if f["link"] == "output"
            },
            row.get("runtimeInSeconds"),
            row.get("machine", ""),
            row.get("cores") or 1.0,
        )
        for row, name in zip(rows, names, strict=True)
    ]


def _called(tasks: list[str] | None, called: Mapping[str, str]) -> list[str] | None:
    return None if tasks is None else [called.get(task, task) for task in tasks]


def _own_name(row: WholeTask) -> str:
    name, number = row["name"], row.get("id", "")
    return name if number in name else f"{name}_{number}"


def _device(machine: Machine) -> Device:
    cpu = machine.get("cpu", Cpu())
    mhz = cpu.get("speedInMHz") or cpu.get("speed") or INSTRUCTIONS_PER_SECOND / MHZ
    return Device(machine["nodeName"], mips=mhz, cores=cpu.get("coreCount") or cpu.get("count", 1))


def _graph(name: str, tasks: list[WorkflowTask], speed: Mapping[str, float]) -> StreamGraph:
    operators = [Operator(t.name, ipt=_instructions(t, speed), kind=t.kind) for t in tasks]
    by_name = {task.name: task for task in tasks}
    streams = [Stream(u, v, payload=_shared(by_name, u, v)) for u, v in _edges(tasks)]
    return StreamGraph.of(name, operators, streams, fires=ALL)


def _instructions(task: WorkflowTask, speed: Mapping[str, float]) -> float:
    if task.runtime is None:
        raise GraphError(f"task {quoted(task.name)} has no runtimeInSeconds; add it")
    if task.machine and speed and task.machine not in speed:
        raise GraphError(
            f"task {quoted(task.name)} ran on {quoted(task.machine)}, which is not a machine of "
            "the file; add it or correct the name"
        )
    return task.runtime * speed.get(task.machine, INSTRUCTIONS_PER_SECOND)


def _edges(tasks: list[WorkflowTask]) -> Iterable[tuple[str, str]]:
    """Streams by parents and children; by files if no task of the document states either."""
    if all(task.parents is None and task.children is None for task in tasks):
        return _edges_by_files(tasks)
    edges = {(u, task.name): None for task in tasks for u in task.parents or ()}
    return edges | {(task.name, v): None for task in tasks for v in task.children or ()}


def _edges_by_files(tasks: list[WorkflowTask]) -> Iterable[tuple[str, str]]:
    writer = {file: task.name for task in tasks for file in task.writes}
    for task in tasks:
        writers = {writer[file] for file in task.reads if file in writer}
        yield from ((u, task.name) for u in sorted(writers - {task.name}))


def _shared(tasks: Mapping[str, WorkflowTask], u: str, v: str) -> float:
    """Bytes of the files that one task writes and the other reads; 0 for unknown tasks."""
    if u not in tasks or v not in tasks:
        return 0.0
    reads = tasks[v].reads
    return sum(size for file, size in tasks[u].writes.items() if file in reads)
