"""Moves that a watch has made: how long ago they began, and what came of them."""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from streamplace.engines.flink.watch.log import WatchLog
from streamplace.io.store import StoreError
from streamplace.io.watch_store import (
    FAILED,
    MOVED,
    RETURNED,
    UNBEGUN,
    UNSAVED,
    WatchDecision,
    seconds_since,
)
from streamplace.model.messages import counted
from streamplace.model.report import duration

RETRY_SECONDS, DAY = 1800.0, 86_400.0
"""Seconds after a move that failed until it is tried again: at first, and at most."""


@dataclass(slots=True)
class PastMoves:
    """Moves that a watch has begun, also in earlier processes.

    Those of a job that could not be saved count as begun, because Flink may have restarted the job.
    """

    log: WatchLog
    # Clock that tells how long ago the moves of this process began; those of earlier ones are dated
    # by the clock of the day.
    monotonic: Callable[[], float]
    _known: dict[int, WatchDecision] = field(default_factory=dict, init=False)
    _began: dict[int, float] = field(default_factory=dict, init=False)

    def recall(self) -> None:
        """Date the moves of earlier processes."""
        now = self.monotonic()
        self._began = {number: now - seconds_since(one.at) for number, one in self._all.items()}

    def note(self, began: float) -> bool:
        """Date a move that this process may have begun; return whether it has."""
        new = self._all.keys() - self._began.keys()
        self._began |= dict.fromkeys(new, began)
        return bool(new)

    @property
    def _all(self) -> dict[int, WatchDecision]:
        """Moves that were begun; those last known while the store cannot be read."""
        with suppress(StoreError):
            found = self.log.decisions.items()
            self._known = {
                number: one for number, one in found if one.kind == "move" and one.state != UNBEGUN
            }
        return self._known

    def _age(self, number: int) -> float:
        now = self.monotonic()
        return now - self._began.get(number, now)

    @property
    def _saved(self) -> list[tuple[int, WatchDecision]]:
        """Moves that were begun, without those of a job that could not be saved."""
        return [(number, one) for number, one in self._all.items() if one.state != UNSAVED]

    @property
    def since_last(self) -> float | None:
        """Seconds since the last move began; None if there was none."""
        ages = [self._age(number) for number in self._all]
        return ages[-1] if ages else None

    @property
    def since_fewer(self) -> float:
        """Seconds since the last move if it was to fewer TaskManagers and stayed; else infinite."""
        moves = self._saved
        return self._age(moves[-1][0]) if moves and _is_to_fewer(moves[-1][1]) else math.inf

    def came_back(self, machines: int) -> str:
        """Return why a move to so many TaskManagers is not tried again yet; empty if it may be.

        Nor is it moved anywhere after it could not be saved, or after two moves in a row failed,
        which then does not depend on the number. The time for which it is not doubles with each
        try.
        """
        unsaved: list[int] = []
        tries: list[int] = []
        failed: list[int] = []
        for number, one in self._all.items():
            if one.state == UNSAVED:
                unsaved = [*unsaved, number]
                continue
            unsaved = []
            has_failed = one.state in (RETURNED, FAILED)
            failed = [*failed, number] if has_failed else []
            if one.machines[1] == machines:
                tries = [*tries, number] if has_failed else []
        to_there = f"a move to {counted(machines, 'TaskManager')} failed, and is tried again in"
        reasons = {
            self._wait(tries): to_there,
            self._wait(failed[1:]): f"the last {len(failed)} moves failed; the next is tried in",
            self._wait(unsaved): "the job could not be saved, which is tried again in",
        }
        wait = max(reasons)
        return f"{reasons[wait]} {duration(wait)}" if wait > 0 else ""

    def _wait(self, tries: list[int]) -> float:
        """Seconds to wait after moves that have failed; 0 or less if there are none."""
        pause = min(DAY, RETRY_SECONDS * 2.0 ** min(len(tries) - 1, 6))
        return pause - self._age(tries[-1]) if tries else 0.0


def _is_to_fewer(one: WatchDecision) -> bool:
    """Whether a decision has moved the job to fewer TaskManagers."""
    return one.state == MOVED and one.machines[1] < one.machines[0]
