"""Static: the plan for the peaks, all the time."""

from streamplace.control.policy import PlanChoice, SlotObservation, policy


@policy("static")
class StaticPolicy:
    """Run the largest plan all the time."""

    def __init__(self, plans: PlanChoice) -> None:
        self._largest = len(plans) - 1

    def choose(self, observed: SlotObservation) -> int:
        """The largest plan."""
        return self._largest
