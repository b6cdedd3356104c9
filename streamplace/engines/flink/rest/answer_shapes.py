"""Answers of Flink's REST interface as typed dictionaries.

Undeclared fields are dropped and declared ones checked, so other modules may trust the answers.
"""

import sys
from typing import Annotated, NotRequired, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    PlainValidator,
    with_config,
)
from typing_extensions import TypedDict

from streamplace.model.devices import MOST_CORES
from streamplace.model.operators import MOST_SUBTASKS

MOST_MEMORY = 10**15
LARGEST = sys.float_info.max
MOST_VERTICES = 10_000
"""Maximum number of vertices of a job; they are queried one by one, and more would take minutes."""
LONGEST = 200
CHECKED = ConfigDict(strict=True, allow_inf_nan=False)
"""Answers are checked strictly: no text in place of a number, and only finite numbers."""
_T = TypeVar("_T")
List = Annotated[list[_T], FailFast()]  # report only the first of many faults


def _amounts(value: object) -> dict[str, float]:
    """Check many numbers at once and report the first fault only."""
    if isinstance(value, dict) and all(
        type(amount) in (int, float) and abs(amount) <= LARGEST for amount in value.values()
    ):
        return value
    raise ValueError("it must map names to finite numbers")


@with_config(CHECKED)
class Resources(TypedDict):
    """Resources of a TaskManager, in total or unused; memory in MB."""

    cpuCores: NotRequired[float]
    taskHeapMemory: NotRequired[int]
    managedMemory: Annotated[int, Field(ge=0, le=MOST_MEMORY)]
    networkMemory: NotRequired[Annotated[int, Field(ge=0, le=MOST_MEMORY)]]
    extendedResources: NotRequired[Annotated[dict[str, float], PlainValidator(_amounts)]]


@with_config(CHECKED)
class Hardware(TypedDict):
    """Machine on which a TaskManager runs."""

    cpuCores: Annotated[int, Field(ge=0, le=MOST_CORES)]


@with_config(CHECKED)
class Memory(TypedDict):
    """Memory of a TaskManager, in bytes."""

    totalProcessMemory: NotRequired[Annotated[int, Field(ge=0, le=MOST_MEMORY)] | None]


@with_config(CHECKED)
class TaskManager(TypedDict):
    """A TaskManager: its name, its address and its resources."""

    id: str
    path: str
    timeSinceLastHeartbeat: NotRequired[int]
    slotsNumber: NotRequired[int]
    freeSlots: NotRequired[int]
    totalResource: Resources
    freeResource: Resources
    hardware: Hardware
    memoryConfiguration: Memory


@with_config(CHECKED)
class TaskManagers(TypedDict):
    """All TaskManagers."""

    taskmanagers: List[TaskManager]


@with_config(CHECKED)
class Slot(TypedDict):
    """A slot that a job holds."""

    jobId: str
    resource: NotRequired[Resources]


@with_config(CHECKED)
class Slots(TypedDict):
    """Allocated slots of a TaskManager."""

    allocatedSlots: NotRequired[List[Slot]]


@with_config(CHECKED)
class JobState(TypedDict):
    """A job and its state."""

    id: str
    status: str


@with_config(CHECKED)
class Jobs(TypedDict):
    """All jobs, including those that have ended."""

    jobs: List[JobState]


JobSummary = TypedDict(
    "JobSummary",
    {
        "jid": str,
        "name": NotRequired[str],
        "state": str,
        "start-time": int,
        "end-time": int,
        "duration": int,
    },
)
with_config(CHECKED)(JobSummary)


@with_config(CHECKED)
class Overview(TypedDict):
    """All jobs with their start and end times, in ms."""

    jobs: List[JobSummary]


@with_config(CHECKED)
class JobVertex(TypedDict):
    """Task of a job; the parallelism of a task of a batch job is -1 until Flink has chosen it."""

    id: str
    name: str
    parallelism: Annotated[int, Field(ge=-1, le=MOST_SUBTASKS)]
    maxParallelism: NotRequired[int]
    slotSharingGroupId: NotRequired[str | None]
    status: str


@with_config(CHECKED)
class PlanInput(TypedDict):
    """A stream into a task of the plan."""

    id: str
    ship_strategy: NotRequired[str]


@with_config(CHECKED)
class PlanNode(TypedDict):
    """A task of the plan; its description shows the operators as a tree, in HTML."""

    id: str
    description: NotRequired[str]
    parallelism: NotRequired[int]
    inputs: NotRequired[List[PlanInput]]


@with_config(CHECKED)
class PlanNodes(TypedDict):
    """Tasks of the plan."""

    nodes: Annotated[List[PlanNode], Field(max_length=MOST_VERTICES)]


@with_config(CHECKED)
class PlanAnswer(TypedDict):
    """Plan of a job."""

    plan: PlanNodes


def _shown(plan: object) -> object:
    """Plan of a job; None for the empty one that Flink 1 shows until it has planned the job."""
    return None if plan == {} else plan


@with_config(CHECKED)
class Job(TypedDict):
    """A job; ``duration`` is in ms, and versions before 2 omit the scheduler."""

    name: str
    state: str
    now: NotRequired[Annotated[int, Field(ge=0)]]
    duration: NotRequired[Annotated[int, Field(ge=0)]]
    schedulerType: NotRequired[str | None]
    timestamps: NotRequired[Annotated[dict[str, float], PlainValidator(_amounts)]]
    vertices: Annotated[List[JobVertex], Field(max_length=MOST_VERTICES)]
    plan: NotRequired[Annotated[PlanNodes | None, BeforeValidator(_shown)]]


SubtaskMetrics = TypedDict(
    "SubtaskMetrics",
    {
        "accumulated-backpressured-time": NotRequired[float | str | None],
        "accumulated-busy-time": NotRequired[float | str | None],
        "accumulated-idle-time": NotRequired[float | str | None],
        "read-records": NotRequired[float | str | None],
        "read-records-complete": NotRequired[bool | None],
        "write-records": NotRequired[float | str | None],
    },
)
with_config(ConfigDict(strict=True))(SubtaskMetrics)


def _assigned(device: str | None) -> str | None:
    """Id of a TaskManager; None for what Flink writes if there is none yet."""
    return None if device == "(unassigned)" else device


Subtask = TypedDict(
    "Subtask",
    {
        "subtask": NotRequired[Annotated[int, Field(ge=0, le=MOST_SUBTASKS)]],
        "attempt": NotRequired[Annotated[int, Field(ge=0)]],
        "taskmanager-id": NotRequired[Annotated[str | None, AfterValidator(_assigned)]],
        "status": NotRequired[str],
        "metrics": NotRequired[SubtaskMetrics],
    },
)
with_config(CHECKED)(Subtask)


@with_config(CHECKED)
class Subtasks(TypedDict):
    """Subtasks of a task."""

    subtasks: List[Subtask]


@with_config(CHECKED)
class SubtaskMoments(TypedDict):
    """Times at which a subtask entered each of its states, in ms; 0 if it never did."""

    timestamps: Annotated[dict[str, float], PlainValidator(_amounts)]


@with_config(CHECKED)
class SubtaskMomentsAnswer(TypedDict):
    """Times at which the subtasks of a task entered their states."""

    subtasks: List[SubtaskMoments]


@with_config(ConfigDict(strict=True))
class Metric(TypedDict):
    """A metric of a task or a TaskManager, with its value if that was requested.

    The value may be ``"NaN"``.
    """

    id: str
    sum: NotRequired[float | str]
    avg: NotRequired[float | str]
    max: NotRequired[float | str]
    value: NotRequired[str]


@with_config(CHECKED)
class Failure(TypedDict):
    """Stack trace of a failure."""

    stacktrace: NotRequired[str]


@with_config(CHECKED)
class FailureHistory(TypedDict):
    """Failures, the newest first."""

    entries: NotRequired[List[Failure]]


@with_config(CHECKED)
class FailuresAnswer(TypedDict):
    """Failures of a job."""

    exceptionHistory: NotRequired[FailureHistory]


JobExecution = TypedDict(
    "JobExecution",
    {"restart-strategy": NotRequired[str], "object-reuse-mode": NotRequired[bool]},
)
with_config(CHECKED)(JobExecution)
JobConfiguration = TypedDict("JobConfiguration", {"execution-config": JobExecution})
with_config(CHECKED)(JobConfiguration)


@with_config(CHECKED)
class SettingAnswer(TypedDict):
    """A line of the JobManager's configuration."""

    key: str
    value: str


FlinkConfig = TypedDict("FlinkConfig", {"flink-version": str})
with_config(CHECKED)(FlinkConfig)


@with_config(CHECKED)
class Uploaded(TypedDict):
    """Path of an uploaded jar."""

    filename: str


@with_config(CHECKED)
class UploadedJar(TypedDict):
    """A jar on the cluster, and its upload time in ms."""

    id: str
    name: str
    uploaded: int


@with_config(CHECKED)
class UploadedJars(TypedDict):
    """All jars on the cluster."""

    files: List[UploadedJar]


@with_config(CHECKED)
class Submitted(TypedDict):
    """Job that a jar submitted."""

    jobid: str


@with_config(CHECKED)
class Complaint(TypedDict):
    """Body of an answer with an error status."""

    errors: List[str]
