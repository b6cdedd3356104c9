"""Log of a watch in the store: rounds may be missing from it, decisions may not."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from streamplace.engines.flink.move.holder import Holder
from streamplace.engines.flink.rest.job_ids import chain_of
from streamplace.io.watch_store import (
    BEGUN,
    MOVED,
    UNBEGUN,
    UNSAVED,
    StoreError,
    WatchDecision,
    WatchRound,
    WatchStore,
)

KEEP_SECONDS, DEAD_SECONDS = 60.0, 900.0
"""Seconds between two signs of life, and without any until a watch elsewhere counts as ended."""


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
    _due: float = field(default=0.0, init=False)

    @classmethod
    def claimed(
        cls, store: WatchStore, job: str, name: str, tell: Callable[[str], None]
    ) -> "WatchLog":
        """Become the only watch of a job.

        Raises JobWatched when another process watches it.
        """
        holder = Holder.current().model_dump_json()
        return cls(store, store.claim(job, name, holder, is_same_job, running_holder), tell)

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

    @contextmanager
    def living(self) -> Iterator[None]:
        """Give signs of life while the block runs, also while it waits for Flink."""
        over = threading.Event()

        def sign() -> None:
            while not over.wait(KEEP_SECONDS):
                with suppress(StoreError):
                    self.store.sign(self.watch)

        thread = threading.Thread(target=sign, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def keep(self) -> None:
        """Give a sign of life, if one is due and it can be written.

        Raises JobWatched when another process has taken over the watch.
        """
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + KEEP_SECONDS
            with suppress(StoreError):
                self.store.keep(self.watch)

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
            self.store.end(number, decision)
            if decision.after:
                self.store.follow(self.watch, decision.after)
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


def running_holder(text: str, silent: float) -> str:
    """Describe the process of a watch if it may run; empty if it has ended.

    Signs of life, the last of which was given ``silent`` seconds ago, count for processes of other
    machines, and for those of other versions of streamplace.
    """
    try:
        holder = Holder.model_validate_json(text)
    except ValueError:
        return "another version of streamplace" if silent < DEAD_SECONDS else ""
    if holder == Holder.current():
        return ""
    runs = holder.runs if holder.is_here else silent < DEAD_SECONDS
    return str(holder) if runs else ""
