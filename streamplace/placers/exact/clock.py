"""What is left of a budget."""

from streamplace.placers.registry import Budget, Improvement
from streamplace.placers.stopwatch import now


class Clock:
    """Counts seconds and evaluations (moves of the annealing, nodes of the search)."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._start = now()
        self._spent = 0
        self.trace: list[Improvement] = []

    def spend(self, evaluations: int) -> None:
        """Count evaluations."""
        self._spent += evaluations

    def note(self, value: float) -> None:
        """Record an improvement."""
        self.trace.append(Improvement(now() - self._start, value))

    @property
    def seconds(self) -> float | None:
        """Seconds left, None without limit."""
        if self._budget.seconds is None:
            return None
        return max(0.0, self._budget.seconds - (now() - self._start))

    @property
    def evaluations(self) -> int | None:
        """Evaluations left, None without limit."""
        if self._budget.evaluations is None:
            return None
        return max(0, self._budget.evaluations - self._spent)

    @property
    def over(self) -> bool:
        """Whether nothing is left."""
        return self.seconds == 0 or self.evaluations == 0

    def at_most(self, evaluations: int) -> int:
        """Return the given number of evaluations, or fewer if fewer are left."""
        left = self.evaluations
        return evaluations if left is None else min(left, evaluations)
