"""Savepoints that moves have left behind: list them, and remove them on request."""

import time
from datetime import datetime
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, ValidationError

from streamplace.engines.flink.move.folder import SavepointFolder
from streamplace.engines.flink.move.journal import now, unfinished
from streamplace.engines.flink.move.state import checkpoint_counts, restored_path
from streamplace.engines.flink.rest.answers import root_cause
from streamplace.engines.flink.rest.client import POLL_SECONDS, FlinkError, Refusal, Rest
from streamplace.errors import SettingError
from streamplace.model.messages import quoted, shown

PREFIX, SUFFIX = "streamplace-savepoint-", ".json"
REMOVE_SECONDS = 300.0


class LeftSavepoint(BaseModel):
    """A savepoint that a move made."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str
    job: str  # the job that was stopped with it
    successor: str  # the job that should start from it
    made: datetime


def record(folder: SavepointFolder, path: str, job: str, successor: str) -> None:
    """Record that a move has made a savepoint."""
    savepoint = LeftSavepoint(path=path, job=job, successor=successor, made=now())
    folder.write(_record_name(path), savepoint.model_dump_json())


def left_savepoints(folder: SavepointFolder) -> list[LeftSavepoint]:
    """Savepoints of moves that still exist in a folder, the oldest first."""
    present = {entry.name for entry in folder.entries("")}
    savepoints = []
    for name in sorted(present):
        if name.startswith(PREFIX) and name.endswith(SUFFIX):
            try:
                savepoint = LeftSavepoint.model_validate_json(folder.read(name))
            except ValidationError:
                continue
            if savepoint.path.rstrip("/").rpartition("/")[2] in present:
                savepoints.append(savepoint)
    return sorted(savepoints, key=lambda savepoint: savepoint.made)


def needed_by(rest: Rest, folder: SavepointFolder, savepoint: LeftSavepoint) -> str | None:
    """Why a savepoint must stay; None if it can be removed."""
    for journal in unfinished(folder):
        if savepoint.job in (journal.job, journal.successor):
            return f"a move of job {journal.job} has not finished"
    for job in rest.live_jobs():
        try:
            path, counts = restored_path(rest, job), checkpoint_counts(rest, job)
        except Refusal:  # it takes no checkpoints
            continue
        if path == savepoint.path and not counts.completed:
            return f"job {job} was started from it and has completed no checkpoint since"
    return None


def remove_savepoint(rest: Rest, folder: SavepointFolder, path: str) -> None:
    """Make Flink remove a savepoint that a move has left behind.

    Raises SettingError when it is not a savepoint of a move, or is still needed. Raises FlinkError
    when Flink cannot remove it.
    """
    savepoint = next((s for s in left_savepoints(folder) if s.path == path), None)
    if savepoint is None:
        raise SettingError(f"{quoted(path)} is not a savepoint that a move left in {folder.uri}")
    if (reason := needed_by(rest, folder, savepoint)) is not None:
        raise SettingError(f"{shown(path, 300)} is not removed: {reason}")
    dispose(rest, folder, path)
    folder.delete(f"{PREFIX}{savepoint.job}{SUFFIX}")


def dispose(rest: Rest, folder: SavepointFolder, path: str) -> None:
    """Make Flink remove a savepoint, and delete the record of it."""
    request = rest.post("/savepoint-disposal", {"savepoint-path": path})["request-id"]
    deadline = time.monotonic() + REMOVE_SECONDS
    while True:
        answer = rest.get(f"/savepoint-disposal/{quote(request, safe='')}")
        if answer["status"]["id"] == "COMPLETED":
            break
        if time.monotonic() > deadline:
            raise FlinkError(f"Flink is still removing {shown(path, 300)}; try again later")
        time.sleep(POLL_SECONDS)
    cause = (answer.get("operation") or {}).get("failure-cause")
    if cause:
        raise FlinkError(
            f"Flink cannot remove {shown(path, 300)}: {root_cause(cause.get('stack-trace', ''))}"
        )
    folder.delete(_record_name(path))


def _record_name(path: str) -> str:
    """Name of the file that records which move has made a savepoint."""
    return f"{PREFIX}{path.rstrip('/').rpartition('/')[2]}{SUFFIX}"
