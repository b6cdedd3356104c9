"""The user's store: data that outlives a command, in one SQLite file on this machine.

A row is a document, the JSON text of a frozen type without other fields. Every step is one
transaction, which is on the disk when its block ends: a command that is killed leaves the state
before or after a step.

The row of a move or a watch names its holder, the process that writes it. While the holder runs, no
other command of this user continues the row; the claim of an ended process is void. Processes of
other machines with this folder are not visible, so a holder renews its rows, and counts as running
until its lease ends. As a last guard, Flink accepts each id of a job once.
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
"""Version of the tables and of the types of their rows, and older versions that are upgraded.

Every change of tables or types needs a new version.
"""
BUSY_SECONDS = 10.0
"""Maximum wait for another process that writes."""
LEASE_SECONDS, RENEWAL_SECONDS = 180.0, 30.0
"""Time for which a holder on another machine counts as running, and time between renewals."""
TABLES = ("moves", "programs", "watches", "rounds", "decisions", "rates")
_SCHEMA = "".join(
    f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, owner TEXT NOT NULL, document TEXT NOT NULL);"
    f"CREATE INDEX owner_of_{name} ON {name} (owner, id);"
    for name in TABLES
)
ADVICE = "a move may be unfinished: check that every job runs once, then move the file away"
DAMAGED = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
WHOLE = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")
"""Configuration of types of rows, which have no other fields and may have infinite rates."""
T = TypeVar("T")


class StoreError(FormatError):
    """The store cannot be read or written."""


class _NotUsable(sqlite3.DatabaseError):
    """The file has rows or a version that cannot be read."""


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
        """Rows by number, in order, of an owner or of all; only the ``last`` ones if given."""
        condition, values = _owned_by(owner)
        return self._select(table, condition, *values, -1 if last is None else last)

    def get(self, table: Table[T], number: int) -> T:
        """One row; the store is unusable if it is gone."""
        for row in self._select(table, "id = ?", number, 1).values():
            return row
        raise _NotUsable(f"row {number} of table {table.name} is gone")

    def _select(self, table: Table[T], condition: str, *values: str | int) -> dict[int, T]:
        """Rows that satisfy a condition, the last ones up to a limit.

        A damaged row makes the store unusable: without that row, a job could be started twice.
        """
        query = f"SELECT id, document FROM {table.name} WHERE {condition} ORDER BY id DESC LIMIT ?"
        rows = self.database.execute(query, values).fetchall()
        try:
            return {n: table.adapter.validate_json(text) for n, text in reversed(rows)}
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

    def forget(self, table: Table[Any], max_rows: int, owner: str | None = None) -> None:
        """Delete all but the last rows, of an owner or of all."""
        condition, values = _owned_by(owner)
        last = f"SELECT id FROM {table.name} WHERE {condition} ORDER BY id DESC LIMIT 1 OFFSET ?"
        query = f"DELETE FROM {table.name} WHERE {condition} AND id <= ({last})"
        self.database.execute(query, [*values, *values, max_rows])


def _owned_by(owner: str | None) -> tuple[str, list[str]]:
    """Condition for the rows of an owner, or for all rows, with its values."""
    return ("TRUE", []) if owner is None else ("owner = ?", [owner])


def _text(table: Table[T], row: T) -> str:
    return table.adapter.dump_json(row).decode()


_PENDING: dict[Path, list[Callable[[Rows], None]]] = {}
"""Store → last steps of claims that could not be written, such as on a full disk.

The next transaction writes them. Otherwise, a running process could not claim its row again.
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
        """Read rows, see `Rows.all`; none if the file is missing."""
        if not self.path.exists():
            return {}
        with self._opened("BEGIN") as rows:
            if _version(rows.database) not in UPGRADED:
                return rows.all(table, owner, last) if _has_tables(rows.database) else {}
        with self.transaction() as rows:
            return rows.all(table, owner, last)

    @contextmanager
    def transaction(self) -> Iterator[Rows]:
        """One exclusive transaction, which is on the disk when the block ends."""
        pending = [*_PENDING.get(self.path, ())]
        with self._opened("BEGIN IMMEDIATE") as rows:
            if _version(rows.database) in UPGRADED:
                _upgrade(rows.database)
            if not _has_tables(rows.database):
                for statement in _SCHEMA.split(";"):
                    rows.database.execute(statement)
                rows.database.execute(f"PRAGMA user_version = {VERSION}")
            for step in pending:
                step(rows)
            yield rows
        for step in pending:
            with suppress(ValueError):  # another thread has written it, too
                _PENDING[self.path].remove(step)

    @contextmanager
    def _opened(self, begin: str) -> Iterator[Rows]:
        """Open the file for a block; raise StoreError for errors of SQLite."""
        try:
            if begin != "BEGIN":
                self.path.parent.mkdir(parents=True, exist_ok=True)
                # The file contains arguments of jobs, which may be secret.
                os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
            connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
            with closing(connection) as database:
                database.execute("PRAGMA synchronous = FULL")  # also after a loss of power
                database.execute(begin)
                yield Rows(database)  # closing the file undoes a failed block
                database.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            code = getattr(error, "sqlite_errorcode", -1) & 0xFF
            is_damaged = isinstance(error, _NotUsable) or code in DAMAGED
            reason = error.strerror if isinstance(error, OSError) else error
            advice = f"; {ADVICE}" if is_damaged else ""
            raise StoreError(f"{spot(self.path)} cannot be used: {reason}{advice}") from None


def _version(database: sqlite3.Connection) -> int:
    return int(database.execute("PRAGMA user_version").fetchone()[0])


def _upgrade(database: sqlite3.Connection) -> None:
    """Upgrade the tables to this version; older versions had changes of specifications here."""
    if row := database.execute("SELECT owner FROM patches").fetchone():
        raise _NotUsable(
            f"another version of streamplace has begun a change of {row[0]}; finish it with that "
            "version"
        )
    database.execute("DROP TABLE patches")
    database.execute(f"PRAGMA user_version = {VERSION}")


def _has_tables(database: sqlite3.Connection) -> bool:
    """Whether a file is not new; raise _NotUsable if another version or program wrote it."""
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

    host: str  # name of its machine
    boot: str = ""  # boot id of its machine, as several may have one name; empty if unknown
    process: int  # id
    started: int  # start time in the kernel's clock ticks; 0 if unknown

    @classmethod
    def current(cls) -> "Holder":
        """Return the calling process."""
        process = os.getpid()
        return cls(**_machine(), process=process, started=_started(process) or 0)

    @property
    def is_here(self) -> bool:
        """Whether it is a process of this machine."""
        return {"host": self.host, "boot": self.boot} == _machine()

    @property
    def runs(self) -> bool:
        """Whether it runs on this machine, and is not another process with its id."""
        return self.is_here and _started(self.process) == self.started

    def __str__(self) -> str:
        return f"process {self.process}{'' if self.is_here else f' of {shown(self.host)}'}"


class Claimed(BaseModel):
    """A row that one process at a time carries on."""

    model_config = WHOLE

    holder: Holder | None = None  # None if its command has released it
    renewed: str = ""  # time of the last renewal by its holder

    @property
    def is_held(self) -> bool:
        """Whether its holder still runs, or may run on another machine."""
        if self.holder is None or self.holder.is_here:
            return self.holder is not None and self.holder.runs
        return bool(self.renewed) and seconds_since(self.renewed) < LEASE_SECONDS


C = TypeVar("C", bound=Claimed)


def with_holder(row: C) -> C:
    """Row with this process as its holder."""
    return row.model_copy(update={"holder": Holder.current(), "renewed": utc_now()})


def keep_renewed(claim: object, renew: Callable[[], None]) -> None:
    """Call a function that renews a claim, as long as the claim exists."""
    reference = ref(claim)

    def repeat() -> None:
        while True:
            sleep(RENEWAL_SECONDS)
            if reference() is None:
                return
            with suppress(Exception):  # if this thread ended, others could take the claim over
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
    """The claim of this process on a row of a table."""

    table: Table[C]
    owner: str  # of the row
    journal: C  # the row

    def __post_init__(self) -> None:
        keep_renewed(self, renewal(self.table))

    def save(self, **changes: object) -> None:
        """Write the next step; raise TakenOver if another process has the row, or deleted it."""
        journal = self.journal.model_copy(update={"renewed": utc_now(), **changes})
        with Store.usual().transaction() as rows:
            if not (numbers := self._own(rows)):
                raise TakenOver("another command has finished it meanwhile, so this one ends")
            for number in numbers:
                rows.put(self.table, number, journal)
        self.journal = journal

    def leave(self) -> None:
        """Release the row for the next command, unless it was deleted."""
        self._close(self.journal.model_copy(update={"holder": None}))

    def end(self) -> None:
        """Delete the row."""
        self._close(None)

    def _close(self, last: C | None) -> None:
        """Write the last version of the row, or delete it, now or in the next transaction."""
        store = Store.usual()

        def step(rows: Rows) -> None:
            with suppress(TakenOver):
                for number in self._own(rows):
                    if last is None:
                        rows.delete(self.table, self.owner)
                    else:
                        rows.put(self.table, number, last)

        try:
            with store.transaction() as rows:
                step(rows)
        except StoreError:
            _PENDING.setdefault(store.path, []).append(step)

    def _own(self, rows: Rows) -> list[int]:
        """Number of the row, in a list that is empty if it was deleted."""
        owned = rows.all(self.table, self.owner)
        for row in owned.values():
            if row.holder not in (None, self.journal.holder):
                raise TakenOver(f"{row.holder} has gone on with it meanwhile, so this one ends")
        return [*owned]


def claim_row(table: Table[C], owner: str, refuse_held: Callable[[C], None]) -> C | None:
    """Claim the row of an owner; None if there is none, an error if a process carries it on."""
    with Store.usual().transaction() as rows:
        for number, stored in rows.all(table, owner).items():
            refuse_held(stored)
            journal = with_holder(stored)
            rows.put(table, number, journal)
            return journal
    return None


def _machine() -> dict[str, str]:
    """Name and boot id of this machine."""
    boot = ""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return {"host": socket.gethostname(), "boot": boot}


def _started(process: int) -> int | None:
    """Start time of a process here in clock ticks; 0 if unknown, None if it has ended."""
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
    """Seconds since a time of a row, by the system clock; at least 0."""
    moment = datetime.fromisoformat(at)
    return max(0.0, (datetime.now(moment.tzinfo) - moment).total_seconds())
