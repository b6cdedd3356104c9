"""Log of a watch in the store: rounds may be missing from it, decisions may not."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from streamplace.engines.flink.rest.job_ids import chain_of
from streamplace.io.store import StoreError
from streamplace.io.watch_store import (
    BEGUN,
    MOVED,
    UNBEGUN,
    UNSAVED,
    WatchDecision,
    WatchRound,
    WatchStore,
)


@dataclass(slots=True)
class WatchLog:
    """Rounds and decisions of one watch.

    If a round cannot be written, as on a full disk, a warning is printed once, and the watch goes
    on. A decision that cannot be written raises an error, so that it is not carried out.
    """

    store: WatchStore
    watch: int
    tell: Callable[[str], None]
    _is_failing: bool = field(default=False, init=False)

    @classmethod
    def claimed(
        cls, store: WatchStore, job: str, name: str, tell: Callable[[str], None]
    ) -> "WatchLog":
        """Become the only watch of a job.

        Raises JobWatched when another process watches it.
        """
        return cls(store, store.claim(job, name, is_same_job), tell)

    def add(self, seen: WatchRound) -> None:
        """Append a round, if that is possible."""
        try:
            self.store.add_round(self.watch, seen)
        except StoreError as error:
            if not self._is_failing:
                self.tell(
                    f"warning: {error}; the watch goes on, but rounds are not recorded, and "
                    "nothing is moved"
                )
            self._is_failing = True
        else:
            if self._is_failing:
                self.tell("rounds are recorded again")
            self._is_failing = False

    def begin(self, decision: WatchDecision) -> int:
        """Write a decision before it is carried out; raise StoreError if that is not possible."""
        return self.store.begin(self.watch, decision)

    def end(
        self, number: int, decision: WatchDecision, state: str, outcome: str, after: str
    ) -> WatchDecision:
        """Write the outcome of a decision, and follow the job."""
        ended = replace(decision, state=state, outcome=outcome, after=after)
        self.amend(number, ended)
        return ended

    def amend(self, number: int, decision: WatchDecision) -> None:
        """Replace a decision; where this fails, the next process finds out the outcome again."""
        try:
            self.store.end(self.watch, number, decision)
        except StoreError as error:
            self.tell(f"warning: {error}")

    @property
    def decisions(self) -> dict[int, WatchDecision]:
        """Decisions of this watch by number, in order."""
        return self.store.decisions(self.watch)

    @property
    def has_started(self) -> bool:
        """Whether a decision has started the job elsewhere, or may have."""
        without = (UNBEGUN, UNSAVED)
        return any(one.state not in without for one in self.decisions.values())

    @property
    def is_starting(self) -> bool:
        """Whether a decision to start the job elsewhere has no outcome yet."""
        return any(one.state == BEGUN for one in self.decisions.values())

    def placed(self, job: str) -> dict[str, list[str] | str]:
        """Where a decision of this watch has placed a job; empty if none of them has started it."""
        found = [one for one in self.decisions.values() if one.after == job and one.state == MOVED]
        return dict(found[-1].layout) if found else {}

    def release(self) -> None:
        """End the watch."""
        try:
            self.store.release(self.watch)
        except StoreError as error:
            self.tell(f"warning: {error}")


def is_same_job(one: str, other: str) -> bool:
    """Whether one id belongs to the job of the other, before or after moves."""
    return other in chain_of(one) or one in chain_of(other)
