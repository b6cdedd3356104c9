"""The contract of policies, and their registry.

Once per interval, a policy observes a running job, and chooses the plan that it runs from then on.
It does not know the rates to come.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from streamplace.model.arrays import Floats
from streamplace.registry import Registry


@dataclass(frozen=True, slots=True, eq=False)
class PlanChoice:
    """The plans among which a policy chooses, cheapest first."""

    cost: Floats  # [K] per hour
    price: Floats  # [K, K] of a move between two plans, in money
    seconds: float  # between two decisions
    delay: float  # seconds until a move stops the job
    interruption: float  # seconds for which a move stops the job
    lag: float  # seconds by which tuples may be late

    def __len__(self) -> int:
        return len(self.cost)


@dataclass(frozen=True, slots=True, eq=False)
class SlotObservation:
    """A running job at the end of an interval."""

    time: float  # seconds since the start
    rate: float  # tuples/s that arrived in the interval
    backlog: float  # tuples that wait
    level: int  # number of the plan that runs
    capacity: Floats  # [K] tuples/s that plans carry of the present mix of sources, with headroom

    def least_level(self, rate: float) -> int:
        """Return the cheapest plan that carries a rate; the largest plan if none does."""
        fits = self.capacity >= rate
        return int(fits.argmax()) if fits.any() else len(fits) - 1


class Policy(Protocol):
    """A rule that chooses plans; it may remember what it has observed."""

    def choose(self, observed: SlotObservation, /) -> int:
        """Number of the plan that the job should run from now on."""


MakePolicy = Callable[[PlanChoice], Policy]
"""Returns a policy for plans, which has observed nothing yet."""


POLICIES: Registry[MakePolicy] = Registry("streamplace.control.policies", "policy")


def policy(name: str) -> Callable[[type], type]:
    """Register a class of policies, whose constructor takes a `PlanChoice`."""

    def register(kind: type) -> type:
        POLICIES.add(name, kind)
        return kind

    return register


def policies_of(value: Any) -> Any:
    """Names and makers of policies; the name ``"all"`` stands for all registered policies."""
    if not isinstance(value, Iterable):
        return value
    chosen: list[Any] = []
    for policy in [value] if isinstance(value, str) else value:
        names = POLICIES if policy == "all" else [policy]
        pairs = [(name, POLICIES[name]) for name in names] if isinstance(policy, str) else [policy]
        chosen += [pair for pair in pairs if pair not in chosen]
    return chosen
