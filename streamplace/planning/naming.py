"""Naming: a packing of machines as a plan for people."""

from dataclasses import replace

import numpy as np

from streamplace.model.arrays import Floats, Ints
from streamplace.model.graph import StreamGraph
from streamplace.planning.bounds import CostBound
from streamplace.planning.contents import CORE, CPU, EGRESS, INGRESS, RESOURCES, Packing, packing_of
from streamplace.planning.counts import Prices
from streamplace.planning.demand import Demand
from streamplace.planning.deployment import PlannedDeployment, deployment_of
from streamplace.planning.offers import Catalogue
from streamplace.planning.result import PlanLimit, PlanResult, PlanStep, PlanSteps
from streamplace.planning.search import PackedMachines, largest_use
from streamplace.planning.slots import PlanSlots, slot_groups, slots_of

FLOWING = (CPU, CORE, EGRESS, INGRESS)
"""Resources of which use grows with the rate."""


def result_of(
    graph: StreamGraph,
    demand: Demand,
    catalogue: Catalogue,
    packed: PackedMachines,
    bound: CostBound,
    steps: PlanSteps,
    *,
    headroom: float,
    seed: int,
) -> PlanResult:
    """Name everything in a plan for people."""
    deployment = deployment_of(
        demand, catalogue, packed.parallelism, packed.kinds.tolist(), packed.rows
    )
    packing = packing_of(demand, catalogue, packed.parallelism)
    use = largest_use(packing, packed)
    prices, counts = Prices.of(catalogue), packed.counts(len(catalogue.offers))
    names = demand.name
    carries = _carried(graph.source_rate / (1 - headroom), float(use[:, FLOWING].max()))
    cheaper, dearer = steps
    if dearer is not None:  # at least what the plan itself carries, with a machine that is idle
        dearer = replace(dearer, rate=max(dearer.rate, carries))
    return PlanResult(
        graph=deployment.expansion.original.at_rate(graph.source_rate),
        rate=graph.source_rate,
        headroom=headroom,
        cost=float(prices.cost(counts) * prices.unit),
        bound=bound.value,
        bounds=bound.by_strength,
        machines=_named(catalogue, counts),
        parallelism=dict(zip(names, packed.parallelism.tolist(), strict=True)),
        cluster=deployment.cluster,
        placement=deployment.placement,
        limit=_limit(demand, packed, packing, deployment, use),
        free=_free(packing.capacity[packed.kinds], use),
        carries=carries,
        cheaper=cheaper,
        dearer=dearer,
        seed=seed,
        slots=_slots(demand, catalogue, packed),
        prices={offer.name: float(offer.price) for offer in catalogue.offers},
    )


def _slots(demand: Demand, catalogue: Catalogue, packed: PackedMachines) -> PlanSlots:
    taken = slots_of(slot_groups(demand, catalogue), packed.rows)
    largest = {
        offer.name: int(taken[packed.kinds == t].max())
        for t, offer in enumerate(catalogue.offers)
        if (packed.kinds == t).any()
    }
    shared = int(slots_of(demand.slot_group, packed.parallelism[None])[0])
    return PlanSlots(catalogue.slot_sharing, int(packed.parallelism.sum()), shared, largest)


def step_of(catalogue: Catalogue, counts: tuple[int, ...], rate: float) -> PlanStep:
    """What so many machines of each type cost and carry."""
    prices = Prices.of(catalogue)
    return PlanStep(_named(catalogue, counts), float(prices.cost(counts) * prices.unit), rate)


def _carried(rate: float, use: float) -> float:
    """Rate at which the use of the fullest resource is 1."""
    return rate / use if use else float("inf")


def _named(catalogue: Catalogue, counts: tuple[int, ...]) -> dict[str, int]:
    return {o.name: n for o, n in zip(catalogue.offers, counts, strict=True) if n}


def _limit(
    demand: Demand,
    packed: PackedMachines,
    packing: Packing,
    deployment: PlannedDeployment,
    use: Floats,
) -> PlanLimit:
    flowing = np.zeros(use.shape[1])
    flowing[list(FLOWING)] = 1  # memory and slots in use do not grow with the rate
    growing = use * flowing if (use[:, FLOWING] > 0).any() else use
    machine, resource = np.unravel_index(int(np.argmax(growing)), use.shape)
    share = packed.rows[machine] / packed.parallelism
    busiest = packing.most[:, 1]
    needs = {
        "cpu": demand.instructions * share,
        "core": demand.instructions * busiest * (share > 0),
        "memory": demand.memory * share,
        "slots": packed.rows[machine].astype(np.float64),
        "egress": _ends(demand, demand.source) * share,
        "ingress": _ends(demand, demand.target) * share,
    }
    name = RESOURCES[resource]
    operator = demand.name[int(np.argmax(needs[name]))]
    device = deployment.cluster.devices.name[machine]
    return PlanLimit(name, device, operator, float(use[machine, resource]))


def _ends(demand: Demand, end: Ints) -> Floats:
    """Bits per second at the ends of streams, by operator."""
    return np.bincount(end, demand.bits, demand.n_operators).astype(np.float64)


def _free(capacity: Floats, use: Floats) -> dict[str, float]:
    """Share of each resource that is free, of all that is limited."""
    free = {}
    for r, name in enumerate(RESOURCES):
        limited = np.isfinite(capacity[:, r])
        if r != CORE and limited.any():
            used = (use[limited, r] * capacity[limited, r]).sum()
            free[name] = float(1 - used / capacity[limited, r].sum())
    return free
