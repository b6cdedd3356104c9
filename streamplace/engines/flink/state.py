"""State: what a job has saved, so that another can take it over."""

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import quote

from streamplace.engines.flink.answers import Job
from streamplace.engines.flink.answers import Savepoint as SavepointAnswer
from streamplace.engines.flink.rest import (
    ENDED,
    POLL_SECONDS,
    FlinkError,
    Refusal,
    Rest,
    root_cause,
)
from streamplace.engines.flink.tasks import job_operators
from streamplace.model.messages import quoted, shown


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
class Saved:
    """What a job has saved.

    Attributes
    ----------
    checkpoints
        Number of checkpoints and savepoints that were completed.
    last
        Path of the last savepoint, else of the last checkpoint; None where neither is in a file.
    is_savepoint
        Whether that is a savepoint.
    """

    job: str
    name: str
    state: str
    checkpoints: int
    last: str | None
    is_savepoint: bool

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
    except FlinkError:  # 404: it takes none
        return None
    completed = int(answer["counts"]["completed"])
    if not completed:
        return None
    latest = answer.get("latest") or {}
    paths = ((latest.get(kind) or {}).get("external_path") for kind in ("savepoint", "completed"))
    found = [None if not path or path.startswith("<") else path for path in paths]
    last = found[0] or found[1]
    state = str(document["state"])
    return Saved(job, str(document["name"]), state, completed, last, found[0] is not None)


def left_behind(rest: Rest, operators: Iterable[str]) -> Saved | None:
    """What the youngest job of these operators has saved, be it running or ended."""
    known = set(operators)
    jobs = rest.get("/jobs/overview")["jobs"]
    for row in sorted(jobs, key=lambda row: row["start-time"], reverse=True):
        with suppress(FlinkError):  # Flink forgets jobs that ended long ago
            if _is_of(rest.job(row["jid"]), known):
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
    path = stopped_at(rest, job, begin_stop(rest, job, folder))
    rest.wait(job, ENDED)
    rest.wait_released()
    return path


def begin_stop(rest: Rest, job: str, folder: str | None) -> str:
    """Have a job stopped with a savepoint; returns what to ask for it by."""
    request = {"drain": False} | ({} if folder is None else {"targetDirectory": folder})
    answer = rest.post(f"/jobs/{quote(job, safe='')}/stop", request)
    return str(answer["request-id"])


def stopped_at(rest: Rest, job: str, request: str, seconds: float = 600.0) -> str:
    """Path of the savepoint that a job is being stopped with, once it is complete.

    An answer that fails to come may be a short breakdown of the network: it is asked for again.
    """
    path = f"/jobs/{quote(job, safe='')}/savepoints/{quote(request, safe='')}"
    deadline = time.monotonic() + seconds
    while True:
        answer: SavepointAnswer | None = None
        try:
            answer = rest.get(path)
        except Refusal:
            raise
        except FlinkError:
            if time.monotonic() > deadline:
                raise
        if answer is not None and answer["status"]["id"] == "COMPLETED":
            break
        if time.monotonic() > deadline:
            raise FlinkError(f"job {job} has no savepoint after {seconds:g} s")
        time.sleep(POLL_SECONDS)
    operation = answer.get("operation") or {}
    if "location" not in operation:
        trace = str((operation.get("failure-cause") or {}).get("stack-trace", ""))
        raise FlinkError(f"job {job} cannot be saved: {root_cause(trace)}")
    return operation["location"]


def _is_of(document: Job, operators: set[str]) -> bool:
    """Whether all operators of a job are among these."""
    names = {name for task in job_operators(document, operators) for name in task.names}
    return bool(names) and names <= operators
