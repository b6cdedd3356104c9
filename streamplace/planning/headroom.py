"""Headroom: the share of every resource that stays free, derived from what it is for."""

from dataclasses import dataclass
from math import inf

import numpy as np

from streamplace.errors import SettingError
from streamplace.model.graph import StreamGraph
from streamplace.planning.offers import Catalogue


@dataclass(frozen=True, slots=True)
class Headroom:
    """What is to be possible beside the rate.

    Attributes
    ----------
    restart
        Seconds that a restart stops the job; tuples wait meanwhile.
    catch_up
        Seconds after which they have been worked off.
    latency
        Seconds that a tuple may wait for cores on its way, in the mean.
    variability
        Mean of the squared coefficients of variation of the times between tuples and of the times
        that operators take; 1 as for exponential times.
    flat
        Share that stays free besides.

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
        """Share that stays free for all of it."""
        catching_up, waiting = self.of_catching_up(), self.of_waiting(graph, catalogue)
        return 1 - (1 - self.flat) * (1 - catching_up) * (1 - waiting)

    def factors(self, graph: StreamGraph, catalogue: Catalogue) -> dict[str, float]:
        """Multiple of the rate that the plan is made for, by what it is for; 1 is left out."""
        shares = {
            "a restart": self.of_catching_up(),
            "short queues": self.of_waiting(graph, catalogue),
            "the share that stays free": self.flat,
        }
        return {reason: 1 / (1 - share) for reason, share in shares.items() if share}

    def of_catching_up(self) -> float:
        """Share for what has waited during a restart: r / (c + r) of restart r and catch-up c."""
        return 1 - 1 / (1 + self.restart / self.catch_up)

    def of_waiting(self, graph: StreamGraph, catalogue: Catalogue) -> float:
        """Share for short queues.

        A subtask is a queue with one server, in which tuples wait W = V · ρ / (1 − ρ) · s (Allen
        and Cunneen), with the utilization ρ, the variability V and s seconds per tuple. Operators
        on the longest way through the graph share the latency evenly.

        Where an operator uses CPU at any rate, tuples have the rest of the core, and take longer by
        as much. A plan has more subtasks than cores that are used at any rate, or nothing would be
        left; the share is sufficient with the fewest.
        """
        if self.latency == inf:
            return 0.0
        seconds = self.variability * max(
            _longest_service(graph, offer.core_speed) for offer in catalogue.offers
        )
        wait = self.latency / _longest_way(graph)
        return seconds / (wait + seconds)


def _longest_service(graph: StreamGraph, speed: float) -> float:
    """Most seconds that a tuple takes of what constant loads leave of a core of this speed."""
    cores = 1e6 * graph.operators.constant / speed
    share_left = 1 - cores / (np.floor(cores) + 1)
    return float((graph.charged_ipt / speed / share_left).max())


def _longest_way(graph: StreamGraph) -> int:
    """Operators on the longest way through a graph."""
    length = np.ones(graph.n_operators, np.int64)
    flow = graph.flow
    for u, v in zip(flow.source.tolist(), flow.target.tolist(), strict=True):
        length[v] = max(length[v], length[u] + 1)
    return int(length.max())
