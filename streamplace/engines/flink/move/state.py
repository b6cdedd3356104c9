"""State: checkpoints and savepoints of a job, from which another job can continue."""

import secrets
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote

from streamplace.engines.flink.rest.answer_shapes import Job
from streamplace.engines.flink.rest.answers import root_cause
from streamplace.engines.flink.rest.client import (
    ENDED,
    SUBMIT_SECONDS,
    FlinkError,
    NoAnswer,
    Refusal,
    Rest,
)
from streamplace.engines.flink.rest.saving_shapes import CheckpointAnswer, SavepointAnswer
from streamplace.engines.flink.rest.tasks import job_operators
from streamplace.model.messages import quoted, shown

STOPPING = "SYNC_SAVEPOINT"
"""Type of the savepoint with which a job is stopped."""
SAVE_POLL_SECONDS = 0.05
SAVE_SECONDS = 600.0
"""Seconds for which requests about a savepoint are repeated while Flink does not answer."""


@dataclass(frozen=True, slots=True)
class Savepoint:
    """Savepoint or checkpoint that a job is started from.

    Attributes
    ----------
    path
        Path of a savepoint, or of a retained checkpoint.
    allow_non_restored
        Whether state that belongs to no operator of the job may be dropped.
    """

    path: str
    allow_non_restored: bool = False


@dataclass(frozen=True, slots=True)
class Saving:
    """How the state of a job is saved.

    Attributes
    ----------
    seconds
        Maximum number of seconds for the savepoint.
    native
        Whether it has the format of the state backend: faster, but usable by this backend only.
    trial
        Whether a trial savepoint is made and removed before the job is stopped.
    """

    seconds: float = 600.0
    native: bool = False
    trial: bool = False


@dataclass(frozen=True, slots=True)
class Saved:
    """Checkpoints and savepoints of a job.

    Attributes
    ----------
    checkpoints
        Number of completed checkpoints and savepoints.
    last
        Path of the last savepoint or checkpoint, whichever is later; None if neither is in a
        file.
    is_savepoint
        Whether that is a savepoint.
    """

    job: str
    name: str
    state: str
    checkpoints: int
    last: str | None
    is_savepoint: bool = False

    def __str__(self) -> str:
        if self.state not in ENDED:
            remedy = (
                f"to keep its state, stop it by 'streamplace flink cancel --job {self.job} "
                "--savepoint FOLDER'"
            )
        elif self.last is None:
            remedy = "none of them is in a file, so that its state is gone"
        else:
            remedy = f"give the last, if Flink kept it, by --savepoint {shown(self.last, 300)}"
        return (
            f"job {self.job} ({quoted(self.name)}, {self.state}) has completed "
            f"{self.checkpoints} checkpoints; {remedy}"
        )


def saved_by(rest: Rest, job: str) -> Saved | None:
    """Checkpoints and savepoints of a job; None if it has none."""
    document = rest.job(job)
    try:
        answer = rest.get(f"/jobs/{quote(job, safe='')}/checkpoints")
    except Refusal:  # 404: it takes none
        return None
    completed = int(answer["counts"]["completed"])
    if not completed:
        return None
    latest: dict[str, CheckpointAnswer | None] = answer.get("latest") or {}
    latest_of = ((kind, latest.get(kind)) for kind in ("savepoint", "completed"))
    rows = [(kind, row) for kind, row in latest_of if row is not None and _path(row)]
    nothing: tuple[str, CheckpointAnswer] = ("", {})
    kind, row = max(rows, key=lambda pair: pair[1].get("id", 0), default=nothing)
    name, state = str(document["name"]), str(document["state"])
    return Saved(job, name, state, completed, _path(row), kind == "savepoint")


def resumable(rest: Rest, job: str) -> str | None:
    """Path from which a job can continue: of its last state, else of its initial one."""
    if (saved := saved_by(rest, job)) is not None:
        return saved.last
    try:
        return restored_path(rest, job)
    except Refusal:  # 404: it takes none
        return None


def completed_path(rest: Rest, job: str) -> str | None:
    """Path of the last checkpoint of a job that is in a file."""
    latest = rest.get(f"/jobs/{quote(job, safe='')}/checkpoints").get("latest") or {}
    row: CheckpointAnswer | None = latest.get("completed")
    return None if row is None else _path(row)


def last_checkpoint_seconds(rest: Rest, job: str) -> float:
    """Duration of the last checkpoint of a job in seconds; 0 if there is none."""
    try:
        latest = rest.get(f"/jobs/{quote(job, safe='')}/checkpoints").get("latest") or {}
    except Refusal:  # it takes none
        return 0.0
    row: CheckpointAnswer | None = latest.get("completed")
    return 0.0 if row is None else row.get("end_to_end_duration", 0) / 1000


def restored_path(rest: Rest, job: str) -> str | None:
    """Path of the savepoint or checkpoint that a job was started from."""
    latest = rest.get(f"/jobs/{quote(job, safe='')}/checkpoints").get("latest") or {}
    row: CheckpointAnswer | None = latest.get("restored")
    return None if row is None else _path(row)


def stopped_with(rest: Rest, job: str) -> str | None:
    """Path of the savepoint with which a job was stopped; None if it was not stopped."""
    try:
        latest = rest.get(f"/jobs/{quote(job, safe='')}/checkpoints").get("latest") or {}
    except Refusal:  # it takes none
        return None
    row: CheckpointAnswer | None = latest.get("savepoint")
    if row is None:
        return None
    if "checkpoint_type" in row:
        return _path(row) if row["checkpoint_type"] == STOPPING else None
    last: CheckpointAnswer | None = latest.get("completed")
    return _path(row) if last is None or row.get("id", 0) > last.get("id", -1) else None


def outlives(rest: Rest, job: str, *, is_failure: bool = False) -> bool:
    """Whether the checkpoints of a job are retained when it is cancelled, or when it fails."""
    try:
        settings = rest.get(f"/jobs/{quote(job, safe='')}/checkpoints/config")
    except FlinkError:  # it takes none
        return False
    retention = settings["externalization"]
    return bool(retention["enabled"] and (is_failure or not retention["delete_on_cancellation"]))


def last_checkpoint_size(rest: Rest, job: str) -> int:
    """Size of the last checkpoint of a job in bytes; 0 if there is none."""
    try:
        latest = rest.get(f"/jobs/{quote(job, safe='')}/checkpoints").get("latest") or {}
    except Refusal:  # it takes none
        return 0
    row: CheckpointAnswer | None = latest.get("completed")
    return 0 if row is None else row.get("state_size", 0)


class CheckpointTotals(NamedTuple):
    """Numbers of completed and failed checkpoints of a job."""

    completed: int
    failed: int


def checkpoint_counts(rest: Rest, job: str) -> CheckpointTotals:
    """Read the numbers of completed and failed checkpoints of a job."""
    counts = rest.get(f"/jobs/{quote(job, safe='')}/checkpoints")["counts"]
    return CheckpointTotals(counts["completed"], counts.get("failed", 0))


def _path(row: CheckpointAnswer) -> str | None:
    """Path of a checkpoint, if it is in a file."""
    path = row.get("external_path")
    return path if path and not path.startswith("<") else None


def left_behind(rest: Rest, operators: Iterable[str]) -> Saved | None:
    """Checkpoints and savepoints of the latest job with these operators, running or not."""
    names = set(operators)
    jobs = rest.get("/jobs/overview")["jobs"]
    for row in sorted(jobs, key=lambda row: row["start-time"], reverse=True):
        with suppress(FlinkError):  # Flink forgets jobs that ended long ago
            if _is_of(rest.job(row["jid"]), names):
                return saved_by(rest, row["jid"])
    return None


def stop(rest: Rest, job: str, folder: str | None) -> str:
    """Stop a job with a savepoint and return its path.

    All machines of the cluster must be able to write to the folder; None stands for the cluster's
    own.

    Raises
    ------
    FlinkError
        When the savepoint fails; the job continues to run.
    """
    request = begin_stop(rest, job, folder, secrets.token_hex(16))
    path = stopped_at(rest.patient(SAVE_SECONDS, rest.tell), job, request)
    rest.wait(job, ENDED)
    rest.wait_released()
    return path


def begin_stop(
    rest: Rest,
    job: str,
    folder: str | None,
    trigger: str,
    *,
    native: bool = False,
    seconds: float = SUBMIT_SECONDS,
) -> str:
    """Request that a job be stopped with a savepoint; return the id of the request, its trigger.

    Parameters
    ----------
    trigger
        Id of the request, chosen in advance so that the request can be repeated.
    native
        Whether the savepoint has the format of the state backend.
    seconds
        Timeout for the answer to the request.
    """
    request: dict[str, object] = {"drain": False, "triggerId": trigger}
    request["formatType"] = "NATIVE" if native else "CANONICAL"
    if folder is not None:
        request["targetDirectory"] = folder
    answer = rest.post(f"/jobs/{quote(job, safe='')}/stop", request, seconds)
    return str(answer["request-id"])


class StillSaving(NoAnswer):
    """A savepoint is not complete within its time limit; Flink continues with it."""


def stop_status(rest: Rest, job: str, request: str) -> str | None:
    """Status of a request that stops a job; None if Flink does not know the request."""
    try:
        answer = rest.get(f"/jobs/{quote(job, safe='')}/savepoints/{quote(request, safe='')}")
    except Refusal:
        return None
    return str(answer["status"]["id"])


def stopped_at(rest: Rest, job: str, request: str, seconds: float = 600.0) -> str:
    """Wait for the savepoint with which a job is being stopped, and return its path.

    Raises
    ------
    StillSaving
        When it is not complete within ``seconds``.
    Refusal
        When Flink does not know the request.
    FlinkError
        When the job cannot be saved.
    """
    path = f"/jobs/{quote(job, safe='')}/savepoints/{quote(request, safe='')}"
    deadline = time.monotonic() + seconds
    while True:
        answer: SavepointAnswer = rest.get(path)
        if answer["status"]["id"] == "COMPLETED":
            break
        if time.monotonic() > deadline:
            raise StillSaving(
                f"the savepoint of job {job} is not complete after {seconds:g} s, and Flink goes "
                "on with it"
            )
        time.sleep(SAVE_POLL_SECONDS)
    operation = answer.get("operation") or {}
    if "location" not in operation:
        trace = str((operation.get("failure-cause") or {}).get("stack-trace", ""))
        raise FlinkError(f"job {job} cannot be saved: {root_cause(trace)}")
    return operation["location"]


def _is_of(document: Job, operators: set[str]) -> bool:
    """Whether all operators of a job are among these."""
    names = {name for task in job_operators(document, operators) for name in task.names}
    return bool(names) and names <= operators
