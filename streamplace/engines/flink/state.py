"""State: what a job has saved, so that another can take it over."""

import secrets
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote

from streamplace.engines.flink.answer_shapes import Job
from streamplace.engines.flink.answers import root_cause
from streamplace.engines.flink.rest import (
    ENDED,
    SUBMIT_SECONDS,
    FlinkError,
    NoAnswer,
    Refusal,
    Rest,
)
from streamplace.engines.flink.saving_shapes import CheckpointAnswer, SavepointAnswer
from streamplace.engines.flink.tasks import job_operators
from streamplace.model.messages import quoted, shown

STOPPING = "SYNC_SAVEPOINT"
"""Type of the savepoint that a job is stopped with."""
SAVE_POLL_SECONDS = 0.05
SAVE_SECONDS = 600.0
"""For which a Flink that does not answer is asked about a savepoint."""


@dataclass(frozen=True, slots=True)
class Savepoint:
    """What a job starts from.

    Attributes
    ----------
    path
        Of a savepoint, or of a checkpoint that was retained.
    allow_non_restored
        Whether state in it that no operator takes over may be left behind.
    """

    path: str
    allow_non_restored: bool = False


@dataclass(frozen=True, slots=True)
class Saving:
    """How the state of a job is saved.

    Attributes
    ----------
    seconds
        In which the savepoint must be complete.
    native
        Whether it has the format of the state backend: quicker, but for this backend alone.
    trial
        Whether a savepoint is made and removed before the job is stopped.
    """

    seconds: float = 600.0
    native: bool = False
    trial: bool = False


@dataclass(frozen=True, slots=True)
class Saved:
    """What a job has saved.

    Attributes
    ----------
    checkpoints
        Number of checkpoints and savepoints that were completed.
    last
        Path of the last savepoint or checkpoint, the later of them; None where neither is in a
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
    """What a job has saved; None for a job without checkpoints."""
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
    """Path of what a job can go on from: what it saved last, else what it began from."""
    if (saved := saved_by(rest, job)) is not None:
        return saved.last
    try:
        return restored_path(rest, job)
    except Refusal:  # 404: it takes none
        return None


def completed_path(rest: Rest, job: str) -> str | None:
    """Path of the last checkpoint of a job that lies in a file."""
    latest = rest.get(f"/jobs/{quote(job, safe='')}/checkpoints").get("latest") or {}
    row: CheckpointAnswer | None = latest.get("completed")
    return None if row is None else _path(row)


def last_checkpoint_seconds(rest: Rest, job: str) -> float:
    """How long the last checkpoint of a job took; 0 where there is none."""
    try:
        latest = rest.get(f"/jobs/{quote(job, safe='')}/checkpoints").get("latest") or {}
    except Refusal:  # it takes none
        return 0.0
    row: CheckpointAnswer | None = latest.get("completed")
    return 0.0 if row is None else row.get("end_to_end_duration", 0) / 1000


def restored_path(rest: Rest, job: str) -> str | None:
    """Path of what a job was started from."""
    latest = rest.get(f"/jobs/{quote(job, safe='')}/checkpoints").get("latest") or {}
    row: CheckpointAnswer | None = latest.get("restored")
    return None if row is None else _path(row)


def stopped_with(rest: Rest, job: str) -> str | None:
    """Path of the savepoint that a job was stopped with; None where nobody has stopped it."""
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
    """Whether the checkpoints of a job stay when it is cancelled, or when it fails."""
    try:
        settings = rest.get(f"/jobs/{quote(job, safe='')}/checkpoints/config")
    except FlinkError:  # it takes none
        return False
    retention = settings["externalization"]
    return bool(retention["enabled"] and (is_failure or not retention["delete_on_cancellation"]))


def last_checkpoint_size(rest: Rest, job: str) -> int:
    """Bytes that the last checkpoint of a job took; 0 where there is none."""
    try:
        latest = rest.get(f"/jobs/{quote(job, safe='')}/checkpoints").get("latest") or {}
    except Refusal:  # it takes none
        return 0
    row: CheckpointAnswer | None = latest.get("completed")
    return 0 if row is None else row.get("state_size", 0)


class CheckpointTotals(NamedTuple):
    """How many checkpoints of a job were completed, and how many failed."""

    completed: int
    failed: int


def checkpoint_counts(rest: Rest, job: str) -> CheckpointTotals:
    """Number of checkpoints that a job has completed, and that have failed."""
    counts = rest.get(f"/jobs/{quote(job, safe='')}/checkpoints")["counts"]
    return CheckpointTotals(counts["completed"], counts.get("failed", 0))


def _path(row: CheckpointAnswer) -> str | None:
    """Where a checkpoint lies, if in a file."""
    path = row.get("external_path")
    return path if path and not path.startswith("<") else None


def left_behind(rest: Rest, operators: Iterable[str]) -> Saved | None:
    """What the youngest job of these operators has saved, be it running or ended."""
    names = set(operators)
    jobs = rest.get("/jobs/overview")["jobs"]
    for row in sorted(jobs, key=lambda row: row["start-time"], reverse=True):
        with suppress(FlinkError):  # Flink forgets jobs that ended long ago
            if _is_of(rest.job(row["jid"]), names):
                return saved_by(rest, row["jid"])
    return None


def stop(rest: Rest, job: str, folder: str | None) -> str:
    """Stop a job with a savepoint in a folder that all of Flink can write to; returns its path.

    Where no folder is given it goes to the cluster's own.

    Raises
    ------
    FlinkError
        When there is no savepoint; the job goes on.
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
    """Have a job stopped with a savepoint; returns what to ask for it by, which is the trigger.

    Parameters
    ----------
    trigger
        Id of the request, chosen before so that it may be sent again.
    native
        Whether the savepoint has the format of the state backend.
    seconds
        In which Flink should say that it stops the job.
    """
    request: dict[str, object] = {"drain": False, "triggerId": trigger}
    request["formatType"] = "NATIVE" if native else "CANONICAL"
    if folder is not None:
        request["targetDirectory"] = folder
    answer = rest.post(f"/jobs/{quote(job, safe='')}/stop", request, seconds)
    return str(answer["request-id"])


class StillSaving(NoAnswer):
    """A savepoint that takes longer than it should; Flink goes on with it."""


def stop_status(rest: Rest, job: str, request: str) -> str | None:
    """How far Flink is with stopping a job; None where it does not know that it should."""
    try:
        answer = rest.get(f"/jobs/{quote(job, safe='')}/savepoints/{quote(request, safe='')}")
    except Refusal:
        return None
    return str(answer["status"]["id"])


def stopped_at(rest: Rest, job: str, request: str, seconds: float = 600.0) -> str:
    """Path of the savepoint that a job is being stopped with, once it is complete.

    Raises
    ------
    StillSaving
        When it is not after so many seconds.
    Refusal
        When Flink does not know that it should stop the job.
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
