"""WfFormat, the format of WfCommons for traces of workflows: tasks with runtimes and files.

A task feeds another with the files that it writes and the other reads. A runtime is the time that a
task took on its machine, or on the only machine if it names none. One MHz counts as one MIPS, and a
machine of unknown speed has 2500 MIPS. Every task uses one core here, even if it had several.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from streamplace.errors import FormatError, GraphError
from streamplace.io.fields import Amount
from streamplace.io.files import located, spot
from streamplace.io.foreign import INSTRUCTIONS_PER_SECOND, files_with, read_foreign, warn_of_some
from streamplace.io.lines import name_of
from streamplace.io.problems import AnyProblem
from streamplace.io.registry import reader
from streamplace.model.cluster import Cluster
from streamplace.model.devices import Device
from streamplace.model.graph import StreamGraph
from streamplace.model.message_text import quoted, shown
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

    program: NotRequired[str | None]


class LinkedFile(TypedDict):
    """A file that a task reads or writes (1.4); files of one name may have different paths."""

    name: str
    path: NotRequired[str | None]
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
    runtime: NotRequired[Any]  # before 1.4
    cores: NotRequired[float | None]
    command: NotRequired[Command | None]
    machine: NotRequired[str]


class PlannedTask(TypedDict):
    """Specification of a task (since 1.5); its name may be its id, as in migrated files."""

    name: NotRequired[str]
    id: str
    parents: NotRequired[list[str]]
    children: NotRequired[list[str]]
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
    command: NotRequired[Command | None]
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
    jobs: NotRequired[Any]  # tasks, before 1.3
    machines: NotRequired[list[Machine]]


class WfFormat(TypedDict):
    """An instance."""

    name: NotRequired[str]
    workflow: Workflow


@dataclass(frozen=True, slots=True)
class WorkflowTask:
    """A task of any version, with the files that it reads and writes.

    The bytes of a file are None where the document does not state them.
    """

    name: str
    kind: str
    parents: list[str]
    children: list[str]
    reads: frozenset[str]
    writes: Mapping[str, float | None]
    runtime: float | None
    machine: str = ""
    cores: float = 1.0


@reader("wfcommons")
def read_wfcommons(path: Path) -> Iterator[AnyProblem]:
    """Workflows of WfCommons (WfFormat 1.4 and later): a ``.json`` file, or a folder of them."""
    for file in files_with(path, ".json"):
        document = read_foreign(WfFormat, file)
        with located(spot(file)):
            yield _problem(document, document.get("name") or name_of(file))


def _problem(document: WfFormat, name: str) -> AnyProblem:
    workflow = document["workflow"]
    if "specification" in workflow:
        done = workflow.get("execution", Execution(tasks=[]))
        tasks, machines = _of_both(workflow["specification"], done), done.get("machines", [])
    else:
        _check_version(workflow)
        tasks, machines = _of_old(workflow.get("tasks", [])), workflow.get("machines", [])
    several = [task.name for task in tasks if task.cores > 1]
    fault = "tasks used several cores"
    warn_of_some(several, len(tasks), fault, "here, every task uses one", of=name)
    devices = [_device(machine) for machine in machines]
    speeds = {device.name: float(device.mips) * MHZ for device in devices}
    if len(devices) == 1:
        speeds[""] = speeds[devices[0].name]  # of tasks that name no machine
    elif devices:
        unknown = [task.name for task in tasks if not task.machine]
        of_usual = "their runtimes count as on a device of 2500 MIPS"
        warn_of_some(unknown, len(tasks), "tasks name no machine", of_usual, of=name)
    graph = _graph(name, tasks, speeds)
    return Problem(graph, Cluster.of(devices)) if devices else graph


def _check_version(workflow: Workflow) -> None:
    """Raise FormatError for versions before 1.4, which have other fields."""
    rows = workflow.get("tasks", [])
    if "jobs" in workflow or any("runtime" in r and "runtimeInSeconds" not in r for r in rows):
        raise FormatError(
            "is of a version of WfFormat before 1.4; convert it with "
            "tools/wfcommons-migrate-instance.py of https://github.com/wfcommons/WfFormat"
        )


def _of_both(planned: Specification, execution: Execution) -> list[WorkflowTask]:
    """Merge the specification and the execution of the tasks."""
    size = {file["id"]: file["sizeInBytes"] for file in planned.get("files", [])}
    done = {task["id"]: task for task in execution["tasks"]}
    return [_merged(task, done.get(task["id"]), size) for task in planned["tasks"]]


def _merged(task: PlannedTask, ran: DoneTask | None, size: Mapping[str, float]) -> WorkflowTask:
    name, program = task.get("name", ""), "" if ran is None else _program(ran)
    return WorkflowTask(
        task["id"],
        program or name if name == task["id"] else name,
        task.get("parents", []),
        task.get("children", []),
        frozenset(task.get("inputFiles", ())),
        {file: size.get(file) for file in task.get("outputFiles", ())},
        None if ran is None else ran["runtimeInSeconds"],
        "" if ran is None else next(iter(ran.get("machines", ())), ran.get("machine", "")),
        1.0 if ran is None else ran.get("coreCount") or 1.0,
    )


def _program(task: DoneTask | WholeTask) -> str:
    return (task.get("command") or Command()).get("program") or ""


def _of_old(rows: list[WholeTask]) -> list[WorkflowTask]:
    """Tasks of version 1.4, with names that contain their ids.

    A name that several tasks have refers to none of them.
    """
    count = Counter(row["name"] for row in rows)
    names = [_own_name(row, is_unique=count[row["name"]] == 1) for row in rows]
    pairs = list(zip(rows, names, strict=True))
    called = {row["id"]: name for row, name in pairs if "id" in row}
    called |= {row["name"]: name for row, name in pairs if count[row["name"]] == 1}
    return [
        WorkflowTask(
            name,
            _program(row),
            [called.get(task, task) for task in row.get("parents", ())],
            [called.get(task, task) for task in row.get("children", ())],
            frozenset(_linked(row, "input")),
            _linked(row, "output"),
            row.get("runtimeInSeconds"),
            row.get("machine", ""),
            row.get("cores") or 1.0,
        )
        for row, name in pairs
    ]


def _own_name(row: WholeTask, *, is_unique: bool) -> str:
    name, number = row["name"], row.get("id", "")
    return name if not number or (is_unique and number in name) else f"{name}_{number}"


def _linked(row: WholeTask, link: str) -> dict[str, float | None]:
    """Files that a task of version 1.4 reads or writes, by path and name, with their bytes."""
    files = [file for file in row.get("files", ()) if file["link"].lower() == link]
    return {(file.get("path") or "") + file["name"]: file.get("sizeInBytes") for file in files}


def _device(machine: Machine) -> Device:
    cpu = machine.get("cpu", Cpu())
    mhz = cpu.get("speedInMHz") or cpu.get("speed") or INSTRUCTIONS_PER_SECOND / MHZ
    return Device(machine["nodeName"], mips=mhz, cores=cpu.get("coreCount") or cpu.get("count", 1))


def _graph(name: str, tasks: list[WorkflowTask], speed: Mapping[str, float]) -> StreamGraph:
    operators = [Operator(t.name, ipt=_instructions(t, speed), kind=t.kind) for t in tasks]
    by_name = {task.name: task for task in tasks}
    carried = {(u, v): _shared(by_name, u, v) for u, v in _edges(tasks)}
    sizes = {file: size for files in carried.values() for file, size in files.items()}
    unknown = [file for file, size in sizes.items() if size is None]
    fault = "files that tasks send have no sizeInBytes"
    warn_of_some(unknown, len(sizes), fault, "they count as empty", of=name)
    if len(tasks) > 1 and not carried:
        LOG.warning(
            "%s: no task says what feeds it, so all %d run at once", shown(name), len(tasks)
        )
    streams = [
        Stream(u, v, payload=sum(size or 0.0 for size in files.values()))
        for (u, v), files in carried.items()
    ]
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
    """Streams by parents and children; by files if no task of the document names any."""
    if not any(task.parents or task.children for task in tasks):
        return _edges_by_files(tasks)
    edges = {(u, task.name): None for task in tasks for u in task.parents}
    return edges | {(task.name, v): None for task in tasks for v in task.children}


def _edges_by_files(tasks: list[WorkflowTask]) -> Iterable[tuple[str, str]]:
    writer = {file: task.name for task in tasks for file in task.writes}
    for task in tasks:
        writers = {writer[file] for file in task.reads if file in writer}
        yield from ((u, task.name) for u in sorted(writers - {task.name}))


def _shared(tasks: Mapping[str, WorkflowTask], u: str, v: str) -> dict[str, float | None]:
    """Files that one task writes and the other reads, with their bytes; none of unknown tasks."""
    if u not in tasks or v not in tasks:
        return {}
    reads = tasks[v].reads
    return {file: size for file, size in tasks[u].writes.items() if file in reads}
