"""A policy of your own: one class in one file, replayed beside those of the package.

The class in a file of its own in ``streamplace/control/policies/`` is found by ``plan --policy``.
"""

import numpy as np

from streamplace import Offer, Operator, StreamGraph, plan_schedule
from streamplace.control.policy import PlanChoice, SlotObservation, policy
from streamplace.planning.traces import RateTrace


@policy("rising")
class RisingPolicy:
    """Expect the rate to rise as it did in the last interval, and keep a tenth free."""

    def __init__(self, plans: PlanChoice) -> None:
        self._last = 0.0

    def choose(self, observed: SlotObservation) -> int:
        """The cheapest plan that carries what is expected."""
        rise = max(0.0, observed.rate - self._last) if self._last else 0.0
        self._last = observed.rate
        return observed.least_level((observed.rate + rise) / 0.9)


graph = StreamGraph.of("clicks", [Operator("count", ipt=2e5, rate=1e4)])
hours = np.arange(48.0)
rates = 2e4 + 1.5e4 * np.sin(hours * np.pi / 12)
day = RateTrace(3600 * hours, ("rate",), rates[:, None])
found = plan_schedule(
    graph,
    day,
    slot="10 min",
    offers=[Offer("small", 0.1)],
    policies=["work-function", ("rising", RisingPolicy)],
    jobs=1,
)
print(found.report())
