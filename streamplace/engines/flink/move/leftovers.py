"""Leftovers of moves: records of their savepoints, and locks of commands that have ended.

Both are listed, and removed on request.
"""

import time
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, ValidationError

from streamplace.engines.flink.move.copies import same_place
from streamplace.engines.flink.move.folder import FileEntry, SavepointFolder
from streamplace.engines.flink.move.journal import (
    DEAD_SECONDS,
    PREFIX,
    SUFFIX,
    Journal,
    is_held,
    lock_number,
    now,
    read_journal,
    unfinished,
)
from streamplace.engines.flink.move.state import (
    latest_checkpoints,
    restored_path,
    stopped_with,
    suppress_missing,
)
from streamplace.engines.flink.move.stopping import stop_status
from streamplace.engines.flink.program.submission import chain_states
from streamplace.engines.flink.rest.answers import root_cause
from streamplace.engines.flink.rest.client import (
    ENDED,
    FINISHED,
    POLL_SECONDS,
    SUSPENDED,
    FlinkError,
    Rest,
)
from streamplace.engines.flink.rest.job_ids import chain_of, return_trigger
from streamplace.errors import SettingError
from streamplace.model.messages import quoted, shown

RECORD_PREFIX, RECORD_SUFFIX = "streamplace-savepoint-", ".json"
REMOVE_SECONDS = 300.0
UNDER_WAY = "IN_PROGRESS"
"""Status of a stop request that Flink is still carrying out."""
_OVER = (FINISHED, "CANCELED")
"""States of jobs that have ended because their input did, or because a user wanted it."""


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
        if name.startswith(RECORD_PREFIX) and name.endswith(RECORD_SUFFIX):
            try:
                savepoint = LeftSavepoint.model_validate_json(folder.read(name))
            except ValidationError:
                continue
            if savepoint.path.rstrip("/").rpartition("/")[2] in present:
                savepoints.append(savepoint)
    return sorted(savepoints, key=lambda savepoint: savepoint.made)


def needed_by(rest: Rest, folder: SavepointFolder, savepoint: LeftSavepoint) -> str | None:
    """Why a savepoint must stay; None if it can be removed.

    A job that has failed before its first checkpoint has no other state, unless it goes on as
    another job.
    """
    for journal in unfinished(folder):
        if savepoint.job in (journal.job, journal.successor):
            return f"a move of job {journal.job} has not finished"
    states = rest.jobs()
    completed = _completed_since(rest, savepoint.path, states)
    heirs = {*chain_of(savepoint.job), *completed}
    goes_on = any(states.get(job, FINISHED) not in ENDED for job in heirs)
    for job, has_completed in completed.items():
        if not has_completed and not (goes_on and states[job] in ENDED):
            return f"job {job} was started from it and has completed no checkpoint since"
    return None


def _completed_since(rest: Rest, path: str, states: Mapping[str, str]) -> dict[str, bool]:
    """Whether the jobs that were started from a savepoint have completed a checkpoint, by job.

    Savepoints do not count, because Flink does not restart a job from those that it made meanwhile.
    Jobs that have finished or were cancelled are left out.
    """
    completed = {}
    for job, state in states.items():
        if state in _OVER:
            continue
        with suppress_missing():  # it takes no checkpoints
            if same_place(path, restored_path(rest, job)):
                completed[job] = latest_checkpoints(rest, job).get("completed") is not None
    return completed


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
    return f"{RECORD_PREFIX}{path.rstrip('/').rpartition('/')[2]}{RECORD_SUFFIX}"


class LeftLock(NamedTuple):
    """A lock that a move has left behind."""

    job: str
    names: tuple[str, ...]  # names of its files
    needed: str | None  # reason why it must stay; None if it can be removed


def left_locks(rest: Rest, folder: SavepointFolder) -> list[LeftLock]:
    """Locks in a folder, by job; those of moves in progress are needed."""
    entries = folder.entries(PREFIX)
    jobs = dict.fromkeys(entry.name.removeprefix(PREFIX).partition(".")[0] for entry in entries)
    return [_left_lock(rest, folder, job, entries) for job in jobs]


def remove_lock(folder: SavepointFolder, lock: LeftLock) -> None:
    """Remove the files of a lock."""
    for name in lock.names:
        folder.delete(name)


def _left_lock(rest: Rest, folder: SavepointFolder, job: str, entries: list[FileEntry]) -> LeftLock:
    own = [entry for entry in entries if entry.name.startswith(f"{PREFIX}{job}.")]
    names = tuple(sorted((entry.name for entry in own), key=lock_number))
    age = min(entry.age for entry in own)
    journals = [read_journal(folder, name) for name in names if name.endswith(SUFFIX)]
    readable = [journal for journal in journals if journal is not None]
    if readable:
        return LeftLock(job, names, _need_of(rest, readable[-1], age))
    is_young = age < DEAD_SECONDS
    return LeftLock(job, names, f"a move of job {job} has just begun" if is_young else None)


def _need_of(rest: Rest, journal: Journal, age: float) -> str | None:
    """Why the lock of a move must stay; None if a copy runs, or the job has ended for good."""
    if is_held(journal, age):
        return f"job {journal.job} is being moved, by {journal.holder}"
    if not has_to_go_on(rest, journal):
        return None
    return (
        f"the move of job {journal.job} has not finished, and no copy of the job runs; finish it "
        f"with: {journal.resume_by or 'streamplace flink move JAR --resume'}"
    )


def has_to_go_on(rest: Rest, journal: Journal) -> bool:
    """Whether a move has to be resumed: no copy of its job runs, or the one that does stops."""
    states = chain_states(rest, journal.job)
    live = [job for job, state in states.items() if state not in ENDED]
    if SUSPENDED in states.values():  # whether it runs is not known
        return True
    if live:
        return any(_is_ending(rest, journal, job, states[job]) for job in live)
    last = next(reversed(states), "")
    if states and states[last] == FINISHED:
        return stopped_with(rest, last) is not None
    return not states or states[last] != "CANCELED" or journal.returns


def _is_ending(rest: Rest, journal: Journal, job: str, state: str) -> bool:
    """Whether a move is ending one of its jobs."""
    trigger = journal.trigger if job == journal.job else return_trigger(job)
    is_withdrawn = state == "CANCELLING" and journal.returns
    return is_withdrawn or stop_status(rest, job, trigger) == UNDER_WAY
