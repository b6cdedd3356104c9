"""State: checkpoints and savepoints of a job, from which another job can continue."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote

from streamplace.engines.flink.rest.answers import CheckpointAnswer, Job
from streamplace.engines.flink.rest.client import ENDED, FlinkError, NoAnswer, Refusal, Rest
from streamplace.engines.flink.rest.tasks import job_operators
from streamplace.model.messages import quoted, shown

STOPPING = "SYNC_SAVEPOINT"
"""Type of the savepoint with which a job is stopped."""


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


def refuse_fault(error: Refusal) -> None:
    """Raise NoAnswer for an error within Flink, which does not mean that something is missing."""
    if error.status >= 500:
        raise NoAnswer(str(error)) from None


@contextmanager
def suppress_missing() -> Iterator[None]:
    """Leave the block if Flink refuses what it asks for as missing; see `refuse_fault`."""
    try:
        yield
    except Refusal as error:
        refuse_fault(error)


def saved_by(rest: Rest, job: str) -> Saved | None:
    """Checkpoints and savepoints of a job; None if it has none."""
    document, answer = rest.job(job), None
    with suppress_missing():  # 404: it takes none
        answer = rest.get(f"/jobs/{quote(job, safe='')}/checkpoints")
    if answer is None:
        return None
    completed = int(answer["counts"]["completed"])
    if not completed:
        return None
    latest: Mapping[str, CheckpointAnswer | None] = answer.get("latest") or {}
    name, state = str(document["name"]), str(document["state"])
    return Saved(job, name, state, completed, _kept(rest, job, state, latest))


def _kept(
    rest: Rest, job: str, state: str, latest: Mapping[str, CheckpointAnswer | None]
) -> str | None:
    """Path of the last state that outlives a job.

    Flink also reports savepoints that were removed since, so the last checkpoint is preferred to a
    savepoint with which the job was not stopped.
    """
    nothing: CheckpointAnswer = {}
    savepoint, checkpoint = latest.get("savepoint") or nothing, latest.get("completed") or nothing
    last, other = _path(savepoint), _path(checkpoint)
    is_later = other is None or savepoint.get("id", 0) >= checkpoint.get("id", 0)
    if last is not None and is_later and savepoint.get("checkpoint_type", STOPPING) == STOPPING:
        return last
    if other is not None and outlives(rest, job, is_failure=state == "FAILED"):
        return other
    return last if is_later else None


def latest_checkpoints(rest: Rest, job: str) -> Mapping[str, CheckpointAnswer | None]:
    """Last completed checkpoint, savepoint and restored state of a job, by these kinds.

    Raises Refusal when the job takes no checkpoints.
    """
    answer = rest.get(f"/jobs/{quote(job, safe='')}/checkpoints")
    latest: Mapping[str, CheckpointAnswer | None] = answer.get("latest") or {}
    return latest


def resumable(rest: Rest, job: str) -> str | None:
    """Path from which a job can continue when it has ended; its initial one if it saved nothing."""
    if (saved := saved_by(rest, job)) is not None:
        return saved.last
    with suppress_missing():  # 404: it takes none
        return restored_path(rest, job)
    return None


def completed_path(rest: Rest, job: str) -> str | None:
    """Path of the last checkpoint of a job that is in a file."""
    row = latest_checkpoints(rest, job).get("completed")
    return None if row is None else _path(row)


def last_checkpoint(rest: Rest, job: str) -> CheckpointAnswer:
    """Last completed checkpoint of a job; empty if there is none."""
    with suppress(Refusal):  # it takes none
        return latest_checkpoints(rest, job).get("completed") or {}
    return {}


def last_checkpoint_seconds(rest: Rest, job: str) -> float:
    """Duration of the last checkpoint of a job in seconds; 0 if there is none."""
    return last_checkpoint(rest, job).get("end_to_end_duration", 0) / 1000


def restored_path(rest: Rest, job: str) -> str | None:
    """Path of the savepoint or checkpoint that a job was started from."""
    row = latest_checkpoints(rest, job).get("restored")
    return None if row is None else _path(row)


def stopped_with(rest: Rest, job: str) -> str | None:
    """Path of the savepoint with which a job was stopped; None if it was not stopped."""
    latest: Mapping[str, CheckpointAnswer | None] = {}
    with suppress_missing():  # it takes none
        latest = latest_checkpoints(rest, job)
    row = latest.get("savepoint")
    if row is None:
        return None
    if "checkpoint_type" in row:
        return _path(row) if row["checkpoint_type"] == STOPPING else None
    last = latest.get("completed")
    return _path(row) if last is None or row.get("id", 0) > last.get("id", -1) else None


def outlives(rest: Rest, job: str, *, is_failure: bool = False) -> bool:
    """Whether the checkpoints of a job are retained when it is cancelled, or when it fails."""
    with suppress_missing():  # it takes none
        retention = rest.get(f"/jobs/{quote(job, safe='')}/checkpoints/config")["externalization"]
        is_kept = is_failure or not retention["delete_on_cancellation"]
        return bool(retention["enabled"] and is_kept)
    return False


class CheckpointTotals(NamedTuple):
    """Numbers of completed and failed checkpoints of a job."""

    completed: int
    failed: int


def checkpoint_counts(rest: Rest, job: str) -> CheckpointTotals:
    """Read the numbers of completed and failed checkpoints of a job."""
    counts = rest.get(f"/jobs/{quote(job, safe='')}/checkpoints")["counts"]
    return CheckpointTotals(counts["completed"], counts.get("failed", 0))


def checkpoint_totals(rest: Rest, job: str) -> CheckpointTotals:
    """Numbers of completed and failed checkpoints of a job; 0 if it takes none."""
    with suppress_missing():
        return checkpoint_counts(rest, job)
    return CheckpointTotals(0, 0)


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


def _is_of(document: Job, operators: set[str]) -> bool:
    """Whether all operators of a job are among these."""
    names = {name for task in job_operators(document, operators) for name in task.names}
    return bool(names) and names <= operators
