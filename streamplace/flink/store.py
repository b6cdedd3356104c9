"""The user's store: data that outlives a command, in one SQLite file on this machine.

A row is a document, the JSON text of a frozen type without other fields. Every step is one
transaction, on the disk when its block ends: a command that is killed at any line leaves the step
before or the step after.

A row that a process carries on names that process, its holder. While it runs, no other command of
this user carries the row on; the claim of a process that has ended is void. Whether a process of
another machine with this folder runs cannot be seen, so a holder renews its rows, and counts as
running until its lease ends. Flink accepts each id of a job once.
"""

import os
import socket
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Any, Generic, TypeVar
from weakref import ref

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from streamplace.errors import FormatError, StreamplaceError
from streamplace.io.files import spot, user_state
from streamplace.model.message_text import shown

FILE = "store.sqlite"
VERSION, UPGRADED = 6, (4, 5)
"""Version of the tables and of the types of their rows, and those that are brought to it.

Every change of them needs a new one.
"""
BUSY_SECONDS = 10.0
"""Seconds to wait for another process that writes."""
LEASE_SECONDS, RENEWAL_SECONDS = 180.0, 30.0
"""Time for which a holder on another machine counts as running, and between two renewals."""
TABLES = ("moves", "programs", "watches", "rounds", "decisions", "rates")
_SCHEMA = "".join(
    f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, owner TEXT NOT NULL, document TEXT NOT NULL);"
    f"CREATE INDEX owner_of_{name} ON {name} (owner, id);"
    for name in TABLES
)
ADVICE = "a move may be unfinished: check that every job runs once, then move the file away"
DAMAGED = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
WHOLE = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")
"""Rows have no other fields, and may have infinite rates."""
T = TypeVar("T")


class StoreError(FormatError):
    """The store cannot be read or written."""


class _NotUsable(sqlite3.DatabaseError):
    """The file has rows, or a version, that cannot be read."""


@dataclass(frozen=True, slots=True)
class Table(Generic[T]):
    """A table with the adapter of its rows, which belong to owners such as a job."""

    name: str
    adapter: "TypeAdapter[T]"


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of the store, inside one transaction."""

    database: sqlite3.Connection

    def all(
        self, table: Table[T], owner: str | None = None, last: int | None = None
    ) -> dict[int, T]:
        """Rows by number, in order: all, or an owner's, or the last ones."""
        which, values = ("TRUE", []) if owner is None else ("owner = ?", [owner])
        return self._found(table, which, *values, -1 if last is None else last)

    def get(self, table: Table[T], number: int) -> T:
        """One row; the store is unusable if it is gone."""
        for row in self._found(table, "id = ?", number, 1).values():
            return row
        raise _NotUsable(f"row {number} of table {table.name} is gone")

    def _found(self, table: Table[T], which: str, *values: str | int) -> dict[int, T]:
        """Rows of a condition; one that is damaged makes the store unusable.

        Without it, a job could be started twice.
        """
        query = f"SELECT id, document FROM {table.name} WHERE {which} ORDER BY id DESC LIMIT ?"
        found = self.database.execute(query, values).fetchall()
        try:
            return {n: table.adapter.validate_json(text) for n, text in reversed(found)}
        except ValidationError:
            raise _NotUsable(f"table {table.name} has a row that cannot be read") from None

    def add(self, table: Table[T], owner: str, row: T) -> int:
        """Append a row; return its number."""
        query = f"INSERT INTO {table.name} (owner, document) VALUES (?, ?)"
        return int(self.database.execute(query, (owner, _text(table, row))).lastrowid or 0)

    def put(self, table: Table[T], number: int, row: T) -> None:
        """Replace a row; do nothing if it was deleted."""
        query = f"UPDATE {table.name} SET document = ? WHERE id = ?"
        self.database.execute(query, (_text(table, row), number))

    def delete(self, table: Table[Any], owner: str) -> None:
        """Delete the rows of an owner."""
        self.database.execute(f"DELETE FROM {table.name} WHERE owner = ?", (owner,))

    def forget(self, table: Table[Any], most: int, owner: str | None = None) -> None:
        """Delete all but the last rows, of an owner or of all."""
        which, values = ("TRUE", []) if owner is None else ("owner = ?", [owner])
        last = f"SELECT id FROM {table.name} WHERE {which} ORDER BY id DESC LIMIT 1 OFFSET ?"
        query = f"DELETE FROM {table.name} WHERE {which} AND id <= ({last})"
        self.database.execute(query, [*values, *values, most])


def _text(table: Table[T], row: T) -> str:
    return table.adapter.dump_json(row).decode()


_LEFT: dict[Path, list[Callable[[Rows], None]]] = {}
"""Store → last steps of claims that could not be written, as on a full disk, and are made up for.

Else the process that holds the row, and goes on, could not claim it again.
"""


@dataclass(frozen=True, slots=True)
class Store:
    """The store of this user; its file is created with the first row."""

    path: Path

    @classmethod
    def usual(cls) -> "Store":
        """Return the store in the user's state folder."""
        return cls(user_state() / FILE)

    def rows(
        self, table: Table[T], owner: str | None = None, last: int | None = None
    ) -> dict[int, T]:
        """Read rows, see `Rows.all`; there are none if the file is missing."""
        if not self.path.exists():
            return {}
        with self._opened("BEGIN") as rows:
            if _version(rows.database) not in UPGRADED:
                return rows.all(table, owner, last) if _has_tables(rows.database) else {}
        with self.transaction() as rows:
            return rows.all(table, owner, last)

    @contextmanager
    def transaction(self) -> Iterator[Rows]:
        """One transaction, alone and on the disk when the block ends."""
        left = [*_LEFT.get(self.path, ())]
        with self._opened("BEGIN IMMEDIATE") as rows:
            if _version(rows.database) in UPGRADED:
                _upgrade(rows.database)
            if not _has_tables(rows.database):
                for statement in _SCHEMA.split(";"):
                    rows.database.execute(statement)
                rows.database.execute(f"PRAGMA user_version = {VERSION}")
            for step in left:
                step(rows)
            yield rows
        for step in left:
            with suppress(ValueError):  # another thread has written it, too
                _LEFT[self.path].remove(step)

    @contextmanager
    def _opened(self, begin: str) -> Iterator[Rows]:
        """Open the file for a block; raise StoreError for errors of SQLite."""
        try:
            if begin != "BEGIN":
                self.path.parent.mkdir(parents=True, exist_ok=True)
                # It has arguments of jobs, which may be secret.
                os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
            connected = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
            with closing(connected) as database:
                database.execute("PRAGMA synchronous = FULL")  # also after a loss of power
                database.execute(begin)
                yield Rows(database)  # closing the file undoes a failed block
                database.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            raise self._unusable(error) from None

    def _unusable(self, error: sqlite3.Error | OSError) -> StoreError:
        """Error with what to do about it; the file may have an unfinished move, so it stays."""
        is_damaged = isinstance(error, _NotUsable) or (
            getattr(error, "sqlite_errorcode", -1) & 0xFF in DAMAGED
        )
        reason = error.strerror if isinstance(error, OSError) else error
        return StoreError(
            f"{spot(self.path)} cannot be used: {reason}{f'; {ADVICE}' if is_damaged else ''}"
        )


def _version(database: sqlite3.Connection) -> int:
    return int(database.execute("PRAGMA user_version").fetchone()[0])


def _upgrade(database: sqlite3.Connection) -> None:
    """Bring the tables to this version; those before had changes of specifications here."""
    if left := database.execute("SELECT owner FROM patches").fetchone():
        raise _NotUsable(
            f"another version of streamplace has begun a change of {left[0]}; finish it with that"
        )
    database.execute("DROP TABLE patches")
    database.execute(f"PRAGMA user_version = {VERSION}")


def _has_tables(database: sqlite3.Connection) -> bool:
    """Whether a file is not new; raise _NotUsable for another version's, and for another file."""
    version = _version(database)
    is_new = not version and not database.execute("SELECT 1 FROM sqlite_master").fetchone()
    if version != VERSION and not is_new:
        raise _NotUsable(
            f"another version of streamplace wrote it (format {version}, not {VERSION})"
        )
    return not is_new


class Holder(BaseModel):
    """The process that carries on a move or a watch."""

    model_config = WHOLE

    host: str  # its machine
    boot: str = ""  # start of that machine, as others may have its name; empty if unknown
    process: int
    started: int  # start time of its process, in the kernel's clock ticks; 0 if unknown

    @classmethod
    def current(cls) -> "Holder":
        """Return the calling process."""
        process = os.getpid()
        return cls(**_machine(), process=process, started=_started(process) or 0)

    @property
    def is_here(self) -> bool:
        """Whether its process is one of this machine."""
        return {"host": self.host, "boot": self.boot} == _machine()

    @property
    def runs(self) -> bool:
        """Whether its process runs on this machine; another one may have got its id since."""
        return self.is_here and _started(self.process) == self.started

    def __str__(self) -> str:
        return f"process {self.process}{'' if self.is_here else f' of {shown(self.host)}'}"


class Claimed(BaseModel):
    """A row that one process at a time carries on."""

    model_config = WHOLE

    holder: Holder | None = None  # None if its command has left it
    renewed: str = ""  # when its holder last said that it runs

    @property
    def is_held(self) -> bool:
        """Whether the process that carries it on still runs, or may do so on another machine."""
        if self.holder is None or self.holder.is_here:
            return self.holder is not None and self.holder.runs
        return bool(self.renewed) and seconds_since(self.renewed) < LEASE_SECONDS


C = TypeVar("C", bound=Claimed)


def held(row: C) -> C:
    """Row that this process carries on from now on."""
    return row.model_copy(update={"holder": Holder.current(), "renewed": utc_now()})


def keep_renewed(claim: object, renew: Callable[[], None]) -> None:
    """Call a function that renews a claim, as long as that lives."""
    alive = ref(claim)

    def repeat() -> None:
        while True:
            sleep(RENEWAL_SECONDS)
            if alive() is None:
                return
            with suppress(StreamplaceError):
                renew()

    Thread(target=repeat, daemon=True).start()


def renewal(table: Table[C]) -> Callable[[], None]:
    """Function that renews the rows of a table that this process holds."""
    store, process = Store.usual(), Holder.current()

    def renew() -> None:
        with store.transaction() as rows:
            for number, row in rows.all(table).items():
                if row.holder == process:
                    rows.put(table, number, row.model_copy(update={"renewed": utc_now()}))

    return renew


class TakenOver(StreamplaceError):
    """Another command has taken over this one's row."""


@dataclass(slots=True, weakref_slot=True)
class Claim(Generic[C]):
    """The claim of this process on a row of a table, its journal."""

    table: Table[C]
    owner: str  # of the row
    journal: C

    def __post_init__(self) -> None:
        keep_renewed(self, renewal(self.table))

    def save(self, **changes: object) -> None:
        """Write the next step; raise TakenOver if the row is another's, or was deleted."""
        journal = self.journal.model_copy(update={"renewed": utc_now(), **changes})
        with Store.usual().transaction() as rows:
            if not (numbers := self._own(rows)):
                raise TakenOver("another command has finished it meanwhile, so this one ends")
            for number in numbers:
                rows.put(self.table, number, journal)
        self.journal = journal

    def leave(self) -> None:
        """Leave the row, unless it was deleted, to the next command."""
        free = self.journal.model_copy(update={"holder": None})
        self._close(lambda rows, number: rows.put(self.table, number, free))

    def end(self) -> None:
        """Delete the row."""
        self._close(lambda rows, _: rows.delete(self.table, self.owner))

    def _close(self, act: Callable[[Rows, int], None]) -> None:
        """Write the last step, now or with the next transaction; the claim ends in any case."""
        store = Store.usual()

        def step(rows: Rows) -> None:
            with suppress(TakenOver):
                for number in self._own(rows):
                    act(rows, number)

        try:
            with store.transaction() as rows:
                step(rows)
        except StoreError:
            _LEFT.setdefault(store.path, []).append(step)

    def _own(self, rows: Rows) -> list[int]:
        """Numbers of the row, if it was not deleted."""
        found = rows.all(self.table, self.owner)
        for row in found.values():
            if row.holder not in (None, self.journal.holder):
                raise TakenOver(f"{row.holder} has gone on with it meanwhile, so this one ends")
        return [*found]


def taken(table: Table[C], owner: str, refuse_held: Callable[[C], None]) -> C | None:
    """Claim the row of an owner; None if there is none, an error if a process carries it on."""
    with Store.usual().transaction() as rows:
        for number, stored in rows.all(table, owner).items():
            refuse_held(stored)
            journal = held(stored)
            rows.put(table, number, journal)
            return journal
    return None


def _machine() -> dict[str, str]:
    """Name of this machine, and the id of its start."""
    boot = ""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return {"host": socket.gethostname(), "boot": boot}


def _started(process: int) -> int | None:
    """Start time of a process of this machine, in clock ticks; None if there is no such process."""
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


def utc_now() -> str:
    """Time of a row, for display: UTC in ISO 8601 format."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def seconds_since(at: str) -> float:
    """Seconds since such a time, by the clock of the day; at least 0."""
    began = datetime.fromisoformat(at)
    return max(0.0, (datetime.now(began.tzinfo) - began).total_seconds())
