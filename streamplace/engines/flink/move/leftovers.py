"""Leftovers of moves beside savepoints: locks of commands that have ended, and their renewals."""

from typing import NamedTuple

from streamplace.engines.flink.move.folder import FileEntry, SavepointFolder
from streamplace.engines.flink.move.journal import (
    DEAD_SECONDS,
    PREFIX,
    SUFFIX,
    Journal,
    is_held,
    read_journal,
)
from streamplace.engines.flink.move.state import stopped_with
from streamplace.engines.flink.move.stopping import stop_status
from streamplace.engines.flink.program.submission import chain_states
from streamplace.engines.flink.rest.client import ENDED, FINISHED, Rest
from streamplace.engines.flink.rest.job_ids import return_trigger

UNDER_WAY = "IN_PROGRESS"
"""Status of a stop request that Flink is still carrying out."""


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
    names, age = tuple(entry.name for entry in own), min(entry.age for entry in own)
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
    """Whether no copy of a job runs, or the one that runs is being ended, so that others may."""
    states = chain_states(rest, journal.job)
    live = [job for job, state in states.items() if state not in ENDED]
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
