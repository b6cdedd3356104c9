"""What Flink's REST interface answers: the shape of every answer that is read, by its path.

Of an answer only what is declared here is kept, checked; the rest of streamplace may trust it.
"""

import sys
from typing import Annotated, NotRequired, TypeVar

from pydantic import (
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
"""Vertices of a job; more would be asked about for minutes, one by one."""
LONGEST = 200
_CHECKED = ConfigDict(strict=True, allow_inf_nan=False)
_T = TypeVar("_T")
List = Annotated[list[_T], FailFast()]  # an answer of a million faults is told the first


def _amounts(value: object) -> dict[str, float]:
    """Check many numbers at once, for one fault is enough."""
    if isinstance(value, dict) and all(
        type(amount) in (int, float) and abs(amount) <= LARGEST for amount in value.values()
    ):
        return value
    raise ValueError("it must map names to finite numbers")


@with_config(_CHECKED)
class Resources(TypedDict):
    """What a TaskManager has of everything, in all or left; memory in MB."""

    cpuCores: NotRequired[float]
    taskHeapMemory: NotRequired[int]
    managedMemory: Annotated[int, Field(ge=0, le=MOST_MEMORY)]
    extendedResources: NotRequired[Annotated[dict[str, float], PlainValidator(_amounts)]]


@with_config(_CHECKED)
class Hardware(TypedDict):
    """The machine under a TaskManager."""

    cpuCores: Annotated[int, Field(ge=0, le=MOST_CORES)]


@with_config(_CHECKED)
class Memory(TypedDict):
    """Memory of a TaskManager, in bytes."""

    totalProcessMemory: NotRequired[Annotated[int, Field(ge=0, le=MOST_MEMORY)] | None]


@with_config(_CHECKED)
class TaskManager(TypedDict):
    """A TaskManager: its name, its address, and what it offers."""

    id: str
    path: str
    timeSinceLastHeartbeat: NotRequired[int]
    slotsNumber: NotRequired[int]
    freeSlots: NotRequired[int]
    totalResource: Resources
    freeResource: Resources
    hardware: Hardware
    memoryConfiguration: Memory


@with_config(_CHECKED)
class TaskManagers(TypedDict):
    """All TaskManagers."""

    taskmanagers: List[TaskManager]


@with_config(_CHECKED)
class Slot(TypedDict):
    """A slot that a job holds."""

    jobId: str
    resource: NotRequired[Resources]


@with_config(_CHECKED)
class Slots(TypedDict):
    """What is taken of one TaskManager."""

    allocatedSlots: NotRequired[List[Slot]]


@with_config(_CHECKED)
class JobState(TypedDict):
    """A job and how it is."""

    id: str
    status: str


@with_config(_CHECKED)
class Jobs(TypedDict):
    """All jobs, ended ones too."""

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
with_config(_CHECKED)(JobSummary)


@with_config(_CHECKED)
class Overview(TypedDict):
    """All jobs, and from when to when they run, in ms."""

    jobs: List[JobSummary]


@with_config(_CHECKED)
class JobVertex(TypedDict):
    """A task of a job."""

    id: str
    name: str
    parallelism: Annotated[int, Field(ge=1, le=MOST_SUBTASKS)]
    maxParallelism: NotRequired[int]
    slotSharingGroupId: NotRequired[str | None]
    status: str


@with_config(_CHECKED)
class PlanInput(TypedDict):
    """A stream into a task of the plan."""

    id: str
    ship_strategy: NotRequired[str]


@with_config(_CHECKED)
class PlanNode(TypedDict):
    """A task of the plan; its description shows the operators as a tree, in HTML."""

    id: str
    description: NotRequired[str]
    parallelism: NotRequired[int]
    inputs: NotRequired[List[PlanInput]]


@with_config(_CHECKED)
class PlanNodes(TypedDict):
    """Tasks of the plan."""

    nodes: Annotated[List[PlanNode], Field(max_length=MOST_VERTICES)]


@with_config(_CHECKED)
class PlanAnswer(TypedDict):
    """Plan of a job."""

    plan: PlanNodes


@with_config(_CHECKED)
class Job(TypedDict):
    """A job, and for how many ms it has run; versions before 2 do not name its scheduler."""

    name: str
    state: str
    now: NotRequired[Annotated[int, Field(ge=0)]]
    duration: NotRequired[Annotated[int, Field(ge=0)]]
    schedulerType: NotRequired[str | None]
    timestamps: NotRequired[Annotated[dict[str, float], PlainValidator(_amounts)]]
    vertices: Annotated[List[JobVertex], Field(max_length=MOST_VERTICES)]
    plan: NotRequired[PlanNodes | None]


SubtaskTimes = TypedDict("SubtaskTimes", {"accumulated-busy-time": NotRequired[float | str | None]})
with_config(ConfigDict(strict=True))(SubtaskTimes)
Subtask = TypedDict(
    "Subtask",
    {
        "subtask": NotRequired[Annotated[int, Field(ge=0, le=MOST_SUBTASKS)]],
        "attempt": NotRequired[Annotated[int, Field(ge=0)]],
        "taskmanager-id": NotRequired[str | None],
        "metrics": NotRequired[SubtaskTimes],
    },
)
with_config(_CHECKED)(Subtask)


@with_config(_CHECKED)
class Subtasks(TypedDict):
    """Subtasks of a task."""

    subtasks: List[Subtask]


@with_config(_CHECKED)
class SubtaskMoments(TypedDict):
    """When a subtask came into each of its states, in ms; 0 where it never did."""

    timestamps: Annotated[dict[str, float], PlainValidator(_amounts)]


@with_config(_CHECKED)
class SubtaskMomentsAnswer(TypedDict):
    """When the subtasks of a task came into their states."""

    subtasks: List[SubtaskMoments]


@with_config(ConfigDict(strict=True))
class Metric(TypedDict):
    """A metric of a task or a TaskManager, and its value where that was asked for.

    The value may be ``"NaN"``.
    """

    id: str
    sum: NotRequired[float | str]
    avg: NotRequired[float | str]
    value: NotRequired[str]


@with_config(_CHECKED)
class Failure(TypedDict):
    """Why something failed."""

    stacktrace: NotRequired[str]


@with_config(_CHECKED)
class FailureHistory(TypedDict):
    """What failed, the newest first."""

    entries: NotRequired[List[Failure]]


@with_config(_CHECKED)
class FailuresAnswer(TypedDict):
    """What failed in a job."""

    exceptionHistory: NotRequired[FailureHistory]


@with_config(_CHECKED)
class CheckpointCounts(TypedDict):
    """How many checkpoints and savepoints a job has taken."""

    completed: Annotated[int, Field(ge=0)]
    failed: NotRequired[Annotated[int, Field(ge=0)]]


@with_config(_CHECKED)
class CheckpointAnswer(TypedDict):
    """Where a checkpoint or savepoint lies; the later one of a job has the larger number."""

    id: NotRequired[int]
    external_path: NotRequired[str | None]
    end_to_end_duration: NotRequired[int]
    checkpoint_type: NotRequired[str]
    state_size: NotRequired[Annotated[int, Field(ge=0)]]
    trigger_timestamp: NotRequired[int]


@with_config(_CHECKED)
class LatestCheckpoints(TypedDict):
    """The last ones of a job, and the one that it began from."""

    completed: NotRequired[CheckpointAnswer | None]
    savepoint: NotRequired[CheckpointAnswer | None]
    restored: NotRequired[CheckpointAnswer | None]


@with_config(_CHECKED)
class Checkpoints(TypedDict):
    """What a job has saved."""

    counts: CheckpointCounts
    latest: NotRequired[LatestCheckpoints | None]


@with_config(_CHECKED)
class Externalization(TypedDict):
    """What becomes of the checkpoints of a job that ends."""

    enabled: bool
    delete_on_cancellation: bool


@with_config(_CHECKED)
class CheckpointSettings(TypedDict):
    """How a job takes its checkpoints."""

    externalization: Externalization
    checkpoint_storage: NotRequired[str]
    state_backend: NotRequired[str]
    mode: NotRequired[str]
    interval: NotRequired[int]
    timeout: NotRequired[int]
    min_pause: NotRequired[int]
    max_concurrent: NotRequired[int]
    unaligned_checkpoints: NotRequired[bool]
    tolerable_failed_checkpoints: NotRequired[int]
    aligned_checkpoint_timeout: NotRequired[int]
    state_changelog_enabled: NotRequired[bool]


JobExecution = TypedDict(
    "JobExecution",
    {"restart-strategy": NotRequired[str], "object-reuse-mode": NotRequired[bool]},
)
with_config(_CHECKED)(JobExecution)
JobConfiguration = TypedDict("JobConfiguration", {"execution-config": JobExecution})
with_config(_CHECKED)(JobConfiguration)


Triggered = TypedDict("Triggered", {"request-id": str})
with_config(_CHECKED)(Triggered)


@with_config(_CHECKED)
class Progress(TypedDict):
    """How far an operation is."""

    id: str


Cause = TypedDict("Cause", {"stack-trace": NotRequired[str]})
with_config(_CHECKED)(Cause)
SavingAnswer = TypedDict(
    "SavingAnswer", {"location": NotRequired[str], "failure-cause": NotRequired[Cause]}
)
with_config(_CHECKED)(SavingAnswer)


@with_config(_CHECKED)
class SavepointAnswer(TypedDict):
    """What became of a savepoint that was asked for."""

    status: Progress
    operation: NotRequired[SavingAnswer | None]


Removal = TypedDict("Removal", {"failure-cause": NotRequired[Cause | None]})
with_config(_CHECKED)(Removal)


@with_config(_CHECKED)
class Disposal(TypedDict):
    """What became of a savepoint that was to be removed."""

    status: Progress
    operation: NotRequired[Removal | None]


@with_config(_CHECKED)
class SettingAnswer(TypedDict):
    """A line of the JobManager's configuration."""

    key: str
    value: str


@with_config(_CHECKED)
class Uploaded(TypedDict):
    """Where an uploaded jar lies."""

    filename: str


@with_config(_CHECKED)
class UploadedJar(TypedDict):
    """A jar on the cluster, and when it was uploaded, in ms."""

    id: str
    name: str
    uploaded: int


@with_config(_CHECKED)
class UploadedJars(TypedDict):
    """All jars on the cluster."""

    files: List[UploadedJar]


@with_config(_CHECKED)
class Submitted(TypedDict):
    """The job that a jar submitted."""

    jobid: str


@with_config(_CHECKED)
class Complaint(TypedDict):
    """What Flink answers with an error status."""

    errors: List[str]
