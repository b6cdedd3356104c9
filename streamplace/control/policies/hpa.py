"""Kubernetes' horizontal pod autoscaler: a target utilization, and a window before it goes down."""

from collections import deque

from streamplace.control.policy import PlanChoice, SlotObservation, policy

TARGET, TOLERANCE = 0.8, 0.1
"""Target utilization, and the relative difference from it without a reaction."""
WINDOW = 300.0
"""Seconds of recommendations whose largest counts when going down (stabilization window)."""


@policy("hpa")
class HpaPolicy:
    """Aim at 80 % utilization, and go down to the largest plan wanted in the last five minutes.

    desired = ceil(current · utilization / target), with the defaults of Kubernetes for tolerance
    and stabilization.
    """

    def __init__(self, plans: PlanChoice) -> None:
        self._wanted: deque[int] = deque(maxlen=max(1, round(WINDOW / plans.seconds)))

    def choose(self, observed: SlotObservation) -> int:
        """The plan at which the utilization is at most the target."""
        level, aim = observed.level, TARGET * float(observed.capacity[observed.level])
        if abs(observed.rate - aim) > TOLERANCE * aim:
            level = observed.least_level(observed.rate / TARGET)
        self._wanted.append(level)
        return level if level > observed.level else min(max(self._wanted), observed.level)
