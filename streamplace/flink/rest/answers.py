"""Answers of Flink's REST interface: their types, by path, and how they are parsed and checked.

Undeclared fields are dropped. Declared fields are checked strictly, with no text in place of a
number, so other modules may trust them.
"""

import re
from contextlib import suppress
from functools import cache
from typing import Annotated, Any, NotRequired

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    FiniteFloat,
    TypeAdapter,
    ValidationError,
)
from typing_extensions import TypedDict

from streamplace.io.fields import ListOf
from streamplace.model.devices import MAX_CORES
from streamplace.model.message_text import quoted, shown
from streamplace.model.operators import MAX_SUBTASKS

MAX_TEXT = 300
"""Maximum number of characters of a path or of a server's text in a message."""
Amount = Annotated[int, Field(ge=0, le=10**15)]
"""Bytes, megabytes, milliseconds or a number; larger values make no sense for a cluster."""
Moment = Annotated[int, Field(ge=-(10**15), le=10**15)]
"""Milliseconds since 1970; 0 or -1 for an event that has not happened."""


class JobVertex(TypedDict):
    """Task of a job; in a batch job, its parallelism is -1 until Flink has chosen it."""

    id: str
    name: str
    parallelism: Annotated[int, Field(ge=-1, le=MAX_SUBTASKS)]
    maxParallelism: NotRequired[int]
    slotSharingGroupId: NotRequired[str | None]
    status: str
    tasks: NotRequired[dict[str, int]]  # numbers of subtasks by state


class PlanInput(TypedDict):
    """A stream into a task of the plan."""

    id: str
    ship_strategy: NotRequired[str | None]  # Flink 2 writes null where Flink 1 leaves it out


class PlanNode(TypedDict):
    """A task of the plan; its description shows the operators as a tree, in HTML."""

    id: str
    description: NotRequired[str]
    parallelism: NotRequired[int]
    inputs: NotRequired[ListOf[PlanInput]]


class PlanNodes(TypedDict):
    """Tasks of the plan."""

    nodes: ListOf[PlanNode]


def _planned(plan: object) -> object:
    """Plan of a job; None for the empty plan that Flink 1 shows before it has planned the job."""
    return None if plan == {} else plan


class Job(TypedDict):
    """A job; versions before 2 omit the scheduler."""

    name: str
    state: str
    now: NotRequired[Amount]
    schedulerType: NotRequired[str | None]
    timestamps: NotRequired[dict[str, Moment]]
    vertices: ListOf[JobVertex]
    plan: NotRequired[Annotated[PlanNodes | None, BeforeValidator(_planned)]]


Count = float | str | None
"""A number, which may be NaN, or its text."""
SubtaskMetrics = TypedDict(
    "SubtaskMetrics",
    {
        "accumulated-backpressured-time": Count,
        "accumulated-busy-time": Count,
        "accumulated-idle-time": Count,
        "read-records": Count,
        "read-records-complete": bool | None,
        "write-records": Count,
    },
    total=False,
)


def _assigned(device: str | None) -> str | None:
    """Id of a TaskManager; None for Flink's text before one is assigned."""
    return None if device == "(unassigned)" else device


Subtask = TypedDict(
    "Subtask",
    {
        "subtask": Annotated[int, Field(ge=0, le=MAX_SUBTASKS)],
        "attempt": Annotated[int, Field(ge=0)],
        "taskmanager-id": Annotated[str | None, AfterValidator(_assigned)],
        "status": str,
        "metrics": SubtaskMetrics,
    },
    total=False,
)


class Metric(TypedDict):
    """A metric of a task or a TaskManager, with the requested aggregates; it may be NaN."""

    id: str
    sum: NotRequired[float | str]
    avg: NotRequired[float | str]
    max: NotRequired[float | str]
    value: NotRequired[str]


class CheckpointAnswer(TypedDict, total=False):
    """A checkpoint or savepoint, with its path; later ones of a job have larger ids."""

    id: int
    external_path: str | None
    end_to_end_duration: int
    checkpoint_type: str
    trigger_timestamp: Moment


class Externalization(TypedDict):
    """Whether the checkpoints of a job are retained when it ends."""

    enabled: bool
    delete_on_cancellation: bool


class CheckpointSettings(TypedDict):
    """Checkpointing settings of a job."""

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


OURS = "streamplace: "
"""Prefix of messages of the pinning class; they may name many operators, so they are kept whole."""


def fields(**types: Any) -> Any:
    """Type of a JSON object with these fields; underscores in names stand for dashes."""
    make: Any = TypedDict
    return make("Answer", {name.replace("_", "-"): kind for name, kind in types.items()})


def rows(**types: Any) -> Any:
    """Type of a list of JSON objects with these fields."""
    lists: Any = ListOf
    return lists[fields(**types)]


_RESOURCES = fields(
    cpuCores=NotRequired[FiniteFloat],
    taskHeapMemory=NotRequired[int],
    managedMemory=Amount,
    networkMemory=NotRequired[Amount],
    extendedResources=NotRequired[dict[str, FiniteFloat]],
)
"""Resources of a TaskManager, in total or unused, or of a slot; memory in MB."""
ANSWERS: dict[str, Any] = {
    "/taskmanagers": fields(
        taskmanagers=rows(
            id=str,
            path=str,
            slotsNumber=NotRequired[int],
            freeSlots=NotRequired[int],
            totalResource=_RESOURCES,
            freeResource=_RESOURCES,
            hardware=fields(cpuCores=Annotated[int, Field(ge=0, le=MAX_CORES)]),
            memoryConfiguration=fields(totalProcessMemory=NotRequired[Amount | None]),
        )
    ),
    "/taskmanagers/*": fields(
        allocatedSlots=NotRequired[rows(jobId=str, resource=NotRequired[_RESOURCES])]
    ),
    "/taskmanagers/*/metrics": ListOf[Metric],
    "/taskmanagers/*/thread-dump": fields(
        threadInfos=rows(threadName=str, stringifiedThreadInfo=str)
    ),
    "/jobs": fields(jobs=rows(id=str, status=str)),
    "/jobs/*": Job,
    "/jobs/*/exceptions": fields(
        exceptionHistory=NotRequired[fields(entries=NotRequired[rows(stacktrace=NotRequired[str])])]
    ),
    "/jobs/*/config": fields(
        execution_config=fields(
            restart_strategy=NotRequired[str], object_reuse_mode=NotRequired[bool]
        )
    ),
    "/jobs/*/checkpoints": fields(
        counts=fields(completed=Amount, failed=NotRequired[Amount]),
        latest=NotRequired[
            fields(
                completed=NotRequired[CheckpointAnswer | None],
                savepoint=NotRequired[CheckpointAnswer | None],
                restored=NotRequired[CheckpointAnswer | None],
            )
            | None
        ],
    ),
    "/jobs/*/checkpoints/config": CheckpointSettings,
    "/jobs/*/stop": fields(request_id=str),
    "/jobs/*/savepoints/*": fields(
        status=fields(id=str),
        operation=NotRequired[
            fields(
                location=NotRequired[str],
                failure_cause=NotRequired[fields(stack_trace=NotRequired[str]) | None],
            )
            | None
        ],
    ),
    "/jobs/*/vertices/*": fields(subtasks=ListOf[Subtask]),
    "/jobs/*/vertices/*/metrics": ListOf[Metric],
    "/jobs/*/vertices/*/subtasks/metrics": ListOf[Metric],
    "/jobs/*/vertices/*/subtasktimes": fields(subtasks=rows(timestamps=dict[str, Moment])),
    "/config": fields(flink_version=str),
    "/jobmanager/config": rows(key=str, value=str),
    "/jars": fields(files=rows(id=str, name=str)),
    "/jars/upload": fields(filename=str),
    "/jars/*/run": fields(jobid=str),
    "/jars/*/plan": fields(plan=PlanNodes),
}
"""Path → type of the answer; a star stands for an id."""
_COMPLAINT, _STATUS = fields(errors=ListOf[str]), fields(message=str)
UNAVAILABLE = frozenset({401, 407, 429, 502, 503, 504})
"""HTTP statuses of Flink, or of a gateway in front of it, without an answer to the request."""
LEADERLESS = re.compile(
    r"\b(?:RecipientUnreachable|FencingToken|RpcConnection|AskTimeout|concurrent\.Timeout)Exception\b"
)
"""Errors of a JobManager that forwards requests to one that is not the leader, or that is too late.
"""


def parse_answer(path: str, content: bytes) -> Any:
    """Parse the content of an answer; raise ValueError if it does not have the declared type."""
    plain = path.partition("?")[0]
    pattern = next(p for p in ANSWERS if re.fullmatch(p.replace("*", "[^/]+"), plain))
    try:
        return _adapter(pattern).validate_json(content, strict=True)
    except ValidationError as error:
        raise ValueError(first_fault(error)) from None


def first_fault(error: ValidationError) -> str:
    """First field without the declared type, and the reason."""
    fault = error.errors(include_url=False, include_context=False)[0]
    where = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in fault["loc"])
    wrong = f"{shown(where.lstrip('.'))}: {quoted(fault['input'])}: " if where else ""
    return f"{wrong}{shown(fault['msg'], MAX_TEXT)}"


_TITLE = re.compile(rb"^\s*<.*<title>([^<]*)</title>", re.DOTALL)
"""Title of a web page."""


def parse_complaint(content: bytes) -> str:
    """Messages of Flink, or of Kubernetes, in an answer with an error status, line by line.

    Otherwise, the title of a web page, or the beginning of the answer.

    >>> parse_complaint(b"<html><head><title>502 Bad Gateway</title></head></html>")
    '502 Bad Gateway'
    """
    if title := _TITLE.search(content):
        content = title[1]
    with suppress(ValidationError):
        return "\n".join(TypeAdapter(_COMPLAINT).validate_json(content, strict=True)["errors"])
    try:
        return str(TypeAdapter(_STATUS).validate_json(content, strict=True)["message"])
    except ValidationError:
        return shown(content[:MAX_TEXT].decode(errors="replace"), MAX_TEXT)


_FORBIDDEN = re.compile(
    r'User "(?P<user>[^"]*)" cannot (?P<verb>\w+) resource "(?P<resource>[^"]*)" '
    r'in API group "(?P<group>[^"]*)"(?: in the namespace "(?P<namespace>[^"]*)")?'
)


def missing_rule(complaint: str) -> str:
    """Missing rule of a Role, by a complaint of the API server; else the complaint itself.

    >>> missing_rule(
    ...     'pods is forbidden: User "me" cannot list resource "pods" in API group "" '
    ...     'in the namespace "flink"'
    ... )
    '{apiGroups: [""], resources: [pods], verbs: [list]} of me in namespace flink'
    """
    if (match := _FORBIDDEN.search(complaint)) is None:
        return complaint
    rule = '{{apiGroups: ["{group}"], resources: [{resource}], verbs: [{verb}]}} of {user}'
    where = " in namespace {namespace}" if match["namespace"] else ""
    return (rule + where).format(**match.groupdict())


def finished(job: str) -> str:
    """Clause of a message on a job that has finished by itself."""
    return f"job {shown(job)} has finished because it has read all of its input"


def is_unavailable(status: int, complaint: str) -> bool:
    """Whether an error status comes from a gateway or a wrong JobManager, without an answer.

    >>> is_unavailable(503, ""), is_unavailable(500, "a.FencingTokenException: b")
    (True, True)
    >>> is_unavailable(404, "no such job")
    False
    """
    return status in UNAVAILABLE or LEADERLESS.search(complaint) is not None


@cache
def _adapter(pattern: str) -> TypeAdapter[Any]:
    return TypeAdapter(ANSWERS[pattern])


def root_cause(trace: str) -> str:
    r"""Last cause of a Java stack trace.

    >>> root_cause("a.B: first\n\tat x\nCaused by: c.D: the reason\n\tat y")
    'c.D: the reason'
    >>> root_cause("<Exception on server side:\na.B: it\nEnd of exception on server side>")
    'a.B: it'
    """
    lines = [
        line.strip()
        for line in trace.splitlines()
        if line and not line.startswith("\t") and "xception on server side" not in line
    ]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    cause = (causes or lines or ["unknown"])[-1]
    return shown(cause, 20_000 if OURS in cause else MAX_TEXT)
