"""Headroom h: plans are made for 1 / (1 − h) times the rate; h is derived from its purposes."""

from dataclasses import dataclass, fields, replace
from math import inf
from numbers import Real
from typing import Final

import numpy as np

from streamplace.errors import SettingError
from streamplace.model.graph import StreamGraph
from streamplace.model.messages import quoted
from streamplace.planning.offers import Catalogue

MOST_FREE = 1 - 1e-12
"""Largest share that stays free, so that the rest is not 0 by rounding."""
SHORT_QUEUES: Final = "short queues"
"""The purpose of the headroom that a latency asks for."""


@dataclass(frozen=True, slots=True)
class Headroom:
    """Purposes for which plans are made for more than the rate.

    With the share h, a plan is for 1 / (1 − h) times the rate, so that h of each resource whose use
    is proportional to the rate stays free. Memory, slots and constant loads do not grow with it.

    Attributes
    ----------
    restart
        Seconds that a restart stops the job, in which tuples queue up.
    catch_up
        Seconds within which the queued tuples are processed after a restart.
    latency
        Mean seconds that a tuple may wait for cores on its path through the graph.
    variability
        Mean of the squared coefficients of variation of inter-arrival and service times; 1 for
        exponential times.
    flat
        Share that stays free in addition.

    Examples
    --------
    >>> round(Headroom(restart=30, catch_up=600).of_catching_up(), 4)
    0.0476
    """

    restart: float = 0.0
    catch_up: float = inf
    latency: float = inf
    variability: float = 1.0
    flat: float = 0.0

    def __post_init__(self) -> None:
        for purpose in fields(self):
            value = getattr(self, purpose.name)
            if not isinstance(value, Real) or isinstance(value, bool):
                name = "headroom" if purpose.name == "flat" else purpose.name
                raise SettingError(f"{name} is {quoted(value)}; it must be a number")
        for name in ("restart", "variability"):
            value = getattr(self, name)
            if not 0 <= value < inf:
                raise SettingError(f"{name} is {value:g}; it must be 0 or more")
        for name in ("catch_up", "latency"):
            value = getattr(self, name)
            if not value > 0:
                raise SettingError(f"{name} is {value:g} s; it must be above 0")
        if not 0 <= self.flat < 1:
            raise SettingError(f"headroom is {self.flat:g}; it must be at least 0 and less than 1")

    def share(self, graph: StreamGraph, catalogue: Catalogue) -> float:
        """Share that stays free for all purposes together."""
        catching_up, waiting = self.of_catching_up(), self.of_waiting(graph, catalogue)
        return min(MOST_FREE, 1 - (1 - self.flat) * (1 - catching_up) * (1 - waiting))

    def factors(self, graph: StreamGraph, catalogue: Catalogue) -> dict[str, float]:
        """Factor by which each purpose multiplies the rate, without factors of 1."""
        shares = {
            "a restart": self.of_catching_up(),
            SHORT_QUEUES: self.of_waiting(graph, catalogue),
            "the share that stays free": self.flat,
        }
        return {reason: 1 / (1 - share) for reason, share in shares.items() if share}

    def catalogues(self, graph: StreamGraph, catalogue: Catalogue) -> tuple[Catalogue, ...]:
        """Offers for plans of less and less headroom: all, and then only those of faster cores.

        Short queues need headroom for the slowest cores that a plan uses, not for those that are
        on offer. Machines that ``at_least`` requires are in each of the catalogues.
        """
        if self.latency == inf:
            return (catalogue,)
        service = [_longest_service(graph, offer.core_speed) for offer in catalogue.offers]
        pairs = list(zip(catalogue.offers, service, strict=True))
        required = max((seconds for offer, seconds in pairs if offer.at_least), default=0.0)
        limits = sorted({seconds for seconds in service if seconds >= required}, reverse=True)
        return tuple(
            replace(catalogue, offers=tuple(offer for offer, seconds in pairs if seconds <= limit))
            for limit in limits
        )

    def of_catching_up(self) -> float:
        """Share for tuples queued during a restart: r / (c + r) for restart r and catch-up c."""
        return min(MOST_FREE, 1 - 1 / (1 + self.restart / self.catch_up))

    def of_waiting(self, graph: StreamGraph, catalogue: Catalogue) -> float:
        """Share for short queues on the slowest of these machines.

        A subtask is a single-server queue with the mean wait W = V · ρ / (1 − ρ) · s (Allen and
        Cunneen), where ρ is the utilization, V the variability and s the seconds per tuple. The
        operators on the longest path through the graph share the latency evenly.

        A tuple of an operator with a ``max_rate`` takes at least the inverse of that rate.

        A constant load reduces the core's speed for tuples, so s grows accordingly. The
        share is computed for the fewest subtasks whose cores constant loads do not fill; more
        subtasks wait less. Messages count as constant loads, as many as single subtasks send and
        receive.
        """
        if self.latency == inf:
            return 0.0
        seconds = self.variability * max(
            _longest_service(graph, offer.core_speed) for offer in catalogue.offers
        )
        wait = self.latency / _longest_way(graph)
        return min(MOST_FREE, seconds / (wait + seconds))


def _longest_service(graph: StreamGraph, speed: float) -> float:
    """Longest service time of a tuple on a core of this speed, less constant loads and messages."""
    waiting = 1 / graph.operators.largest_rates()
    cores = 1e6 * graph.operators.constant / speed
    if graph.message_loads is not None:
        cores += graph.message_loads.more(np.ones(graph.n_operators, np.int32)) / speed
    share_left = 1 - cores / (np.floor(cores) + 1)
    return float(np.maximum(graph.charged_ipt / speed / share_left, waiting).max())


def _longest_way(graph: StreamGraph) -> int:
    """Number of operators on the longest path through a graph."""
    length = np.ones(graph.n_operators, np.int64)
    flow = graph.flow
    for u, v in zip(flow.source.tolist(), flow.target.tolist(), strict=True):
        length[v] = max(length[v], length[u] + 1)
    return int(length.max())
