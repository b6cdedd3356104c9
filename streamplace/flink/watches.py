"""Watches in the user's store: jobs, rounds, and decisions with their outcomes."""

from dataclasses import dataclass
from typing import ClassVar

from pydantic import TypeAdapter

from streamplace.flink.store import WHOLE, Claimed, Store, Table
from streamplace.io.ledger import NOISE
from streamplace.model.prediction_intervals import RateInterval

MAX_ROUNDS = 20_000
"""Maximum number of rounds of a watch in the store: two weeks of one per minute."""
BEGUN, MOVED, RETURNED, FAILED, UNBEGUN = "begun", "moved", "returned", "failed", "not begun"
UNSAVED = "not saved"
"""States of a decision: written before anything is done, and the outcomes."""


@dataclass(frozen=True, slots=True)
class WatchRound:
    """A round: its observations, the predictions for them, and the decision."""

    __pydantic_config__: ClassVar = WHOLE

    at: str  # UTC time in ISO 8601 format, for display
    time: float  # seconds that the watch has lasted, without the time between two processes
    job: str
    rate: float  # tuples/s that the sources emit
    arriving: float  # tuples/s that arrive for the sources, as far as known
    is_limited: bool  # whether back-pressure holds a source back
    backlog: float  # tuples that wait; 0 if unknown
    machines: int  # number of TaskManagers with subtasks of the job
    carries: RateInterval | None = None  # of the present layout; None without a measurement
    limit: str = ""  # the resource that limits the layout first
    # The present plan, and the rate and the machines of all plans; empty without a measurement.
    level: int = -1
    capacity: tuple[float, ...] = ()
    cost: tuple[float, ...] = ()
    words: str = ""  # decision and reason
    kept: float = 0.0  # tuples/s of sources that keep up while others are held back; else 0
    growth: float | None = None  # tuples/s by which the backlog grows; None if unknown
    # Whether the job does not keep up; None if only the next round shows it.
    falls_behind: bool | None = None
    shows_capacity: bool = False  # whether the rate is the layout's capacity
    # Whether the arrival rate is known, because the sources report their backlog.
    is_known: bool = False

    @property
    def late(self) -> float:
        """Seconds by which tuples are late: backlog divided by arrival rate."""
        return self.backlog / self.arriving if self.arriving > 0 else 0.0

    @property
    def stays_late(self) -> bool:
        """Whether the job falls behind although its backlog hardly grows."""
        if self.growth is None or not self.falls_behind:
            return False
        return self.growth <= NOISE * self.rate


@dataclass(frozen=True, slots=True)
class WatchDecision:
    """A decision to start a job elsewhere, written before it is carried out."""

    __pydantic_config__: ClassVar = WHOLE
    # Kinds: try a layout, return to the best measured layout, and replace lost TaskManagers.
    MOVE, RETURN, REPLACE = "move", "return", "replace"

    at: str
    kind: str
    job: str
    transaction: str  # id of the job that is started in its place, which Flink accepts once
    # Operator → device of each of its subtasks, or of all of them, after the move.
    layout: dict[str, list[str] | str]
    machines: tuple[int, int]  # numbers of TaskManagers of the job before and after the move
    reason: str
    carries: RateInterval | None = None  # predicted rate; None without a prediction
    state: str = BEGUN
    outcome: str = ""  # reason of the outcome
    after: str = ""  # id of the job after the move
    measured: float | None = None  # tuples/s after the move; None if not measured
    kept: float = 0.0  # tuples/s of sources that keep up while others are held back; else 0
    spread: float = 0.0  # spread of the profile from which it was predicted


@dataclass(frozen=True, slots=True)
class WatchRecord:
    """A watch: the name and the present id of its job, rounds and decisions in order."""

    name: str
    job: str
    since: str
    rounds: tuple[WatchRound, ...]
    decisions: tuple[WatchDecision, ...]


class WatchedJob(Claimed):
    """The watch of a job, whose rounds and decisions have its number as their owner."""

    name: str
    ids: tuple[str, ...]  # ids that the job has had, the present one last
    since: str

    @property
    def job(self) -> str:
        """Present id of the job."""
        return self.ids[-1]


WATCHES = Table("watches", TypeAdapter(WatchedJob))
ROUNDS = Table("rounds", TypeAdapter(WatchRound))
DECISIONS = Table("decisions", TypeAdapter(WatchDecision))


def read_watches(store: Store) -> list[WatchRecord]:
    """Return all watches with their stored rounds and decisions."""
    return [
        WatchRecord(
            watch.name,
            watch.job,
            watch.since,
            tuple(store.rows(ROUNDS, str(number)).values()),
            tuple(store.rows(DECISIONS, str(number)).values()),
        )
        for number, watch in store.rows(WATCHES).items()
    ]
