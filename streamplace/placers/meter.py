"""Meter: the remaining budget of a search, and the trace of its improvements.

A limit of evaluations is always exact. Searches of the core read the clock themselves and end by
`Meter.remaining`; other searches may name a minimum of evaluations that the clock does not end.
"""

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import NamedTuple

from streamplace.placers import stopwatch
from streamplace.placers.registry import Budget, remaining_budget
from streamplace.placers.result import Improvement
from streamplace.placers.stopwatch import now


class Remaining(NamedTuple):
    """Rest of a budget for a search of the core, and the clock if it is not the usual one."""

    seconds: float | None = None
    evaluations: int | None = None
    clock: Callable[[], float] | None = None


ENDLESS = Remaining()


class Meter:
    """Count evaluations and read the clock, which does not end the ``least`` evaluations."""

    def __init__(self, budget: Budget, least: int = 0) -> None:
        self._budget, self._least = budget, least
        self._start = now()
        self.spent = 0  # evaluations so far
        self.trace: list[Improvement] = []

    @property
    def seconds(self) -> float | None:
        """Remaining seconds, None without limit."""
        if self._budget.seconds is None:
            return None
        return max(0.0, self._budget.seconds - (now() - self._start))

    @property
    def evaluations(self) -> int | None:
        """Remaining evaluations, None without limit."""
        if self._budget.evaluations is None:
            return None
        return max(0, self._budget.evaluations - self.spent)

    @property
    def remaining(self) -> Remaining:
        """Remaining budget for a search of the core."""
        clock = None if stopwatch.clock is perf_counter else now
        return Remaining(self.seconds, self.evaluations, clock)

    @property
    def late(self) -> bool:
        """Whether the budget is used up, so that only the minimum may still be done."""
        return self.seconds == 0 or self.evaluations == 0

    @property
    def over(self) -> bool:
        """Whether the budget is used up and the minimum is done."""
        return self.chunk(1) == 0

    def chunk(self, evaluations: int) -> int:
        """Evaluations allowed before the clock is read again, at most so many; 0 at the end."""
        if self.seconds == 0:
            evaluations = max(0, min(evaluations, self._least - self.spent))
        return self.at_most(evaluations)

    def at_most(self, evaluations: int) -> int:
        """Return this number of evaluations, or fewer if fewer remain."""
        remaining = self.evaluations
        return evaluations if remaining is None else min(remaining, evaluations)

    def part(self, share: float) -> Budget | None:
        """Share of the remaining budget; None if that includes no evaluation."""
        seconds, evaluations = self.seconds, self.evaluations
        if evaluations is not None:
            evaluations = int(evaluations * share)
            if evaluations < 1:
                return None
        return remaining_budget(None if seconds is None else seconds * share, evaluations)

    def some(self, share: float) -> Budget:
        """Share of the remaining budget, with at least one evaluation."""
        return self.part(share) or self.up_to(1)

    def up_to(self, evaluations: int) -> Budget:
        """Remaining budget with at most ``evaluations``, and at least one."""
        return remaining_budget(self.seconds, max(1, self.at_most(evaluations)))

    def spend(self, evaluations: int) -> None:
        """Count evaluations."""
        self.spent += evaluations

    def note(self, value: float) -> None:
        """Record the value of the best placement so far."""
        self._note(now() - self._start, value, self.spent)

    def follow(self, notes: Iterable[tuple[float, float, int]]) -> None:
        """Record the improvements of a search of the core that has just ended.

        Their seconds and evaluations count from its beginning; its evaluations are spent.
        """
        steps = list(notes)
        if steps:
            began = now() - self._start - steps[-1][0]
            for seconds, value, evaluations in steps:
                self._note(began + seconds, value, self.spent + evaluations)
            self.spend(steps[-1][2])

    def _note(self, seconds: float, value: float, evaluations: int) -> None:
        if not self.trace or value != self.trace[-1].value:
            self.trace.append(Improvement(seconds, value, max(1, evaluations)))
