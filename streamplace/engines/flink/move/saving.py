"""Saving: stop a job with a savepoint, and find the state that another job can continue from.

Flink lists the checkpoints and savepoints of the jobs that it knows.
"""

import logging
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote

from streamplace.engines.flink.rest.answers import CheckpointAnswer, SavepointAnswer, root_cause
from streamplace.engines.flink.rest.client import (
    ENDED,
    FlinkError,
    NoAnswer,
    Refusal,
    Rest,
    turns,
)
from streamplace.engines.flink.rest.plan import job_operators
from streamplace.errors import SettingError
from streamplace.model.defaults import SAVEPOINT_SECONDS
from streamplace.model.messages import quoted, shown

LOG = logging.getLogger(__package__)
STOPPING = "SYNC_SAVEPOINT"
"""Type of the savepoint with which a job is stopped."""
UNDER_WAY = "IN_PROGRESS"
"""Status of a stop request that Flink is still carrying out."""
FOLDER_SETTINGS = ("execution.checkpointing.savepoint-dir", "state.savepoints.dir")
"""Flink's settings for the folder of savepoints; the second is the older name."""


@dataclass(frozen=True, slots=True)
class Savepoint:
    """Savepoint or checkpoint that a job is started from."""

    path: str  # path of a savepoint, or of a retained checkpoint
    # Whether state that belongs to no operator of the job may be dropped.
    allow_non_restored: bool = False


@dataclass(frozen=True, slots=True)
class Saved:
    """Checkpoints and savepoints of a job."""

    job: str
    name: str
    state: str
    checkpoints: int  # number of completed checkpoints and savepoints
    last: str | None  # path of the last state that outlives the job; None if there is none

    def __str__(self) -> str:
        if self.state not in ENDED:
            remedy = (
                f"to keep its state, stop it by 'streamplace flink cancel --job {self.job} "
                "--savepoint FOLDER'"
            )
        elif self.last is None:
            remedy = "none of them outlives it in a file, so that its state is gone"
        else:
            remedy = f"give the last, if Flink kept it, by --savepoint {shown(self.last, 300)}"
        return (
            f"job {self.job} ({quoted(self.name)}, {self.state}) has completed "
            f"{self.checkpoints} checkpoints; {remedy}"
        )


class CheckpointTotals(NamedTuple):
    """Numbers of completed and failed checkpoints of a job."""

    completed: int
    failed: int


class StillSaving(NoAnswer):
    """A savepoint is not complete within its time limit; Flink continues with it."""


@contextmanager
def suppress_missing() -> Iterator[None]:
    """Leave the block if Flink refuses what it asks for as missing.

    An error within Flink does not mean that something is missing, and raises NoAnswer.
    """
    try:
        yield
    except Refusal as error:
        if error.status >= 500:
            raise NoAnswer(str(error)) from None


def stop(rest: Rest, job: str, folder: str | None) -> str:
    """Stop a job with a savepoint and return its path.

    All machines of the cluster must be able to write to the folder; None stands for the cluster's
    own. Requests that Flink does not answer are repeated. Raises FlinkError when the savepoint
    fails; the job continues to run.
    """
    patient = rest.patient(SAVEPOINT_SECONDS, rest.tell)
    request = begin_stop(patient, job, folder, secrets.token_hex(16))
    path = stopped_at(patient, job, request)
    patient.wait_released()
    return path


def begin_stop(
    rest: Rest, job: str, folder: str | None, trigger: str, *, native: bool = False
) -> str:
    """Request that a job be stopped with a savepoint; return the id of the request, its trigger.

    The trigger is chosen in advance so that the request can be repeated.
    """
    request: dict[str, object] = {"drain": False, "triggerId": trigger}
    request["formatType"] = "NATIVE" if native else "CANONICAL"
    if folder is not None:
        request["targetDirectory"] = folder
    LOG.debug("job %s is asked to stop: %s", job, request)
    answer = rest.post(f"/jobs/{quote(job, safe='')}/stop", request, rest.timeout)
    return str(answer["request-id"])


def _stopping(rest: Rest, job: str, request: str) -> SavepointAnswer | None:
    """What became of a request that stops a job; None if Flink does not know it."""
    with suppress_missing():
        path = f"/jobs/{quote(job, safe='')}/savepoints/{quote(request, safe='')}"
        answer: SavepointAnswer = rest.get(path)
        return answer
    return None


def stop_status(rest: Rest, job: str, request: str) -> str | None:
    """Status of a request that stops a job; None if Flink does not know the request."""
    answer = _stopping(rest, job, request)
    return None if answer is None else answer["status"]["id"]


def stopped_at(rest: Rest, job: str, request: str, seconds: float = SAVEPOINT_SECONDS) -> str:
    """Wait until a job has been stopped by a request, and return the path of its savepoint.

    Raises StillSaving when it is not complete within ``seconds``. Raises Refusal when Flink does
    not know the request. Raises FlinkError when the job cannot be saved.
    """
    for _ in turns(seconds):
        if (answer := _stopping(rest, job, request)) is None:
            raise Refusal(f"Flink does not know any more that job {job} was asked to stop")
        if answer["status"]["id"] == "COMPLETED":
            break
    else:
        raise StillSaving(
            f"the savepoint of job {job} is not complete after {seconds:g} s, and Flink goes on "
            "with it"
        )
    operation = answer.get("operation") or {}
    if "location" not in operation:
        trace = str((operation.get("failure-cause") or {}).get("stack-trace", ""))
        raise FlinkError(f"job {job} cannot be saved: {root_cause(trace)}")
    LOG.debug("job %s is saved in %s, and ends", job, operation["location"])
    rest.wait(job, ENDED)
    return operation["location"]


def _checkpoints_of(rest: Rest, job: str) -> Any:
    """Flink's answer on the checkpoints of a job; empty if it takes none."""
    with suppress_missing():
        return rest.get(f"/jobs/{quote(job, safe='')}/checkpoints")
    return {}


def latest(rest: Rest, job: str) -> Mapping[str, CheckpointAnswer]:
    """Last ``completed`` checkpoint and ``savepoint`` of a job, and what was ``restored``."""
    return _known(_checkpoints_of(rest, job).get("latest"))


def _known(rows: Mapping[str, CheckpointAnswer | None] | None) -> Mapping[str, CheckpointAnswer]:
    return {kind: row for kind, row in (rows or {}).items() if row is not None}


def checkpoint_totals(rest: Rest, job: str) -> CheckpointTotals:
    """Numbers of completed and failed checkpoints of a job; 0 if it takes none."""
    counts = _checkpoints_of(rest, job).get("counts") or {}
    return CheckpointTotals(counts.get("completed", 0), counts.get("failed", 0))


def saved_by(rest: Rest, job: str) -> Saved | None:
    """Checkpoints and savepoints of a job; None if it has none."""
    document, answer = rest.job(job), _checkpoints_of(rest, job)
    completed = (answer.get("counts") or {}).get("completed", 0)
    if not completed:
        return None
    name, state = document["name"], document["state"]
    last = _kept(rest, job, state, _known(answer.get("latest")))
    return Saved(job, name, state, completed, last)


def _kept(rest: Rest, job: str, state: str, rows: Mapping[str, CheckpointAnswer]) -> str | None:
    """Path of the last state that outlives a job.

    Flink also reports savepoints that were removed since, so the last checkpoint is preferred to a
    savepoint with which the job was not stopped.
    """
    savepoint, checkpoint = rows.get("savepoint", {}), rows.get("completed", {})
    last, other = _path(savepoint), _path(checkpoint)
    is_later = other is None or savepoint.get("id", 0) >= checkpoint.get("id", 0)
    if last is not None and is_later and savepoint.get("checkpoint_type", STOPPING) == STOPPING:
        return last
    if other is not None and outlives(rest, job, is_failure=state == "FAILED"):
        return other
    return last if is_later else None


def resumable(rest: Rest, job: str) -> str | None:
    """Path from which a job can continue when it has ended; its initial one if it saved nothing."""
    if (saved := saved_by(rest, job)) is not None:
        return saved.last
    return restored_path(rest, job)


def last_kept(rest: Rest, job: str) -> str | None:
    """Path of the last state of a job that outlives it; None if there is none, or no such job."""
    with suppress(Refusal):
        if (saved := saved_by(rest, job)) is not None:
            return saved.last
    return None


def state_clause(rest: Rest, job: str) -> str:
    """Clause on the remaining state of a job that has ended; empty if there is none."""
    path = last_kept(rest, job)
    return "" if path is None else f"; its state is in {shown(path, 300)}"


def restored_path(rest: Rest, job: str) -> str | None:
    """Path of the savepoint or checkpoint that a job was started from, if Flink reports it."""
    return _path(latest(rest, job).get("restored", {}))


def completed_path(rest: Rest, job: str) -> str | None:
    """Path of the last checkpoint of a job that is in a file."""
    return _path(latest(rest, job).get("completed", {}))


def stopped_with(rest: Rest, job: str) -> str | None:
    """Path of the savepoint with which a job was stopped; None if it was not stopped."""
    row = latest(rest, job).get("savepoint", {})
    return _path(row) if row.get("checkpoint_type") == STOPPING else None


def outlives(rest: Rest, job: str, *, is_failure: bool = False) -> bool:
    """Whether the checkpoints of a job are retained when it is cancelled, or when it fails."""
    with suppress_missing():  # it takes none
        retention = rest.get(f"/jobs/{quote(job, safe='')}/checkpoints/config")["externalization"]
        is_kept = is_failure or not retention["delete_on_cancellation"]
        return bool(retention["enabled"] and is_kept)
    return False


def _path(row: CheckpointAnswer) -> str | None:
    """Path of a checkpoint, if it is in a file."""
    path = row.get("external_path")
    return path if path and not path.startswith("<") else None


def left_behind(rest: Rest, operators: Iterable[str]) -> Saved | None:
    """Checkpoints and savepoints of the latest job with these operators, running or not."""
    expected = set(operators)
    jobs = rest.get("/jobs/overview")["jobs"]
    for row in sorted(jobs, key=lambda row: row["start-time"], reverse=True):
        with suppress(FlinkError):  # Flink forgets jobs that ended long ago
            tasks = job_operators(rest.job(row["jid"]))
            names = {name for task in tasks for name in task.names}
            if names and names <= expected:
                return saved_by(rest, row["jid"])
    return None


def savepoint_folder(
    rest: Rest, given: str | None, settings: Mapping[str, str] | None = None
) -> str:
    """Folder of savepoints: the one given, else that of the job's or the cluster's settings.

    Raises SettingError when no folder is known.
    """
    own, cluster = settings or {}, {} if given else rest.settings()
    named = (place[key] for place in (own, cluster) for key in FOLDER_SETTINGS if place.get(key))
    folder = given or next(named, None)
    if folder is None:
        raise SettingError(
            "the cluster has no folder for savepoints (execution.checkpointing.savepoint-dir); "
            "name one with --savepoints"
        )
    return folder
