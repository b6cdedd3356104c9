"""``plan``: the cheapest machines, parallelisms and placement for a rate, with a proven bound.

The planner proves a bound, searches, improves the plan that it finds, and checks the result.
"""

from collections.abc import Callable
from dataclasses import replace
from math import isfinite
from typing import NamedTuple

from streamplace.errors import DefectError, ProblemError
from streamplace.model.cluster import Cluster
from streamplace.model.graph import StreamGraph
from streamplace.model.messages import quoted
from streamplace.model.units import digits
from streamplace.placers.meter import Meter
from streamplace.planning.answers import (
    check_offers,
    check_tags,
    refusal,
    result_of,
    slow_operator,
)
from streamplace.planning.bounds import CostBound, proven_bound
from streamplace.planning.cuts import least_subtasks
from streamplace.planning.deployment import acceptor
from streamplace.planning.enumeration import Enumeration, is_small
from streamplace.planning.offers import Catalogue, Prices
from streamplace.planning.packing import SLACK, PackedMachines, without_idle
from streamplace.planning.problem import USUAL_SETTINGS, PlanProblem, PlanSettings
from streamplace.planning.rates import highest_found, largest_rate, packed_at, rate_of
from streamplace.planning.result import PlanResult
from streamplace.planning.search import STEPS, PlanSearch
from streamplace.planning.verification import contradictions

PROOF = 0.4
"""Share of the time budget for the bound."""
SEARCH = 0.93
"""Share of the time budget after which the search ends, so that one machine less can be tried."""
CHEAPEST = 0.95
"""Part of the search's time for cheaper machines; the rest improves the plan on its machines."""


def planned(
    graph: StreamGraph, machines: Catalogue | Cluster, settings: PlanSettings = USUAL_SETTINGS
) -> PlanResult:
    """Return the cheapest plan for the rate of a graph, and a bound of the cost of every plan.

    The machines of a cluster cost 1 each, so that the plan uses few of them.
    """
    asked = PlanProblem.of(graph, machines, settings)
    check_tags(asked)
    meter = Meter(settings.budget, 1)
    problem, bound = asked.with_useful_offers(), _bound(asked, meter)
    found = _Cheapest(None, None, False) if bound is None else _cheapest(problem, bound, meter)
    if found.bound is None or found.packed is None:
        if not slow_operator(asked):
            check_offers(asked)
        raise ProblemError(refusal(asked, found.bound, found.is_over))
    fewest, notes = _with_fewer_machines(problem, found.packed, meter)
    result = result_of(problem, fewest, found.bound)
    result = replace(result, notes=(*notes, *result.notes))
    reason = next(contradictions(asked, result), None)
    if reason is None:
        return result
    raise DefectError(
        f"the plan for {quoted(asked.graph.name)} was refused, because it failed its check: "
        f"{reason}; this is a defect of streamplace, please report it with the graph, the "
        f"machines and seed {asked.settings.seed}"
    )


def planned_most(
    graph: StreamGraph, machines: Catalogue | Cluster, settings: PlanSettings = USUAL_SETTINGS
) -> PlanResult:
    """Return a plan for the highest rate for which one is found, of the rates that are tried."""
    asked = PlanProblem.of(graph, machines, settings)
    check_tags(asked)
    rate = highest_found(asked)
    if not rate:
        meter = Meter(settings.budget, 1)
        bound = _bound(asked, meter)
        raise ProblemError(refusal(asked, bound, _ended(meter, PROOF)()))
    result = planned(graph.at_rate(rate), machines, settings)
    if not isfinite(result.carries):
        raise ProblemError(
            f"the machines carry any rate of {quoted(graph.name)}, so there is no highest one; "
            "give a rate"
        )
    return result


def _bound(asked: PlanProblem, meter: Meter) -> CostBound | None:
    """Bound of the cost of every plan; None if it is proven that there is no plan."""
    if not least_subtasks(asked.demand, asked.catalogue).all():
        return None  # an operator has no machines with its tags, or no core that is fast enough
    if asked.cluster is None and not asked.useful_offers():
        return None
    problem = asked.with_useful_offers()
    return proven_bound(problem.demand, problem.catalogue, _ended(meter, PROOF))


class _Cheapest(NamedTuple):
    """The cheapest machines that were found, and a bound of the cost of all that carry the rate."""

    packed: PackedMachines | None  # None if none were found
    bound: CostBound | None  # None if it is proven that there is no plan
    is_over: bool  # whether the budget ended the search


def _cheapest(problem: PlanProblem, bound: CostBound, meter: Meter) -> _Cheapest:
    """Search for the cheapest machines; try all plans of a small problem if that proves nothing.

    If the search finds none, try the packing from which an error message takes the largest possible
    rate, so that it cannot name the rate that is refused.
    """
    share = SEARCH if problem.cluster is None else 1.0
    stop, moves = _ended(meter, share * CHEAPEST), problem.settings.budget.evaluations
    search = PlanSearch(problem, stop, moves)
    cheapest, is_over = search.run(bound), search.is_over
    cost, unit = search.cost, Prices.of(problem.catalogue).unit
    if is_small(problem) and (cost is None or cost * unit > bound.value):
        cheaper, raised = Enumeration(problem, acceptor(problem), stop).run(bound, cost)
        if raised is None:
            return _Cheapest(None, None, is_over)
        search.offer(cheaper)
        cheapest, bound = search.best, raised
    if cheapest is None and search.offer(packed_at(problem)):
        search.shrink(STEPS)
        cheapest = search.best
    if cheapest is None:
        return _Cheapest(None, bound, is_over)
    packed = cheapest
    for improve in (search.with_fewer_subtasks, search.with_most_room):
        packed = without_idle(improve(packed, _ended(meter, share)), problem.catalogue)
    return _Cheapest(packed, bound, is_over)


def _with_fewer_machines(
    problem: PlanProblem, packed: PackedMachines, meter: Meter
) -> tuple[PackedMachines, tuple[str, ...]]:
    """Leave out one machine of the cheapest type that allows it as long as the rest is enough.

    Also say what the last that was tried, with too few machines, carries.
    """
    if problem.cluster is not None:
        return packed, ()
    offers, stop = problem.catalogue.offers, _ended(meter, 1.0)
    by_price = sorted(range(len(offers)), key=lambda t: offers[t].price)
    while True:
        counts = packed.counts(len(offers))
        less = next((t for t in by_price if counts[t] > offers[t].at_least), None)
        if less is None or sum(counts) == 1:
            return packed, ()
        fewer = tuple(n - (t == less) for t, n in enumerate(counts))
        rate, smaller = largest_rate(problem, fewer, stop)
        if smaller is None:
            return packed, ()
        if rate_of(problem, smaller) < problem.rate * (1 - SLACK):
            cost = Prices.of(problem.catalogue).per_hour(fewer)
            carries = f"{digits(rate, 6)} tuples/s for {cost:g} per hour"
            return packed, (f"With one {offers[less].name} less, a plan carries {carries}.",)
        packed = smaller


def _ended(meter: Meter, share: float) -> Callable[[], bool]:
    """Return a function that tells whether a share of the time budget is used up."""
    whole = meter.seconds

    def ended() -> bool:
        left = meter.seconds
        return left is not None and whole is not None and left <= (1 - share) * whole

    return ended
