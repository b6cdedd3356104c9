"""Journal of a move: its parameters, stored beside the savepoints, so that it can be resumed.

The journal is also the lock of the job: the command that creates it moves the job. It is readable
from every machine, and its holder renews it. A lock that is no longer renewed belongs to a command
that has ended.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from streamplace.engines.flink.move.folder import SavepointFolder
from streamplace.engines.flink.move.holder import Holder
from streamplace.engines.flink.rest.client import FlinkError
from streamplace.errors import SettingError, StreamplaceError
from streamplace.model.messages import listed, quoted

PREFIX = "streamplace-move-"
SUFFIX, BEAT = ".json", ".alive"
BEAT_SECONDS, DEAD_SECONDS = 5.0, 30.0
"""Interval of a lock's renewals, and time without them after which its holder counts as ended."""

_under_way: set[str] = set()
"""Moves of this process that have not ended, by the ids of their stop requests."""


class Journal(BaseModel):
    """Parameters and progress of a move."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = 1
    job: str  # the job that is moved
    trigger: str  # id of the request that stops it
    successor: str  # id of the job that is started in its place
    # Operator → device of each of its subtasks, now and afterwards.
    before: dict[str, list[str]]
    after: dict[str, list[str]]
    settings: dict[str, str] = {}  # settings of the running job that its successors get
    allow_non_restored: bool = False
    # Savepoint or checkpoint that the next job of the move starts from, once known.
    savepoint: str | None = None
    # Whether the move has failed, so that the job returns to its previous devices.
    returns: bool = False
    name: str = ""  # name of the job
    # Folder with a folder of checkpoints for each job; None if unknown.
    checkpoints: str | None = None
    # The job's jar on the machine of the move, and its SHA-256.
    jar: str = ""
    digest: str = ""
    resume_by: str = ""  # the command that finishes the move
    began: datetime
    holder: Holder


class MoveUnderWay(StreamplaceError):
    """Another command moves the job."""


@dataclass(slots=True)
class MoveLock:
    """The lock of a job, held by this process; its files contain the journal of the move."""

    folder: SavepointFolder
    journal: Journal
    # Files of the lock: one per job id that the move uses.
    names: list[str] = field(default_factory=list)

    def save(self, journal: Journal) -> None:
        """Write the current state of the move."""
        self.journal = journal
        for name in self.names:
            self.folder.write(name, journal.model_dump_json())

    def cover(self, job: str) -> None:
        """Lock another job for the same move."""
        name = file_name(job, 1)
        is_new = self.folder.create(name, self.journal.model_dump_json())
        if is_new or ((other := read_journal(self.folder, name)) and other.job == self.journal.job):
            self.names.append(name)

    def release(self) -> None:
        """Release the lock at the end of the move."""
        for name in reversed(self.names):
            self.folder.delete(_beat(name))
            self.folder.delete(name)


@contextmanager
def renewing(lock: MoveLock) -> Iterator[None]:
    """Renew a lock while the block runs."""
    over = threading.Event()

    def renew() -> None:
        while not over.wait(BEAT_SECONDS):
            for name in [*lock.names]:
                with suppress(FlinkError):  # job ids protect the job even without the lock
                    lock.folder.write(_beat(name), "")

    thread = threading.Thread(target=renew, daemon=True)
    thread.start()
    _under_way.add(lock.journal.trigger)
    try:
        yield
    finally:
        _under_way.discard(lock.journal.trigger)
        over.set()
        thread.join()


@dataclass(frozen=True, slots=True)
class JobLocks:
    """The locks of a job, from a listing of their folder."""

    last: int = 0  # number of the latest lock since the job was last unlocked; 0 if it is unlocked
    age: float = 0.0  # seconds since its creation or renewal
    journal: Journal | None = None  # its journal; None if that cannot be read, or is being written

    @classmethod
    def listed(cls, folder: SavepointFolder, job: str) -> "JobLocks":
        """List the locks of a job."""
        entries = folder.entries(f"{PREFIX}{job}.")
        last = max((lock_number(entry.name) for entry in entries), default=0)
        if not last:
            return cls()
        name = file_name(job, last)
        own = (name, _beat(name))
        age = min((entry.age for entry in entries if entry.name in own), default=0.0)
        return cls(last, age, read_journal(folder, name))

    def refuse_holder(self, job: str) -> None:
        """Raise MoveUnderWay if the job is locked by a command that is still running."""
        if not self.last:
            return
        if self.journal is None:
            if self.age < DEAD_SECONDS:  # it is being written
                raise MoveUnderWay(f"another command has just begun to move job {job}")
            return
        if is_held(self.journal, self.age):
            raise MoveUnderWay(
                f"job {job} is being moved, by {self.journal.holder}, since "
                f"{self.journal.began:%Y-%m-%d %H:%M:%S} UTC; wait until that has ended"
            )


def is_held(journal: Journal, age: float) -> bool:
    """Whether the command that holds a lock is still running.

    The age is the time since the lock was created or renewed.
    """
    holder = journal.holder
    if holder == Holder.current():
        return journal.trigger in _under_way
    return holder.runs if holder.is_here else age < DEAD_SECONDS


def acquire(folder: SavepointFolder, journal: Journal, locks: JobLocks) -> MoveLock:
    """Lock a job.

    A lock whose holder has ended is replaced by one with the next number; this process keeps its
    own. A lock that another command has created since the locks were listed counts, too. Raises
    MoveUnderWay when another command holds the lock.
    """
    locks.refuse_holder(journal.job)
    older = [file_name(journal.job, number) for number in range(1, locks.last + 1)]
    if locks.journal is not None and locks.journal.holder == journal.holder:
        if locks.journal == journal:  # the file of a lock is as old as its move, and remains so
            folder.write(_beat(older[-1]), "")
        else:
            folder.write(older[-1], journal.model_dump_json())
        return MoveLock(folder, journal, older)
    name = file_name(journal.job, locks.last + 1)
    if not folder.create(name, journal.model_dump_json()):
        other = read_journal(folder, name)  # its own, if the answer to an earlier request was lost
        if other is None or (other.trigger, other.holder) != (journal.trigger, journal.holder):
            raise MoveUnderWay(f"another command has just begun to move job {journal.job}")
    return MoveLock(folder, journal, [*older, name])


def read_journal(folder: SavepointFolder, name: str) -> Journal | None:
    """Journal in a file; None if there is no readable one."""
    try:
        return Journal.model_validate_json(folder.read(name))
    except ValidationError:
        return None


def unfinished(folder: SavepointFolder) -> list[Journal]:
    """Journals of moves that have not finished, whether in progress or interrupted."""
    found = (entry.name for entry in folder.entries(PREFIX) if entry.name.endswith(SUFFIX))
    names = sorted(found, key=lock_number)
    journals = [journal for name in names if (journal := read_journal(folder, name)) is not None]
    latest = {journal.job: journal for journal in journals}
    return [*latest.values()]


def broken_off(folder: SavepointFolder, job: str | None) -> Journal:
    """Journal of the only unfinished move, or of the unfinished move of a job.

    Raises SettingError when there is none, or more than one.
    """
    journals = unfinished(folder)
    if job is not None:  # it may have been moved, and moved again
        own = [journal for journal in journals if journal.job == job]
        journals = own or [journal for journal in journals if journal.successor == job]
    if not journals:
        of = "" if job is None else f" of job {quoted(job)}"
        raise SettingError(
            f"{quoted(folder.uri)} records no interrupted move{of}; drop --resume to start one"
        )
    if len(journals) > 1:
        names = listed(tuple(journal.job for journal in journals))
        raise SettingError(
            f"moves of {len(journals)} jobs were interrupted: {names}; choose one with --job"
        )
    return journals[0]


def devices_in(places: Mapping[str, Iterable[str]]) -> set[str]:
    """Devices of a placement."""
    return {device for vector in places.values() for device in vector}


def file_name(job: str, number: int) -> str:
    """Name of a lock's file."""
    return f"{PREFIX}{job}.{number}{SUFFIX}"


def lock_number(name: str) -> int:
    """Number of a lock, from the name of a file; 0 if the file is no lock."""
    text = name.removesuffix(SUFFIX).rpartition(".")[2]
    return int(text) if name.endswith(SUFFIX) and text.isdecimal() else 0


def now() -> datetime:
    """Current time, in whole seconds."""
    return datetime.now(UTC).replace(microsecond=0)


def _beat(name: str) -> str:
    """Name of the file that renews a lock."""
    return name.removesuffix(SUFFIX) + BEAT
