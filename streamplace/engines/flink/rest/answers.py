"""Parse and check the answers of Flink's REST interface, by path."""

import math
import re
from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from streamplace.engines.flink.rest.answer_shapes import (
    LONGEST,
    Complaint,
    FailuresAnswer,
    FlinkConfig,
    Job,
    JobConfiguration,
    Jobs,
    JobSummary,
    List,
    Metric,
    Overview,
    PlanAnswer,
    SettingAnswer,
    Slots,
    Submitted,
    SubtaskMomentsAnswer,
    Subtasks,
    TaskManagers,
    Uploaded,
    UploadedJars,
)
from streamplace.engines.flink.rest.saving_shapes import (
    Checkpoints,
    CheckpointSettings,
    Disposal,
    SavepointAnswer,
    Triggered,
)
from streamplace.model.messages import quoted, shown

OURS = "streamplace: "
"""Prefix of messages of the pinning class itself, which may name many operators."""
ANSWERS: dict[str, Any] = {
    "/taskmanagers": TaskManagers,
    "/taskmanagers/*": Slots,
    "/taskmanagers/*/metrics": List[Metric],
    "/jobs": Jobs,
    "/jobs/overview": Overview,
    "/jobs/*": Job,
    "/jobs/*/plan": PlanAnswer,
    "/jobs/*/exceptions": FailuresAnswer,
    "/jobs/*/config": JobConfiguration,
    "/jobs/*/checkpoints": Checkpoints,
    "/jobs/*/checkpoints/config": CheckpointSettings,
    "/jobs/*/stop": Triggered,
    "/jobs/*/savepoints": Triggered,
    "/jobs/*/savepoints/*": SavepointAnswer,
    "/jobs/*/vertices/*": Subtasks,
    "/jobs/*/vertices/*/subtasks/metrics": List[Metric],
    "/jobs/*/vertices/*/subtasktimes": SubtaskMomentsAnswer,
    "/config": FlinkConfig,
    "/jobmanager/config": List[SettingAnswer],
    "/savepoint-disposal": Triggered,
    "/savepoint-disposal/*": Disposal,
    "/jars": UploadedJars,
    "/jars/upload": Uploaded,
    "/jars/*/run": Submitted,
    "/jars/*/plan": PlanAnswer,
}
"""Path → type of the answer; a star stands for an id."""
UNAVAILABLE = frozenset({401, 407, 429, 502, 503, 504})
"""HTTP statuses of a Flink, or of a gateway in front of it, that say nothing of what was asked."""
LEADERLESS = re.compile(
    r"\b(?:RecipientUnreachable|FencingToken|RpcConnection|AskTimeout|concurrent\.Timeout)Exception\b"
)
"""Errors of a JobManager that forwards requests to one that is no leader, or answers too late."""


def parse_answer(path: str, content: bytes) -> Any:
    """Parse the content of an answer.

    A ValueError says where it does not have the declared type.
    """
    try:
        return _adapter(_pattern(path)).validate_json(content)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False)[0]
    where = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in fault["loc"])
    wrong = f"{shown(where.lstrip('.'))}: {quoted(fault['input'])}: " if where else ""
    raise ValueError(f"{wrong}{shown(fault['msg'], LONGEST)}")


def parse_complaint(content: bytes) -> str:
    """Messages of an answer with an error status, line by line; its beginning if not from Flink."""
    try:
        return "\n".join(TypeAdapter(Complaint).validate_json(content)["errors"])
    except ValidationError:
        return shown(content[:LONGEST].decode(errors="replace"), LONGEST)


def finished(job: str) -> str:
    """Clause on a job that has finished by itself."""
    return f"job {shown(job)} has finished because it has read all of its input"


def just_ended(jobs: Sequence[JobSummary], ended: Collection[str], seconds: float) -> set[str]:
    """Jobs that came to a state of ``ended`` within the last ``seconds``.

    All that have one count if no other job tells Flink's time, which is derived from the duration
    of a running job.
    """
    now = max((row["start-time"] + row["duration"] for row in jobs), default=0)
    if all(row["state"] in ended for row in jobs):
        seconds = math.inf
    return {
        row["jid"]
        for row in jobs
        if row["state"] in ended and now - row["end-time"] <= 1000 * seconds
    }


def is_unavailable(status: int, complaint: str) -> bool:
    """Whether an answer with an error status says nothing of what was asked.

    >>> is_unavailable(503, ""), is_unavailable(500, "a.FencingTokenException: b")
    (True, True)
    >>> is_unavailable(404, "no such job")
    False
    """
    return status in UNAVAILABLE or LEADERLESS.search(complaint) is not None


def _pattern(path: str) -> str:
    """Key of ``ANSWERS`` that a path matches."""
    plain = path.partition("?")[0]
    return next(p for p in ANSWERS if re.fullmatch(p.replace("*", "[^/]+"), plain))


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
    return shown(cause, 20_000 if OURS in cause else 300)
