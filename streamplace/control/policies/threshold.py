"""Threshold: one plan up above a utilization, one plan down after it was low for a while."""

from streamplace.control.policy import PlanChoice, SlotObservation, policy

UP, DOWN = 0.8, 0.5
"""Utilization above which a larger plan is chosen, and below which a smaller plan."""
PATIENCE = 600.0
"""Seconds of low utilization before the job moves down."""


@policy("threshold")
class ThresholdPolicy:
    """Move one plan up above 80 % of the capacity, and one down after ten minutes below 50 %."""

    def __init__(self, plans: PlanChoice) -> None:
        self._seconds, self._below = plans.seconds, 0.0

    def choose(self, observed: SlotObservation) -> int:
        """The next larger or smaller plan, or the present one."""
        capacity = float(observed.capacity[observed.level])
        is_low = observed.rate < DOWN * capacity
        self._below = self._below + self._seconds if is_low else 0.0
        if observed.rate > UP * capacity or observed.backlog > observed.rate * self._seconds:
            return min(observed.level + 1, len(observed.capacity) - 1)
        if self._below >= PATIENCE:
            self._below = 0.0
            return max(observed.level - 1, 0)
        return observed.level
