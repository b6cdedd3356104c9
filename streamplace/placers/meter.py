"""Meter: what is left of a budget, and when the answer became better.

On a busy machine the clock may have run out before anything was tried. Therefore every search names
the least work that it does whatever the clock says. Evaluations are an exact limit all the same.
"""

from streamplace.placers.registry import Budget, Improvement
from streamplace.placers.stopwatch import now


class Meter:
    """Counts evaluations and reads the clock; nothing that the search decides depends on it.

    Parameters
    ----------
    least
        Evaluations that the clock does not end, as far as the budget has them.
    """

    def __init__(self, budget: Budget, least: int) -> None:
        self._budget, self._least = budget, least
        self._start, self._spent = now(), 0
        self.trace: list[Improvement] = []

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
    def spent(self) -> int:
        """Evaluations so far."""
        return self._spent

    @property
    def late(self) -> bool:
        """Whether nothing is left, and only the least work may still be done."""
        return self.seconds == 0 or self.evaluations == 0

    @property
    def over(self) -> bool:
        """Whether nothing is left and the least work is done."""
        return self.chunk(1) == 0

    def chunk(self, most: int) -> int:
        """Evaluations that may be done before the next look at the clock; 0 at the end."""
        if self.seconds == 0:
            most = max(0, min(most, self._least - self._spent))
        return self.at_most(most)

    def at_most(self, evaluations: int) -> int:
        """Return the given number of evaluations, or fewer if fewer are left."""
        left = self.evaluations
        return evaluations if left is None else min(left, evaluations)

    def part(self, share: float) -> Budget | None:
        """Share of what is left as a budget of its own; None where no evaluation is left."""
        seconds, evaluations = self.seconds, self.evaluations
        if evaluations is not None:
            evaluations = int(evaluations * share)
            if evaluations < 1:
                return None
        return Budget(None if seconds is None else max(seconds * share, 1e-6), evaluations)

    def up_to(self, evaluations: int) -> Budget:
        """What is left as a budget of its own, of at most so many evaluations and at least one."""
        seconds = self.seconds
        left = None if seconds is None else max(seconds, 1e-6)
        return Budget(left, max(1, self.at_most(evaluations)))

    def spend(self, evaluations: int) -> None:
        """Count evaluations."""
        self._spent += evaluations

    def note(self, value: float) -> None:
        """Note the value of the best placement so far."""
        if not self.trace or value != self.trace[-1].value:
            seconds = now() - self._start
            self.trace.append(Improvement(seconds, value, max(1, self._spent)))
