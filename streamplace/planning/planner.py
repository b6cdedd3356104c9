"""``plan``: the cheapest machines, parallelisms and placement for a rate, with a proven bound."""

from collections.abc import Callable
from typing import NamedTuple

from streamplace.errors import ProblemError
from streamplace.model.graph import StreamGraph
from streamplace.placers.meter import Meter
from streamplace.planning.bounds import CostBound, proven_bound
from streamplace.planning.demand import Demand, demand_of
from streamplace.planning.improving import with_fewer_subtasks, with_most_room
from streamplace.planning.naming import result_of
from streamplace.planning.offers import Catalogue
from streamplace.planning.refusals import check_offers, check_tags, refusal, slow_operator
from streamplace.planning.result import PlanResult
from streamplace.planning.search import Accept, PackedMachines, PlanSearch
from streamplace.planning.settings import USUAL_SETTINGS, PlanSettings
from streamplace.planning.steps import neighbouring_steps

PROOF = 0.4
"""Share of the time that the bound may take."""
SEARCH = 0.85
"""Share of the time after which the search ends, where neighbouring steps follow."""
CHEAPEST = 0.95
"""Share of the search that looks for cheaper machines; then the machines stay."""
CHEAPER = 0.93
"""Share of the time after which the step with one machine less ends."""


class CheapestMachines(NamedTuple):
    """The cheapest machines that were found for a demand.

    Attributes
    ----------
    demand
        What the graph asks for at the rate for which the headroom stays free.
    headroom
        Share of every resource that stays free.
    bound
        A bound of the cost of every plan, with the cuts that prove it.
    packed
        The machines and what runs on them.
    """

    demand: Demand
    headroom: float
    bound: CostBound
    packed: PackedMachines


def planned(
    graph: StreamGraph, catalogue: Catalogue, settings: PlanSettings = USUAL_SETTINGS
) -> PlanResult:
    """Return the cheapest plan for the rate of a graph, and a bound of the cost of every plan.

    Raises
    ------
    ProblemError
        When no machines carry the rate; the message names the resource.
    """
    meter = Meter(settings.budget, 1)
    machines = cheapest_machines(graph, catalogue, settings, meter, SEARCH)
    steps = neighbouring_steps(
        graph,
        machines.demand,
        catalogue,
        machines.packed,
        settings.seed,
        (_ended(meter, CHEAPER), _ended(meter, 1.0)),
    )
    return result_of(
        graph,
        machines.demand,
        catalogue,
        machines.packed,
        machines.bound,
        steps,
        headroom=machines.headroom,
        seed=settings.seed,
    )


def cheapest_machines(
    graph: StreamGraph,
    catalogue: Catalogue,
    settings: PlanSettings,
    meter: Meter,
    share: float = 1.0,
    accept: Accept | None = None,
) -> CheapestMachines:
    """Search the cheapest machines for the rate of a graph, and prove a bound.

    Parameters
    ----------
    meter
        The clock of the budget.
    share
        Share of the time after which the search ends.
    accept
        Takes packed machines, or changes them, or refuses them, and the search goes on; by default
        the closed form of the simulator accepts those that carry the rate.
    """
    free = settings.headroom.share(graph, catalogue)
    faster = graph.at_rate(graph.source_rate / (1 - free))
    demand = demand_of(faster, settings.error, settings.robust, settings.keep_parallelism)
    check_tags(demand, catalogue)
    if slow_operator(demand, catalogue):
        raise ProblemError(refusal(graph, demand, catalogue, None, settings.seed))
    check_offers(demand, catalogue)
    bound = proven_bound(demand, catalogue, _ended(meter, PROOF))
    moves, stop = settings.budget.evaluations, _ended(meter, share * CHEAPEST)
    search = PlanSearch(demand, catalogue, settings.seed, stop, moves, accept)
    packed = None if bound is None else search.run(bound)
    if bound is None or packed is None:
        raise ProblemError(refusal(graph, demand, catalogue, bound, settings.seed))
    for improve in (with_fewer_subtasks, with_most_room):
        packed = improve(demand, catalogue, packed, search.walked, _ended(meter, share))
    return CheapestMachines(demand, free, bound, packed)


def _ended(meter: Meter, share: float) -> Callable[[], bool]:
    """Return whether a share of the time is over, as a function."""
    whole = meter.seconds

    def ended() -> bool:
        left = meter.seconds
        return left is not None and whole is not None and left <= (1 - share) * whole

    return ended
