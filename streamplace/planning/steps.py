"""Steps: the largest rates that machines carry, by bisection."""

from collections.abc import Callable

from streamplace.model.graph import StreamGraph
from streamplace.planning.bounds import proven_bound
from streamplace.planning.demand import Demand
from streamplace.planning.naming import step_of
from streamplace.planning.offers import Catalogue
from streamplace.planning.result import PlanStep, PlanSteps
from streamplace.planning.search import PackedMachines, PlanSearch

PROBES = 12
"""Halvings of the interval in which the largest rate lies."""
LESS_PROBES, MORE_PROBES = 7, 6
"""Halvings for plans of one machine less, up to the rate, and more, from the rate to twice it."""
PROBE_STEPS = 2_000
"""Moves of the walks that ask what machines carry."""


def neighbouring_steps(
    graph: StreamGraph,
    demand: Demand,
    catalogue: Catalogue,
    packed: PackedMachines,
    seed: int,
    stops: tuple[Callable[[], bool], Callable[[], bool]],
) -> PlanSteps:
    """What the plan carries without its cheapest machine, and with one more of the cheapest.

    Parameters
    ----------
    stops
        Whether to end each of the two with the largest rate so far.
    """
    offers, counts = catalogue.offers, packed.counts(len(catalogue.offers))
    by_price = sorted(range(len(offers)), key=lambda t: offers[t].price)
    less = next((t for t in by_price if counts[t] > offers[t].at_least), None)
    more = next((t for t in by_price if counts[t] < offers[t].at_most), None)

    def step(
        kind: int | None, change: int, low: float, probes: int, stop: Callable[[], bool]
    ) -> PlanStep | None:
        if kind is None or sum(counts) + change == 0:
            return None
        changed = tuple(n + change * (t == kind) for t, n in enumerate(counts))

        def carries(factor: float) -> bool:
            search = PlanSearch(demand.at_rate(factor), catalogue, seed, stop)
            return search.pack(changed, PROBE_STEPS) is not None

        factor = largest_factor(carries, low, low + 1, probes, stop)
        if not factor and stop():
            return None
        return step_of(catalogue, changed, factor * graph.source_rate)

    return (
        step(less, -1, 0.0, LESS_PROBES, stops[0]),
        step(more, 1, 1.0, MORE_PROBES, stops[1]),
    )


def largest_rate(graph: StreamGraph, demand: Demand, catalogue: Catalogue, seed: int) -> float:
    """Return the largest rate for which the cheapest machines were found, and some more."""

    def carries(factor: float) -> bool:
        slower = demand.at_rate(factor)
        bound = proven_bound(slower, catalogue, lambda: True)
        if bound is None:
            return False
        counts = [
            min(offer.at_most, max(offer.at_least, 4 * count))
            for offer, count in zip(catalogue.offers, bound.counts, strict=True)
        ]
        search = PlanSearch(slower, catalogue, seed)
        return search.pack(counts, PROBE_STEPS) is not None

    return largest_factor(carries, 0.0, 1.0, PROBES) * graph.source_rate


def largest_factor(
    carries: Callable[[float], bool],
    low: float,
    high: float,
    probes: int,
    stop: Callable[[], bool] = lambda: False,
) -> float:
    """Return the largest factor of the rate that is carried, by bisection; ``low`` is."""
    for _ in range(probes):
        if stop():
            break
        middle = (low + high) / 2
        if carries(middle):
            low = middle
        else:
            high = middle
    return low
