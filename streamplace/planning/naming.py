"""Naming: turns packed machines into a plan with the names of machines and operators."""

from math import inf

import numpy as np

from streamplace.model.arrays import Floats, Ints
from streamplace.planning.bounds import CostBound
from streamplace.planning.contents import CORE, RESOURCES, Packing, packing_of
from streamplace.planning.counts import Prices
from streamplace.planning.demand import Demand
from streamplace.planning.deployment import machine_names
from streamplace.planning.links import deployed, fullest_link
from streamplace.planning.offers import Catalogue
from streamplace.planning.packed import PackedMachines, largest_use
from streamplace.planning.problem import PlanProblem
from streamplace.planning.result import PlanLimit, PlanResult, PlanStep, PlanSteps
from streamplace.planning.slots import PlanSlots, slot_groups, slots_of
from streamplace.planning.steps import FLOWING, growing_use, rate_of, use_at


def result_of(
    problem: PlanProblem, packed: PackedMachines, bound: CostBound, steps: PlanSteps
) -> PlanResult:
    """Return the plan of packed machines, with names in place of numbers."""
    demand, catalogue, graph = problem.demand, problem.catalogue, problem.graph
    deployment = deployed(problem, packed)
    packing = packing_of(demand, catalogue, packed.parallelism)
    use = largest_use(packing, packed)
    prices, counts = Prices.of(catalogue), packed.counts(len(catalogue.offers))
    cheaper, dearer = steps
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
        cost=float(prices.cost(counts) * prices.unit),
        bound=bound.value,
        bounds=bound.by_strength,
        machines=_named(catalogue, counts) if problem.cluster is None else dict.fromkeys(names, 1),
        parallelism=dict(zip(demand.name, packed.parallelism.tolist(), strict=True)),
        cluster=deployment.cluster,
        placement=deployment.placement,
        limit=limit,
        free=_free(packing.capacity[packed.kinds], use),
        carries=rate_of(problem, packed) / (1 - problem.headroom),
        cheaper=cheaper,
        dearer=dearer,
        seed=problem.settings.seed,
        slots=slots,
        priced=problem.cluster is None,
        prices={offer.name: float(offer.price) for offer in catalogue.offers},
        errors=problem.settings.errors,
        reserves=problem.reserves,
    )


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


def step_of(catalogue: Catalogue, counts: tuple[int, ...], rate: float) -> PlanStep:
    """Cost and rate of these numbers of machines, as a step."""
    prices = Prices.of(catalogue)
    return PlanStep(_named(catalogue, counts), float(prices.cost(counts) * prices.unit), rate)


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
        full = use_at(demand, packing, packed, 1 / inverse) if 0 < inverse < inf else use
    growing = full * flowing if (use[:, FLOWING] > 0).any() else use
    machine, resource = np.unravel_index(int(np.argmax(growing)), use.shape)
    share = packed.rows[machine] / packed.parallelism
    busiest = packing.most[:, 1]
    needs = {
        "cpu": packing.instructions * share,
        "core": packing.instructions * busiest * (share > 0),
        "memory": demand.memory * share,
        "slots": packed.rows[machine].astype(np.float64),
        "egress": _ends(demand, demand.source) * share,
        "ingress": _ends(demand, demand.target) * share,
    }
    name = RESOURCES[resource]
    operator = demand.name[int(np.argmax(needs[name]))]
    return PlanLimit(name, names[machine], operator, float(use[machine, resource]))


def _ends(demand: Demand, end: Ints) -> Floats:
    """Bits per second at the ends of streams, by operator."""
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
