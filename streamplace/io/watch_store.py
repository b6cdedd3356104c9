"""Store of watches: rounds, decisions and outcomes, in one SQLite file in the user's state folder.

Every row is committed before the call returns. So a watch that is killed at any moment finds all
that it has begun. The file is on this machine: SQLite's write-ahead log needs shared memory, which
network file systems do not have.
"""

import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from streamplace.errors import FormatError, SettingError
from streamplace.io.caches import user_state
from streamplace.io.files import make_folder, spot
from streamplace.model.intervals import RateInterval
from streamplace.model.messages import quoted

FILE = "watch.sqlite"
VERSION = 2
BUSY_SECONDS = 10.0
"""Seconds to wait for another process that writes."""
_TABLES = """
CREATE TABLE IF NOT EXISTS watches (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, job TEXT NOT NULL, holder TEXT,
    since TEXT NOT NULL, seen REAL NOT NULL);
CREATE TABLE IF NOT EXISTS rounds (
    id INTEGER PRIMARY KEY, watch INTEGER NOT NULL, document TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS decisions (
    id INTEGER PRIMARY KEY, watch INTEGER NOT NULL, document TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS round_of ON rounds (watch, id);
CREATE INDEX IF NOT EXISTS decision_of ON decisions (watch, id);
"""
KEPT = 20_000
"""Rounds of a watch that are kept: two weeks of one per minute."""
_FORGET = """
DELETE FROM rounds WHERE watch = ? AND id <= (
    SELECT id FROM rounds WHERE watch = ? ORDER BY id DESC LIMIT 1 OFFSET ?)
"""

BEGUN, MOVED, RETURNED, FAILED, UNBEGUN = "begun", "moved", "returned", "failed", "not begun"
UNSAVED = "not saved"
"""States of a decision: written before anything is done, and the outcomes."""
UNREADABLE = (ValueError, TypeError, KeyError)
"""Errors of rows that are damaged, or have fields of another version."""


class StoreError(FormatError):
    """The store cannot be read or written."""


class JobWatched(SettingError):
    """Another command watches the job."""


@dataclass(frozen=True, slots=True)
class WatchRound:
    """A round: its observations, the predictions for them, and the decision."""

    at: str  # UTC time in ISO 8601 format, for display
    time: float  # seconds that the watch has lasted, without the time between two processes
    job: str
    rate: float  # tuples/s that the sources emit
    arriving: float  # tuples/s that arrive for them, as far as known
    is_limited: bool
    backlog: float  # tuples that wait; 0 if unknown
    machines: int  # number of TaskManagers with subtasks of the job
    # Tuples/s that the present layout carries; None while the job is not measured.
    low: float | None = None
    value: float | None = None
    high: float | None = None
    limit: str = ""  # the resource that limits the layout first
    # The present plan, and the rate and the machines of all plans; empty while not measured.
    level: int = -1
    capacity: tuple[float, ...] = ()
    cost: tuple[float, ...] = ()
    words: str = ""  # what was decided, and why
    kept: float = 0.0  # tuples/s of sources that keep up while others are held back; else 0
    # Whether the rate is in the interval of the round before; None if that is unknown, or if the
    # layout is another one.
    held: bool | None = None
    # Whether all that arrives is known, because the sources report what waits for them.
    is_known: bool = False


@dataclass(frozen=True, slots=True)
class WatchDecision:
    """A decision to start a job elsewhere, written before it is carried out."""

    at: str
    kind: str  # ``"move"`` for the rate, ``"replace"`` for lost TaskManagers
    job: str
    # What identifies the start at the engine: the id of the successor for a move, the checkpoint
    # for a replacement.
    transaction: str
    # Operator → device of each of its subtasks, or of all of them, afterwards.
    layout: dict[str, list[str] | str]
    machines: tuple[int, int]  # numbers of TaskManagers of the job, before and afterwards
    reason: str
    # Tuples/s that were predicted; None without a prediction.
    low: float | None = None
    value: float | None = None
    high: float | None = None
    # What became of it, and why.
    state: str = BEGUN
    outcome: str = ""
    after: str = ""  # id of the job afterwards
    measured: float | None = None  # tuples/s afterwards; None if not measured
    kept: float = 0.0  # tuples/s of sources that keep up while others are held back; else 0
    spread: float = 0.0  # spread of the profile from which it was predicted

    @property
    def model(self) -> RateInterval | None:
        """What was predicted; None without a prediction."""
        if self.low is None or self.value is None or self.high is None:
            return None
        return RateInterval(self.low, self.value, self.high)


@dataclass(frozen=True, slots=True)
class WatchRecord:
    """A watch: the name of its job, the job's present id, rounds and decisions in order."""

    name: str
    job: str
    since: str
    rounds: tuple[WatchRound, ...]
    decisions: tuple[WatchDecision, ...]


def usual_store() -> Path:
    """File of the store; it and its folder may be missing."""
    return user_state() / FILE


def utc_now() -> str:
    """Time for display."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def seconds_since(at: str) -> float:
    """Seconds since such a time, by the clock of the day; at least 0."""
    began = datetime.fromisoformat(at)
    return max(0.0, (datetime.now(began.tzinfo) - began).total_seconds())


class WatchStore:
    """The store, as one watch, or the history of all, uses it; its file is created if missing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._claimed: dict[int, str] = {}  # watch → the calling process, as text
        make_folder(path.parent)
        with self._store_errors():
            self._database = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
            (version,) = self._database.execute("PRAGMA user_version").fetchone()
            if version not in (0, VERSION):
                raise StoreError(
                    f"{spot(path)} was written by another version of streamplace (format "
                    f"{version}, not {VERSION}); move it away"
                )
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = FULL")  # also after a loss of power
            self._database.executescript(_TABLES)
            self._database.execute(f"PRAGMA user_version = {VERSION}")

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def claim(
        self,
        job: str,
        name: str,
        holder: str,
        is_same: Callable[[str, str], bool],
        holder_of: Callable[[str, float], str],
    ) -> int:
        """Become the only watch of a job; return the number of the watch, also of an earlier one.

        ``holder`` is the calling process as text, and ``is_same`` tells whether two ids belong to
        one job that was moved. ``holder_of`` describes the process that a text names if it may
        still run so many seconds after its last sign of life, and then JobWatched is raised; it
        returns an empty text if the process has ended.
        """
        with self._store_errors(), self._transaction():
            rows = self._database.execute("SELECT id, job, holder, since, seen FROM watches")
            for number, known, other, since, seen in rows.fetchall():
                if not is_same(known, job):
                    continue
                if other and (who := holder_of(other, time.time() - seen)):
                    when = since[:16].replace("T", " ")
                    raise JobWatched(
                        f"job {quoted(job)} has been watched by {who} since {when} UTC; stop that "
                        "command first"
                    )
                self._database.execute(
                    "UPDATE watches SET job = ?, name = ?, holder = ?, since = ?, seen = ? "
                    "WHERE id = ?",
                    (job, name, holder, utc_now(), time.time(), number),
                )
                self._claimed[number] = holder
                return int(number)
            number = self._write(
                "INSERT INTO watches (name, job, holder, since, seen) VALUES (?, ?, ?, ?, ?)",
                (name, job, holder, utc_now(), time.time()),
            )
            self._claimed[number] = holder
            return number

    def release(self, watch: int) -> None:
        """End a watch, unless another process has claimed it since; its rounds remain."""
        own = (watch, self._claimed.pop(watch, None))
        self._write("UPDATE watches SET holder = NULL WHERE id = ? AND holder = ?", own)

    def keep(self, watch: int) -> None:
        """Give a sign of life; JobWatched if another process has claimed the watch since."""
        with self._store_errors(), self._transaction():
            self._keep(watch)

    def _keep(self, watch: int) -> None:
        query = "SELECT holder, since FROM watches WHERE id = ?"
        ((holder, since),) = self._database.execute(query, (watch,)).fetchall() or [(None, "")]
        if watch in self._claimed and self._claimed[watch] != holder:
            when = since[:16].replace("T", " ")
            raise JobWatched(
                f"another command has watched the job since {when} UTC, because this one had given "
                "no sign of life for a long time; this one ends"
            )
        self._database.execute("UPDATE watches SET seen = ? WHERE id = ?", (time.time(), watch))

    def sign(self, watch: int) -> None:
        """Give a sign of life from another thread, unless another process has claimed the watch."""
        own = (time.time(), watch, self._claimed.get(watch))
        with self._store_errors(), closing(sqlite3.connect(self._path, isolation_level=None)) as db:
            db.execute("UPDATE watches SET seen = ? WHERE id = ? AND holder = ?", own)

    def follow(self, watch: int, job: str) -> None:
        """Note the present id of the job."""
        self._write("UPDATE watches SET job = ? WHERE id = ?", (job, watch))

    def add_round(self, watch: int, seen: WatchRound) -> None:
        """Append a round and give a sign of life, see `keep`; the oldest ones are forgotten."""
        with self._store_errors(), self._transaction():
            self._keep(watch)
            self._database.execute(
                "INSERT INTO rounds (watch, document) VALUES (?, ?)", (watch, _text(seen))
            )
            self._database.execute(_FORGET, (watch, watch, KEPT))

    def begin(self, watch: int, decision: WatchDecision) -> int:
        """Append a decision before it is carried out, and return its number.

        JobWatched if another process has claimed the watch since.
        """
        query = "INSERT INTO decisions (watch, document) VALUES (?, ?)"
        with self._store_errors(), self._transaction():
            self._keep(watch)
            return int(self._database.execute(query, (watch, _text(decision))).lastrowid or 0)

    def end(self, number: int, decision: WatchDecision) -> None:
        """Replace a decision by the one with its outcome."""
        self._write("UPDATE decisions SET document = ? WHERE id = ?", (_text(decision), number))

    def rounds(self, watch: int, most: int) -> list[WatchRound]:
        """Return the last rounds of a watch, in order, without those that cannot be read."""
        query = "SELECT document FROM rounds WHERE watch = ? ORDER BY id DESC LIMIT ?"
        found = (_round_of(text) for (text,) in reversed(self._read(query, (watch, most))))
        return [one for one in found if one is not None]

    def decisions(self, watch: int) -> dict[int, WatchDecision]:
        """All decisions of a watch by their numbers, in order; an error if one cannot be read."""
        query = "SELECT id, document FROM decisions WHERE watch = ? ORDER BY id"
        rows = self._read(query, (watch,))
        try:
            return {number: _decision_of(text) for number, text in rows}
        except UNREADABLE:  # without it, a job could be moved twice
            why = "has a decision that is damaged, or of another version; move the file away"
            raise StoreError(f"{spot(self._path)} {why}") from None

    def jobs(self) -> list[str]:
        """Present ids of the jobs of all watches."""
        return [job for (job,) in self._read("SELECT job FROM watches", ())]

    def later_ids(self, job: str) -> list[str]:
        """Present ids of jobs that watches have started in place of a job, however often since."""
        return [
            now
            for watch, now in self._read("SELECT id, job FROM watches ORDER BY id", ())
            if now != job
            and any(job in (one.job, one.after) for one in self.decisions(watch).values())
        ]

    def unfinished(self) -> dict[str, WatchDecision]:
        """Present ids of the jobs whose last start elsewhere has no outcome, with that decision."""
        found: dict[str, WatchDecision] = {}
        for watch, job in self._read("SELECT id, job FROM watches", ()):
            decisions = [*self.decisions(watch).values()]
            if decisions and decisions[-1].state == BEGUN:
                found[job] = decisions[-1]
        return found

    def records(self, most: int) -> list[WatchRecord]:
        """Return all watches, each with its last rounds and all of its decisions."""
        rows = self._read("SELECT id, name, job, since FROM watches ORDER BY id", ())
        found = []
        for watch, name, job, since in rows:
            rounds, decisions = self.rounds(watch, most), self.decisions(watch).values()
            found.append(WatchRecord(name, job, since, tuple(rounds), tuple(decisions)))
        return found

    def _read(self, query: str, values: Sequence[Any]) -> list[Any]:
        with self._store_errors():
            return self._database.execute(query, values).fetchall()

    def _write(self, query: str, values: Sequence[Any]) -> int:
        with self._store_errors():
            return int(self._database.execute(query, values).lastrowid or 0)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Commit the statements of the block together, and alone."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._database.in_transaction:  # a full disk has ended it already
                self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    @contextmanager
    def _store_errors(self) -> Iterator[None]:
        """Raise StoreError for errors of SQLite in the block."""
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(f"{spot(self._path)} cannot be used: {error}") from None


def read_records(path: Path, most: int) -> list[WatchRecord]:
    """Return all watches of a store; none if its file is missing."""
    if not path.exists():
        return []
    with closing(WatchStore(path)) as store:
        return store.records(most)


def _text(row: WatchRound | WatchDecision) -> str:
    return json.dumps(asdict(row), ensure_ascii=False)


def _round_of(text: str) -> WatchRound | None:
    """A round; None if it is damaged, or has fields of another version."""
    try:
        row: Mapping[str, Any] = json.loads(text)
        return WatchRound(**{**row, "capacity": tuple(row["capacity"]), "cost": tuple(row["cost"])})
    except UNREADABLE:
        return None


def _decision_of(text: str) -> WatchDecision:
    row: Mapping[str, Any] = json.loads(text)
    before, after = row["machines"]
    return WatchDecision(**{**row, "machines": (before, after)})
