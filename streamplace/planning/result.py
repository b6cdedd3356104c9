"""The answer of ``plan``: machines, parallelism, placement, cost and bound, and what limits."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import Any

import numpy as np

from streamplace.io.fields import plain
from streamplace.model.arrays import Floats
from streamplace.model.cluster import Cluster
from streamplace.model.graph import StreamGraph
from streamplace.model.placement import Placement
from streamplace.planning.bounds import CostBound
from streamplace.planning.contents import CORE, CPU, EGRESS, INGRESS, RESOURCES, Packing, packing_of
from streamplace.planning.counts import Prices
from streamplace.planning.demand import Demand
from streamplace.planning.deployment import PlannedDeployment, deployment_of
from streamplace.planning.offers import Catalogue
from streamplace.planning.search import PackedMachines, largest_use

FLOWING = (CPU, CORE, EGRESS, INGRESS)
"""Resources of which use grows with the rate."""


@dataclass(frozen=True, slots=True)
class PlanLimit:
    """The resource that is used most.

    Attributes
    ----------
    resource
        "cpu", "core", "memory", "egress", "ingress" or "slots".
    machine
        Name of the machine.
    operator
        The operator that takes most of it.
    use
        Share of the resource in use.
    """

    resource: str
    machine: str
    operator: str
    use: float


@dataclass(frozen=True, slots=True)
class PlanStep:
    """A plan of one machine less or more.

    Attributes
    ----------
    machines
        Number of machines of each type.
    cost
        Price per hour of all machines.
    rate
        Largest rate for which a placement was found, in tuples/s.
    """

    machines: Mapping[str, int]
    cost: float
    rate: float


@dataclass(frozen=True, slots=True, eq=False)
class PlanResult:
    """Machines that carry a rate, what runs on them, and what no plan costs less than.

    Attributes
    ----------
    graph
        The graph at its rate and the planned parallelisms.
    rate
        Tuples/s of all sources.
    headroom
        Share of every resource that stays free at that rate.
    cost
        Price per hour of all machines.
    bound
        No plan costs less; exact, as a fraction.
    bounds
        Bounds of the relaxations, from the cheapest to the strongest.
    machines
        Number of machines of each type.
    parallelism
        Number of subtasks of each operator.
    cluster
        The machines, named after their offers.
    placement
        Machine of every subtask.
    limit
        The resource that is used most.
    free
        Share of each resource that is free, over all machines that have a limit of it.
    carries
        Rate at which the first resource is full, with this placement and without headroom; infinite
        where no resource is used.
    cheaper, dearer
        What one machine less or more carries; None where there is no such plan.
    seed
        Seed of the search.
    """

    graph: StreamGraph
    rate: float
    headroom: float
    cost: float
    bound: Fraction
    bounds: Mapping[str, Fraction]
    machines: Mapping[str, int]
    parallelism: Mapping[str, int]
    cluster: Cluster
    placement: Placement
    limit: PlanLimit
    free: Mapping[str, float]
    carries: float
    cheaper: PlanStep | None
    dearer: PlanStep | None
    seed: int

    def __repr__(self) -> str:
        machines = ", ".join(f"{count} {name}" for name, count in self.machines.items())
        return f"<PlanResult {self.cost:g} per hour (bound {float(self.bound):g}): {machines}>"

    @property
    def gap(self) -> float:
        """Share of the bound by which the cost is above it; 0 for a cheapest plan."""
        return max(0.0, self.cost / float(self.bound) - 1) if self.bound else 0.0

    @property
    def is_cheapest(self) -> bool:
        """Whether no plan costs less."""
        return Fraction(repr(self.cost)) <= self.bound

    def subtasks(self) -> dict[str, dict[str, int]]:
        """Subtasks of each operator on each machine; machines without any are left out."""
        from streamplace.model.expansion import expand

        return expand(self.graph).fold_names(self.placement)

    def to_json(self) -> dict[str, Any]:
        """Return the plan as a JSON document."""
        steps = {"cheaper": self.cheaper, "dearer": self.dearer}
        return {
            "graph": self.graph.name,
            "rate": plain(self.rate),
            "headroom": self.headroom,
            "cost": plain(self.cost),
            "bound": float(self.bound),
            "bound_exact": str(self.bound),
            "gap": self.gap,
            "cheapest": self.is_cheapest,
            "bounds": {name: float(bound) for name, bound in self.bounds.items()},
            "machines": dict(self.machines),
            "parallelism": dict(self.parallelism),
            "subtasks": self.subtasks(),
            "limit": {
                "resource": self.limit.resource,
                "machine": self.limit.machine,
                "operator": self.limit.operator,
                "use": self.limit.use,
            },
            "free": dict(self.free),
            "carries": self.carries if isfinite(self.carries) else None,
            **{name: None if step is None else _step(step) for name, step in steps.items()},
            "seed": self.seed,
        }


def _step(step: PlanStep) -> dict[str, Any]:
    return {"machines": dict(step.machines), "cost": plain(step.cost), "rate": step.rate}


def result_of(
    graph: StreamGraph,
    demand: Demand,
    catalogue: Catalogue,
    packed: PackedMachines,
    bound: CostBound,
    steps: tuple[PlanStep | None, PlanStep | None],
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
        carries=_carried(graph.source_rate / (1 - headroom), float(use[:, FLOWING].max())),
        cheaper=steps[0],
        dearer=steps[1],
        seed=seed,
    )


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
    machine, resource = np.unravel_index(int(np.argmax(use)), use.shape)
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


def _ends(demand: Demand, end: Any) -> Floats:
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
