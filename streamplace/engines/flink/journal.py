"""The journal of a move: what it intends, kept beside the savepoints, so that it can be resumed.

The journal is also the lock of the job: whoever creates it moves the job. It can be read from every
machine, and its holder renews it; one that is not renewed any more belongs to a command that ended.
"""

import getpass
import hashlib
import os
import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from streamplace.engines.flink.folder import FileEntry, SavepointFolder
from streamplace.engines.flink.rest import FlinkError
from streamplace.errors import StreamplaceError
from streamplace.model.messages import shown

PREFIX = "streamplace-move-"
SUFFIX, BEAT = ".json", ".alive"
BEAT_SECONDS, DEAD_SECONDS = 5.0, 30.0
"""How often the holder of a lock renews it, and after how long without it counts as ended."""

_under_way: set[str] = set()
"""Moves of this process that have not ended, by the ids of their stops."""


class Holder(BaseModel):
    """The command that holds a lock.

    Attributes
    ----------
    host
        Its machine, with the namespace of its process ids.
    started
        When its process started, in the kernel's clock ticks; 0 where that is not known.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str
    process: int
    started: int
    user: str

    @classmethod
    def current(cls) -> "Holder":
        """Return the process that calls."""
        process = os.getpid()
        try:
            user = getpass.getuser()
        except (OSError, KeyError):  # an id without a name
            user = str(os.getuid())
        return cls(host=_host(), process=process, started=_started(process) or 0, user=user)

    @property
    def is_here(self) -> bool:
        """Whether its process would be one of this machine."""
        return self.host == _host()

    @property
    def runs(self) -> bool:
        """Whether its process runs on this machine."""
        return self.is_here and Holder.may_run(self.mark)

    @property
    def mark(self) -> str:
        """Text without spaces by which other processes of its machine recognise it."""
        return f"{_digest(self.host)}.{self.process}.{self.started}"

    @staticmethod
    def may_run(mark: str) -> bool:
        """Whether the process of a mark may run; one of another machine may."""
        host, _, rest = mark.partition(".")
        process, _, started = rest.partition(".")
        if host != _digest(_host()) or not (process.isdecimal() and started.isdecimal()):
            return True
        return _started(int(process)) == int(started)

    def __str__(self) -> str:
        host = self.host.partition(" ")[0]
        return f"process {self.process} of {shown(self.user)} on {shown(host)}"


class Journal(BaseModel):
    """What a move intends.

    Attributes
    ----------
    job
        The job that is moved.
    trigger
        Id of the request that stops it.
    successor
        Id of the job that is started in its place.
    before, after
        Operator → the device of each of its subtasks, now and afterwards.
    settings
        Settings of the running job that the next ones get.
    savepoint
        What the job was stopped with, once that is known.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = 1
    job: str
    trigger: str
    successor: str
    before: dict[str, list[str]]
    after: dict[str, list[str]]
    settings: dict[str, str] = {}
    allow_non_restored: bool = False
    savepoint: str | None = None
    began: datetime
    holder: Holder


class MoveUnderWay(StreamplaceError):
    """Somebody else moves the job."""


@dataclass(slots=True)
class MoveLock:
    """The lock of a job while this process holds it; its files are the journal of the move.

    Attributes
    ----------
    names
        Files of the lock: one per job id that the move uses.
    """

    folder: SavepointFolder
    journal: Journal
    names: list[str] = field(default_factory=list)

    def save(self, journal: Journal) -> None:
        """Write what the move knows by now."""
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
        """Give the lock up: the move is over."""
        for name in reversed(self.names):
            self.folder.delete(name.removesuffix(SUFFIX) + BEAT)
            self.folder.delete(name)


@contextmanager
def renewing(lock: MoveLock) -> Iterator[None]:
    """Renew a lock while the block runs."""
    over = threading.Event()

    def renew() -> None:
        while not over.wait(BEAT_SECONDS):
            for name in [*lock.names]:
                with suppress(FlinkError):  # its job ids hold what is not renewed
                    lock.folder.write(name.removesuffix(SUFFIX) + BEAT, "")

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
    """The locks of a job, as its folder was when it was listed.

    Attributes
    ----------
    last
        Number of the latest since the job was last free; 0 where it is.
    age
        Seconds since that was made or renewed.
    journal
        What it says; None where it cannot be read, or is being written.
    """

    last: int = 0
    age: float = 0.0
    journal: Journal | None = None

    @classmethod
    def listed(cls, folder: SavepointFolder, job: str) -> "JobLocks":
        """List the locks of a job."""
        entries = folder.entries(f"{PREFIX}{job}.")
        last = max(_numbers(entries, job), default=0)
        if not last:
            return cls()
        name = file_name(job, last)
        own = (name, name.removesuffix(SUFFIX) + BEAT)
        age = min((entry.age for entry in entries if entry.name in own), default=0.0)
        return cls(last, age, read_journal(folder, name))

    def refuse_holder(self, job: str) -> None:
        """Raise MoveUnderWay where the job is locked by a command that still runs."""
        if not self.last:
            return
        if self.journal is None:
            if self.age < DEAD_SECONDS:  # it is being written
                raise MoveUnderWay(f"another command has just begun to move job {job}")
            return
        holder = self.journal.holder
        if holder == Holder.current():
            is_alive = self.journal.trigger in _under_way
        else:
            is_alive = holder.runs if holder.is_here else self.age < DEAD_SECONDS
        if is_alive:
            raise MoveUnderWay(
                f"job {job} is being moved, by {holder}, since "
                f"{self.journal.began:%Y-%m-%d %H:%M:%S} UTC; wait until that has ended"
            )


def acquire(folder: SavepointFolder, journal: Journal, locks: JobLocks) -> MoveLock:
    """Lock a job.

    A lock whose holder has ended is replaced by one of the next number.

    Parameters
    ----------
    locks
        Those that the job has; a lock that somebody has made since then counts, too.

    Raises
    ------
    MoveUnderWay
        When somebody else has the lock.
    """
    locks.refuse_holder(journal.job)
    name = file_name(journal.job, locks.last + 1)
    if not folder.create(name, journal.model_dump_json()):
        other = read_journal(folder, name)  # its own, if the answer to a first request was lost
        if other is None or (other.trigger, other.holder) != (journal.trigger, journal.holder):
            raise MoveUnderWay(f"another command has just begun to move job {journal.job}")
    older = [file_name(journal.job, number) for number in range(1, locks.last + 1)]
    return MoveLock(folder, journal, [*older, name])


def read_journal(folder: SavepointFolder, name: str) -> Journal | None:
    """Journal in a file; None where there is none that can be read."""
    try:
        return Journal.model_validate_json(folder.read(name))
    except ValidationError:
        return None


def unfinished(folder: SavepointFolder) -> list[Journal]:
    """Journals of moves that have not ended, be they under way or broken off."""
    names = [entry.name for entry in folder.entries(PREFIX) if entry.name.endswith(SUFFIX)]
    journals = [journal for name in names if (journal := read_journal(folder, name)) is not None]
    latest = {journal.job: journal for journal in journals}
    return [*latest.values()]


def file_name(job: str, number: int) -> str:
    """Name of a lock's file."""
    return f"{PREFIX}{job}.{number}{SUFFIX}"


def now() -> datetime:
    """The time, to seconds."""
    return datetime.now(UTC).replace(microsecond=0)


def _numbers(entries: Iterable[FileEntry], job: str) -> Iterator[int]:
    """Numbers of the locks that a job has had since the last one was given up."""
    for entry in entries:
        text = entry.name.removeprefix(f"{PREFIX}{job}.").removesuffix(SUFFIX)
        if entry.name.endswith(SUFFIX) and text.isdecimal():
            yield int(text)


def _host() -> str:
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        namespace = ""
    return f"{socket.gethostname()} {namespace}".strip()


def _digest(host: str) -> str:
    return hashlib.sha256(host.encode()).hexdigest()[:12]


def _started(process: int) -> int | None:
    """When a process of this machine started; None where there is no such process."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        return int(text.rpartition(")")[2].split()[19])
    except FileNotFoundError:
        if Path("/proc/self").exists():
            return None
    except (OSError, IndexError, ValueError):
        return 0
    with suppress(ProcessLookupError):
        os.kill(process, 0)
        return 0
    return None
