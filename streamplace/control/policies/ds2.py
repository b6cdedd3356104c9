"""DS2: the smallest plan that carries the rate, by true processing rates (OSDI 2018)."""

from streamplace.control.policy import PlanChoice, SlotObservation, policy


@policy("ds2")
class Ds2Policy:
    """Run the cheapest plan that carries the present rate, as DS2 does in one step.

    Kalavri and others (2018): the parallelism of every operator follows from the rates of the
    sources and the rate that an instance could process if it never waited.
    """

    def __init__(self, plans: PlanChoice) -> None:
        pass

    def choose(self, observed: SlotObservation) -> int:
        """The cheapest plan that carries the rate of the last interval."""
        return observed.least_level(observed.rate)
