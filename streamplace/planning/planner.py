"""``plan``: the cheapest machines, parallelisms and placement for a rate, with a proven bound.

The planner proves a bound, searches, improves the plan that it finds, and checks the result.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from math import inf, isfinite
from typing import NamedTuple

import numpy as np

from streamplace.errors import DefectError, ProblemError
from streamplace.model.arrays import Floats, Ints
from streamplace.model.cluster import Cluster
from streamplace.model.graph import StreamGraph
from streamplace.model.messages import quoted
from streamplace.model.units import digits
from streamplace.placers.meter import Meter
from streamplace.planning.bounds import CostBound, proven_bound
from streamplace.planning.contents import (
    CORE,
    CPU,
    EGRESS,
    INGRESS,
    RESOURCES,
    Packing,
    allowed,
    packing_of,
)
from streamplace.planning.demand import Demand
from streamplace.planning.deployment import PlannedDeployment, machine_names
from streamplace.planning.enumeration import Enumeration, is_small
from streamplace.planning.improving import with_fewer_subtasks, with_most_room
from streamplace.planning.links import acceptor, deployed, fullest_link
from streamplace.planning.notes import notes_of
from streamplace.planning.offers import Catalogue, Prices
from streamplace.planning.packed import PackedMachines, largest_use, without_idle
from streamplace.planning.problem import ROUNDING, USUAL_SETTINGS, PlanProblem, PlanSettings
from streamplace.planning.rates import (
    FLOWING,
    growing_use,
    highest_found,
    largest_rate,
    packed_at,
    rate_of,
    use_at,
)
from streamplace.planning.refusals import check_offers, check_tags, refusal, slow_operator
from streamplace.planning.result import PlanLimit, PlanResult
from streamplace.planning.search import STEPS, PlanSearch
from streamplace.planning.subtasks import PlanSlots, slot_groups, slots_of
from streamplace.planning.verification import contradictions

LOG = logging.getLogger(__name__)

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
    found = _Cheapest([], None, False) if bound is None else _cheapest(problem, bound, meter)
    if found.bound is None or not found.packings:
        if not slow_operator(asked):
            check_offers(asked)
        raise ProblemError(refusal(asked, found.bound, found.is_over))
    for packed in found.packings:
        least, less = _with_fewer_machines(problem, packed, meter)
        result = result_of(problem, least, found.bound)
        result = replace(result, notes=(*less, *result.notes))
        reasons = list(contradictions(asked, result))
        if not reasons:
            return result
        LOG.error("a plan for %s failed its check: %s", asked.graph.name, "; ".join(reasons))
    raise DefectError(
        f"the plan for {quoted(asked.graph.name)} was refused, because it failed its check: "
        f"{reasons[0]}; this is a defect of streamplace, please report it with the graph, the "
        f"machines and seed {asked.settings.seed}"
    )


def _bound(asked: PlanProblem, meter: Meter) -> CostBound | None:
    """Bound of the cost of every plan; None if it is proven that there is no plan."""
    if not _may_have_plan(asked):
        return None
    problem = asked.with_useful_offers()
    return proven_bound(problem.demand, problem.catalogue, _ended(meter, PROOF))


def _may_have_plan(asked: PlanProblem) -> bool:
    """Whether each operator has machines with its tags and fast enough cores, and any fits."""
    demand, catalogue = asked.demand, asked.catalogue
    if not allowed(demand, catalogue).any(axis=0).all() or slow_operator(asked):
        return False
    return asked.cluster is not None or bool(asked.useful_offers())


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


class _Cheapest(NamedTuple):
    """The cheapest machines that were found, and a bound of the cost of all that carry the rate."""

    packings: list[PackedMachines]  # improved, and as they were found; empty if none were
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
        found = Enumeration(problem, acceptor(problem), stop).run(bound, cost)
        if found.bound is None:
            return _Cheapest([], None, is_over)
        search.offer(found.packed)
        cheapest, bound = search.best, found.bound
    if cheapest is None and search.offer(packed_at(problem)):
        search.shrink(STEPS)
        cheapest = search.best
    if cheapest is None:
        return _Cheapest([], bound, is_over)
    packed = cheapest
    for improve in (with_fewer_subtasks, with_most_room):
        packed = improve(problem, packed, search.walked, _ended(meter, share))
        packed = without_idle(packed, problem.catalogue)
    return _Cheapest([packed, cheapest], bound, is_over)


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
        if rate_of(problem, smaller) < problem.rate * (1 - ROUNDING):
            cost = Prices.of(problem.catalogue).per_hour(fewer)
            told = f"{digits(rate, 6)} tuples/s for {cost:g} per hour"
            return packed, (f"With one {offers[less].name} less, a plan carries {told}.",)
        packed = smaller


def _ended(meter: Meter, share: float) -> Callable[[], bool]:
    """Return a function that tells whether a share of the time budget is used up."""
    whole = meter.seconds

    def ended() -> bool:
        left = meter.seconds
        return left is not None and whole is not None and left <= (1 - share) * whole

    return ended


def result_of(problem: PlanProblem, packed: PackedMachines, bound: CostBound) -> PlanResult:
    """Return the plan of packed machines, with names in place of numbers."""
    demand, catalogue, graph = problem.demand, problem.catalogue, problem.graph
    deployment = deployed(problem, packed)
    packing = packing_of(demand, catalogue, packed.parallelism)
    use = largest_use(packing, packed)
    if deployment.is_apart:
        use = np.maximum(use, _simulated_use(deployment, packed))
    counts = packed.counts(len(catalogue.offers))
    names, slots = _machines(problem, packed)
    limit = _limit(demand, packed, packing, names, use)
    if problem.cluster is not None:
        link = fullest_link(deployment.problem, deployment.placement)
        steady = demand.is_proportional
        machine = limit.use if steady else growing_use(demand, packing, packed)
        limit = limit if link is None or link.use <= machine else link
    return PlanResult(
        graph=deployment.expansion.original.at_rate(graph.source_rate),
        rate=graph.source_rate,
        headroom=problem.headroom,
        cost=Prices.of(catalogue).per_hour(counts),
        bound=bound.value,
        bounds=bound.by_strength,
        machines=_named(catalogue, counts) if problem.cluster is None else dict.fromkeys(names, 1),
        parallelism=dict(zip(demand.name, packed.parallelism.tolist(), strict=True)),
        cluster=deployment.cluster,
        placement=deployment.placement,
        limit=limit,
        free=_free(packing.capacity[packed.kinds], use),
        carries=rate_of(problem, packed) / (1 - problem.headroom),
        seed=problem.settings.seed,
        slots=slots,
        priced=problem.cluster is None,
        prices={offer.name: float(offer.price) for offer in catalogue.offers},
        errors=problem.settings.errors,
        reserves=problem.reserves,
        notes=notes_of(problem, packed, deployment),
    )


def _simulated_use(deployment: PlannedDeployment, packed: PackedMachines) -> Floats:
    """Share of every resource of every machine in use in the simulator, [D, 6], or 0."""
    loads, use = deployment.loads, np.zeros((len(packed.kinds), len(RESOURCES)))
    machines = np.arange(len(use)) if packed.devices is None else packed.devices
    columns = {CPU: loads.devices, CORE: loads.cores, EGRESS: loads.egress, INGRESS: loads.ingress}
    for resource, load in columns.items():
        use[:, resource] = load[machines]
    return use


def _machines(problem: PlanProblem, packed: PackedMachines) -> tuple[tuple[str, ...], PlanSlots]:
    """Names of the machines in order, and the slots of the job and of machines or their types."""
    demand, catalogue = problem.demand, problem.catalogue
    taken = slots_of(slot_groups(demand, catalogue), packed.rows)
    shared = int(slots_of(demand.slot_group, packed.parallelism[None])[0])
    if problem.cluster is None or packed.devices is None:
        names = machine_names(catalogue, packed.kinds.tolist())
        largest = {
            offer.name: int(taken[packed.kinds == t].max())
            for t, offer in enumerate(catalogue.offers)
            if (packed.kinds == t).any()
        }
    else:
        names = tuple(problem.cluster.devices.name[d] for d in packed.devices.tolist())
        largest = dict(zip(names, taken.tolist(), strict=True))
    separate = int(packed.parallelism.sum())
    return names, PlanSlots(catalogue.slot_sharing, separate, shared, largest)


def _named(catalogue: Catalogue, counts: tuple[int, ...]) -> dict[str, int]:
    return {o.name: n for o, n in zip(catalogue.offers, counts, strict=True) if n}


def _limit(
    demand: Demand,
    packed: PackedMachines,
    packing: Packing,
    names: tuple[str, ...],
    use: Floats,
) -> PlanLimit:
    """Return the resource that is full first if the rate grows."""
    flowing = np.zeros(use.shape[1])
    flowing[list(FLOWING)] = 1  # memory and slots in use do not grow with the rate
    full = use
    if not demand.is_proportional:
        inverse = growing_use(demand, packing, packed)
        if 0 < inverse < inf:
            full = use_at(demand, packing, packed, 1 / inverse)
            full *= full > use_at(demand, packing, packed, 0.0)  # constant loads alone limit none
    growing = full * flowing if (use[:, FLOWING] > 0).any() else use
    machine, resource = np.unravel_index(int(np.argmax(growing)), use.shape)
    share = packed.rows[machine] / packed.parallelism
    busiest = packing.most[:, 1]
    waiting = packing.at_max_rate * packing.capacity[packed.kinds[machine], CORE]
    needs = {
        "cpu": packing.instructions * share,
        "core": np.maximum(packing.instructions, waiting) * busiest * (share > 0),
        "memory": demand.memory * share,
        "slots": packed.rows[machine].astype(np.float64),
        "egress": _ends(demand, demand.source) * share,
        "ingress": _ends(demand, demand.target) * share,
    }
    name = RESOURCES[resource]
    v = int(np.argmax(needs[name]))
    if name == "core" and waiting[v] > packing.instructions[v]:
        name = "max_rate"
    return PlanLimit(name, names[machine], demand.name[v], float(use[machine, resource]))


def _ends(demand: Demand, end: Ints) -> Floats:
    """Bits per second of the streams at which each operator is this end, [N]."""
    return np.bincount(end, demand.bits, demand.n_operators).astype(np.float64)


def _free(capacity: Floats, use: Floats) -> dict[str, float]:
    """Free share of each resource, over all machines that limit it."""
    free = {}
    for r, name in enumerate(RESOURCES):
        limited = np.isfinite(capacity[:, r])
        if r != CORE and limited.any():
            used = (use[limited, r] * capacity[limited, r]).sum()
            free[name] = float(1 - used / capacity[limited, r].sum())
    return free
