"""WfFormat, the format of WfCommons for traces of workflows: tasks with runtimes and files.

A task feeds another with the files that it writes and the other reads. A runtime is the time that a
task took on its machine. One MHz counts as one MIPS, and a machine of unknown speed has 2500 MIPS.
Every task uses one core here, also one that had several.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from streamplace.errors import FormatError, GraphError
from streamplace.io.fields import Amount
from streamplace.io.files import located, spot
from streamplace.io.foreign import INSTRUCTIONS_PER_SECOND, files_of, read_foreign
from streamplace.io.lines import name_of
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
    """Processors of a machine."""

    coreCount: NotRequired[Annotated[int, Field(ge=1)]]
    speedInMHz: NotRequired[Amount]


class Machine(TypedDict):
    """A machine that ran tasks."""

    nodeName: str
    cpu: NotRequired[Cpu]


class Command(TypedDict):
    """Program that a task runs."""

    program: NotRequired[str | None]


class PlannedTask(TypedDict):
    """Specification of a task; its name may be its id, as in files of older versions."""

    name: NotRequired[str]
    id: str
    parents: NotRequired[list[str]]
    children: NotRequired[list[str]]
    inputFiles: NotRequired[list[str]]
    outputFiles: NotRequired[list[str]]


class SizedFile(TypedDict):
    """A file."""

    id: str
    sizeInBytes: Amount


class DoneTask(TypedDict):
    """Execution of a task."""

    id: str
    runtimeInSeconds: Amount
    command: NotRequired[Command | None]
    coreCount: NotRequired[float | None]
    machine: NotRequired[str]
    machines: NotRequired[list[str]]


class Specification(TypedDict):
    """Specification of a workflow."""

    tasks: list[PlannedTask]
    files: NotRequired[list[SizedFile]]


class Execution(TypedDict):
    """Execution of a workflow."""

    tasks: list[DoneTask]
    machines: NotRequired[list[Machine]]


class Workflow(TypedDict):
    """A workflow; only versions before 1.5 have no specification."""

    specification: NotRequired[Specification]
    execution: NotRequired[Execution]


class WfFormat(TypedDict):
    """An instance."""

    name: NotRequired[str]
    workflow: Workflow


@reader("wfcommons")
def read_wfcommons(path: Path) -> Iterator[Known]:
    """Workflows of WfCommons (WfFormat 1.5): a ``.json`` file, or a folder of them."""
    for file in files_of(path, ".json"):
        document = read_foreign(WfFormat, file)
        with located(spot(file)):
            yield _known(document["workflow"], document.get("name") or name_of(file))


def _known(workflow: Workflow, name: str) -> Known:
    if "specification" not in workflow:
        raise FormatError(
            "is of a version of WfFormat before 1.5; convert it with "
            "tools/wfcommons-migrate-instance.py of https://github.com/wfcommons/WfFormat"
        )
    execution = workflow.get("execution", Execution(tasks=[]))
    devices = [_device(machine) for machine in execution.get("machines", [])]
    speed = {device.name: float(device.mips) * MHZ for device in devices}
    graph = _graph(name, workflow["specification"], execution["tasks"], speed)
    return Problem(graph, Cluster.of(devices)) if devices else graph


def _device(machine: Machine) -> Device:
    cpu = machine.get("cpu", Cpu())
    mhz = cpu.get("speedInMHz") or INSTRUCTIONS_PER_SECOND / MHZ
    return Device(machine["nodeName"], mips=mhz, cores=cpu.get("coreCount", 1))


def _graph(
    name: str, planned: Specification, done: list[DoneTask], speed: Mapping[str, float]
) -> StreamGraph:
    tasks, ran = planned["tasks"], {task["id"]: task for task in done}
    several = [task["id"] for task in done if (task.get("coreCount") or 1) > 1]
    if several:
        LOG.warning(
            "%s: %d of %d tasks used several cores, %s first; here, every task uses one",
            shown(name),
            len(several),
            len(tasks),
            shown(several[0]),
        )
    operators = [
        Operator(t["id"], ipt=_instructions(t["id"], ran, speed), kind=_kind(t, ran)) for t in tasks
    ]
    carried = _carried(tasks)
    if len(tasks) > 1 and not carried:
        LOG.warning(
            "%s: no task says what feeds it, so all %d run at once", shown(name), len(tasks)
        )
    size = {file["id"]: file["sizeInBytes"] for file in planned.get("files", [])}
    sent = list(dict.fromkeys(file for files in carried.values() for file in files))
    unknown = [file for file in sent if file not in size]
    if unknown:
        LOG.warning(
            "%s: %d of %d files that tasks send have no sizeInBytes, %s first; they count as empty",
            shown(name),
            len(unknown),
            len(sent),
            shown(unknown[0]),
        )
    streams = [
        Stream(u, v, payload=sum(size.get(file, 0.0) for file in files))
        for (u, v), files in carried.items()
    ]
    return StreamGraph.of(name, operators, streams, fires=ALL)


def _kind(task: PlannedTask, ran: Mapping[str, DoneTask]) -> str:
    """Name of a task; its program if that is its id."""
    name = task.get("name", "")
    if name != task["id"] or name not in ran:
        return name
    return (ran[name].get("command") or Command()).get("program") or name


def _instructions(name: str, ran: Mapping[str, DoneTask], speed: Mapping[str, float]) -> float:
    if name not in ran:
        raise GraphError(f"task {quoted(name)} has no runtimeInSeconds; add it")
    task = ran[name]
    machine = next(iter(task.get("machines", ())), task.get("machine", ""))
    if machine and speed and machine not in speed:
        raise GraphError(
            f"task {quoted(name)} ran on {quoted(machine)}, which is not a machine of "
            "the file; add it or correct the name"
        )
    return task["runtimeInSeconds"] * speed.get(machine, INSTRUCTIONS_PER_SECOND)


def _carried(tasks: list[PlannedTask]) -> dict[tuple[str, str], list[str]]:
    """Files that each stream carries: those that its source writes and its target reads."""
    writes = {task["id"]: task.get("outputFiles", []) for task in tasks}
    reads = {task["id"]: set(task.get("inputFiles", ())) for task in tasks}
    return {
        (u, v): [file for file in dict.fromkeys(writes.get(u, ())) if file in reads.get(v, ())]
        for u, v in _edges(tasks)
    }


def _edges(tasks: list[PlannedTask]) -> Iterable[tuple[str, str]]:
    """Streams by parents and children; by files if no task of the document names any."""
    parents = {(u, task["id"]): None for task in tasks for u in task.get("parents", ())}
    edges = parents | {(task["id"], v): None for task in tasks for v in task.get("children", ())}
    if edges:
        return edges
    writer = {file: task["id"] for task in tasks for file in task.get("outputFiles", ())}
    return [
        (u, task["id"])
        for task in tasks
        for u in sorted({writer[f] for f in task.get("inputFiles", ()) if f in writer})
        if u != task["id"]
    ]
