"""Watches in the user's store: rounds, decisions and outcomes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, TypeAdapter

from streamplace.errors import SettingError
from streamplace.io.store import Holder, Rows, Store, Table
from streamplace.model.intervals import RateInterval
from streamplace.model.messages import quoted

KEPT = 20_000
"""Rounds of a watch that are kept: two weeks of one per minute."""
WHOLE: dict[str, Any] = {"extra": "forbid", "ser_json_inf_nan": "constants"}
"""Rows have no other fields, and may have infinite rates."""
BEGUN, MOVED, RETURNED, FAILED, UNBEGUN = "begun", "moved", "returned", "failed", "not begun"
UNSAVED = "not saved"
"""States of a decision: written before anything is done, and the outcomes."""


class JobWatched(SettingError):
    """Another command watches the job."""


@dataclass(frozen=True, slots=True)
class WatchRound:
    """A round: its observations, the predictions for them, and the decision."""

    __pydantic_config__: ClassVar[dict[str, Any]] = WHOLE

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

    __pydantic_config__: ClassVar[dict[str, Any]] = WHOLE

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


class WatchedJob(BaseModel):
    """The watch of a job, which one process carries on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    job: str  # present id of the job
    since: str
    holder: Holder | None = None  # the process that watches; None if its command has ended


WATCHES = Table("watches", TypeAdapter(WatchedJob))
ROUNDS = Table("rounds", TypeAdapter(WatchRound))
DECISIONS = Table("decisions", TypeAdapter(WatchDecision))


def utc_now() -> str:
    """Time for display."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def seconds_since(at: str) -> float:
    """Seconds since such a time, by the clock of the day; at least 0."""
    began = datetime.fromisoformat(at)
    return max(0.0, (datetime.now(began.tzinfo) - began).total_seconds())


@dataclass(frozen=True, slots=True)
class WatchStore:
    """The watches of this user."""

    store: Store

    @classmethod
    def usual(cls) -> "WatchStore":
        """Return the watches in the user's store."""
        return cls(Store.usual())

    def claim(self, job: str, name: str, is_same: Callable[[str, str], bool]) -> int:
        """Become the only watch of a job; return the number of the watch, also of an earlier one.

        ``is_same`` tells whether two ids belong to one job that was moved. Raises JobWatched while
        another process watches it.
        """
        mine = WatchedJob(name=name, job=job, since=utc_now(), holder=Holder.current())
        with self.store.transaction() as rows:
            for number, known in rows.all(WATCHES).items():
                if not is_same(known.job, job):
                    continue
                if known.holder not in (None, mine.holder) and known.holder.runs:
                    raise JobWatched(
                        f"job {quoted(job)} has been watched by {known.holder} since "
                        f"{_minute(known.since)} UTC; stop that command first"
                    )
                rows.put(WATCHES, number, mine)
                return number
            return rows.add(WATCHES, name, mine)

    def release(self, watch: int) -> None:
        """End a watch, unless another process has claimed it since; its rounds remain."""
        with self.store.transaction() as rows:
            known = rows.all(WATCHES)[watch]
            if known.holder == Holder.current():
                rows.put(WATCHES, watch, known.model_copy(update={"holder": None}))

    @contextmanager
    def _own(self, watch: int) -> Iterator[Rows]:
        """One transaction; JobWatched if another process has claimed the watch since.

        As one on another machine with this folder, where nothing tells that this process runs.
        """
        with self.store.transaction() as rows:
            known = rows.all(WATCHES)[watch]
            if known.holder != Holder.current():
                raise JobWatched(
                    f"another command has watched the job since {_minute(known.since)} UTC; this "
                    "one ends"
                )
            yield rows

    def add_round(self, watch: int, seen: WatchRound) -> None:
        """Append a round; the oldest ones are forgotten."""
        with self._own(watch) as rows:
            rows.add(ROUNDS, str(watch), seen)
            rows.forget(ROUNDS, KEPT, str(watch))

    def begin(self, watch: int, decision: WatchDecision) -> int:
        """Append a decision before it is carried out, and return its number."""
        with self._own(watch) as rows:
            return rows.add(DECISIONS, str(watch), decision)

    def end(self, watch: int, number: int, decision: WatchDecision) -> None:
        """Replace a decision by the one with its outcome, and follow the job."""
        with self.store.transaction() as rows:
            rows.put(DECISIONS, number, decision)
            if decision.after:
                known = rows.all(WATCHES)[watch]
                rows.put(WATCHES, watch, known.model_copy(update={"job": decision.after}))

    def rounds(self, watch: int, most: int) -> list[WatchRound]:
        """Return the last rounds of a watch, in order."""
        return [*self.store.rows(ROUNDS, str(watch), most).values()]

    def decisions(self, watch: int) -> dict[int, WatchDecision]:
        """All decisions of a watch by their numbers, in order."""
        return self.store.rows(DECISIONS, str(watch))

    def jobs(self) -> list[str]:
        """Present ids of the jobs of all watches."""
        return [one.job for one in self.store.rows(WATCHES).values()]

    def later_ids(self, job: str) -> list[str]:
        """Present ids of jobs that watches have started in place of a job, however often since."""
        return [
            one.job
            for watch, one in self.store.rows(WATCHES).items()
            if one.job != job
            and any(job in (did.job, did.after) for did in self.decisions(watch).values())
        ]

    def unfinished(self) -> dict[str, WatchDecision]:
        """Present ids of the jobs whose last start elsewhere has no outcome, with that decision."""
        found: dict[str, WatchDecision] = {}
        for watch, one in self.store.rows(WATCHES).items():
            decisions = [*self.decisions(watch).values()]
            if decisions and decisions[-1].state == BEGUN:
                found[one.job] = decisions[-1]
        return found

    def records(self, most: int) -> list[WatchRecord]:
        """Return all watches, each with its last rounds and all of its decisions."""
        found = []
        for watch, one in self.store.rows(WATCHES).items():
            rounds, decisions = self.rounds(watch, most), self.decisions(watch).values()
            found.append(WatchRecord(one.name, one.job, one.since, tuple(rounds), tuple(decisions)))
        return found


def _minute(at: str) -> str:
    return at[:16].replace("T", " ")
