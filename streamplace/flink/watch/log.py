"""Log of a watch in the user's store: rounds may be missing from it, but no decision."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from streamplace.errors import SettingError
from streamplace.flink.layout import Layout
from streamplace.flink.rest.client import chain_of
from streamplace.flink.store import (
    Holder,
    Rows,
    Store,
    StoreError,
    keep_renewed,
    renewal,
    utc_now,
    with_holder,
)
from streamplace.flink.watches import (
    BEGUN,
    DECISIONS,
    MAX_ROUNDS,
    MOVED,
    ROUNDS,
    UNBEGUN,
    UNSAVED,
    WATCHES,
    WatchDecision,
    WatchedJob,
    WatchRound,
)
from streamplace.model.message_text import quoted
from streamplace.model.units import digits


class JobWatched(SettingError):
    """Another command watches the job."""


@dataclass(slots=True, weakref_slot=True)
class WatchLog:
    """Rounds and decisions of one watch.

    If a round cannot be written, as on a full disk, a warning is printed once, and the watch
    continues. If a decision cannot be written, an error is raised, so it is not carried out.
    """

    store: Store
    watch: int
    tell: Callable[[str], None]
    decisions: dict[int, WatchDecision]  # of this watch by number, in order
    _is_failing: bool = field(default=False, init=False)

    @classmethod
    def claimed(cls, store: Store, job: str, name: str, tell: Callable[[str], None]) -> "WatchLog":
        """Become the only watch of a job, or continue an earlier one.

        Raises JobWatched while another process watches it.
        """
        claim = with_holder(WatchedJob(name=name, ids=(job,), since=utc_now()))
        with store.transaction() as rows:
            for number, watch in rows.all(WATCHES).items():
                if not is_of(watch, job):
                    continue
                if watch.is_held and watch.holder != claim.holder:
                    raise JobWatched(
                        f"job {quoted(job)} has been watched by {watch.holder} since "
                        f"{_minute(watch)} UTC; stop that command first"
                    )
                ids = (*(name for name in watch.ids if name != job), job)
                rows.put(WATCHES, number, claim.model_copy(update={"ids": ids}))
                log = cls(store, number, tell, rows.all(DECISIONS, str(number)))
                break
            else:
                log = cls(store, rows.add(WATCHES, name, claim), tell, {})
        keep_renewed(log, renewal(WATCHES))
        return log

    @contextmanager
    def _transaction(self) -> Iterator[Rows]:
        """One transaction; JobWatched if another process has claimed the watch since.

        That process may run on another machine that shares the folder and cannot see this process.
        """
        with self.store.transaction() as rows:
            watch = rows.get(WATCHES, self.watch)
            if watch.holder != Holder.current():
                raise JobWatched(
                    f"another command has watched the job since {_minute(watch)} UTC; this one ends"
                )
            yield rows

    def add(self, facts: WatchRound) -> None:
        """Append a round, if possible, and delete the oldest ones."""
        try:
            with self._transaction() as rows:
                rows.add(ROUNDS, str(self.watch), facts)
                rows.forget(ROUNDS, MAX_ROUNDS, str(self.watch))
        except StoreError as error:
            if not self._is_failing:
                self.tell(
                    f"warning: {error}; the watch continues, but records no rounds and moves "
                    "nothing until the store can be written"
                )
            self._is_failing = True
        else:
            self._is_failing = False

    def begin(self, decision: WatchDecision) -> int:
        """Write a decision before it is carried out; raise StoreError if that is not possible."""
        with self._transaction() as rows:
            number = rows.add(DECISIONS, str(self.watch), decision)
        self.decisions[number] = decision
        return number

    def end(self, number: int, state: str, outcome: str, after: str) -> None:
        """Write the outcome of a decision, and follow the job."""
        decision = self.decisions[number]
        self._amend(number, replace(decision, state=state, outcome=outcome, after=after))

    def _amend(self, number: int, decision: WatchDecision) -> None:
        """Replace a decision; if that fails, the next process looks up the outcome again."""
        self.decisions[number] = decision
        try:
            with self.store.transaction() as rows:
                rows.put(DECISIONS, number, decision)
                watch = rows.get(WATCHES, self.watch)
                if decision.after not in ("", watch.job):
                    ids = (*watch.ids, decision.after)
                    rows.put(WATCHES, self.watch, watch.model_copy(update={"ids": ids}))
        except StoreError as error:
            self.tell(f"warning: {error}")

    def note_rate(self, decision: WatchDecision, rate: float) -> None:
        """Write the measured rate after a decision, and print it beside the predicted one."""
        number = next(n for n, written in self.decisions.items() if written is decision)
        self._amend(number, replace(decision, measured=rate))
        if (carries := decision.carries) is not None:
            self.tell(f"{digits(rate)} tuples/s were measured there, {carries} were predicted")

    def rounds(self, number: int) -> list[WatchRound]:
        """Return the last rounds, in order."""
        return [*self.store.rows(ROUNDS, str(self.watch), number).values()]

    @property
    def moves(self) -> list[WatchDecision]:
        """Decisions for the rate of the job, in order."""
        return [d for d in self.decisions.values() if d.kind != d.REPLACE]

    @property
    def has_started(self) -> bool:
        """Whether a decision has started the job elsewhere, or may have started it."""
        return any(d.state not in (UNBEGUN, UNSAVED) for d in self.decisions.values())

    @property
    def is_starting(self) -> bool:
        """Whether a decision to start the job elsewhere has no outcome yet."""
        return any(decision.state == BEGUN for decision in self.decisions.values())

    def placed(self, job: str) -> Layout:
        """Layout in which a decision of this watch has started a job; empty if none has."""
        starts = [d for d in self.decisions.values() if d.after == job and d.state == MOVED]
        return Layout.from_json(starts[-1].layout) if starts else Layout()


def unfinished(store: Store) -> list[str]:
    """Current ids of watched jobs whose last start elsewhere has no outcome."""
    return [
        watch.job
        for number, watch in store.rows(WATCHES).items()
        if any(last.state == BEGUN for last in store.rows(DECISIONS, str(number), 1).values())
    ]


def is_of(watch: WatchedJob, job: str) -> bool:
    """Whether an id is that of a watched job, before or after starts elsewhere."""
    return job in watch.ids or watch.job in chain_of(job) or job in chain_of(watch.job)


def _minute(watch: WatchedJob) -> str:
    return watch.since[:16].replace("T", " ")
