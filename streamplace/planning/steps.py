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
STEP_PROBES = 7
"""Halvings for plans of one machine less or more."""
PROBE_STEPS = 2_000
"""Moves of the walks that ask what machines carry."""


def neighbouring_steps(
    graph: StreamGraph, demand: Demand, catalogue: Catalogue, packed: PackedMachines, seed: int
) -> PlanSteps:
    """What the plan carries without its cheapest machine, and with one more of the cheapest."""
    offers, counts = catalogue.offers, packed.counts(len(catalogue.offers))
    by_price = sorted(range(len(offers)), key=lambda t: offers[t].price)
    less = next((t for t in by_price if counts[t] > offers[t].at_least), None)
    more = next((t for t in by_price if counts[t] < offers[t].at_most), None)
    steps: list[PlanStep | None] = []
    for kind, change, top in ((less, -1, 1.0), (more, 1, 2.0)):
        if kind is None or sum(counts) + change == 0:
            steps.append(None)
            continue
        changed = tuple(n + change * (t == kind) for t, n in enumerate(counts))

        def carries(factor: float, machines: tuple[int, ...] = changed) -> bool:
            search = PlanSearch(demand.at_rate(factor), catalogue, seed)
            return search.pack(machines, PROBE_STEPS) is not None

        rate = _largest(carries, top, STEP_PROBES) * graph.source_rate
        steps.append(step_of(catalogue, changed, rate))
    return steps[0], steps[1]


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

    return _largest(carries, 1.0, PROBES) * graph.source_rate


def _largest(carries: Callable[[float], bool], top: float, probes: int) -> float:
    """Return the largest factor of the rate, up to ``top``, that is carried, by bisection."""
    low, high = 0.0, top
    for _ in range(probes):
        middle = (low + high) / 2
        if carries(middle):
            low = middle
        else:
            high = middle
    return low
