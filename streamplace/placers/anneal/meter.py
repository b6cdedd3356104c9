"""Meter: what is left of a budget, and when the answer became better."""

from streamplace.placers.registry import Budget, Improvement
from streamplace.placers.stopwatch import now

UNLIMITED = 2**62


class Meter:
    """Counts evaluations and reads the clock; nothing that the search decides depends on it."""

    def __init__(self, budget: Budget) -> None:
        self._start = now()
        self._end = self._start + (1e9 if budget.seconds is None else budget.seconds)
        self._left = UNLIMITED if budget.evaluations is None else budget.evaluations
        self.trace: list[Improvement] = []

    def chunk(self, most: int) -> int:
        """Evaluations that may be done before the next look at the clock; 0 at the end."""
        return 0 if now() >= self._end else min(most, self._left)

    def spend(self, evaluations: int) -> None:
        """Count evaluations."""
        self._left -= evaluations

    def note(self, value: float) -> None:
        """Note the value of the best placement so far."""
        if not self.trace or value != self.trace[-1].value:
            self.trace.append(Improvement(now() - self._start, value))
