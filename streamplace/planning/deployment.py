"""Deployment: a plan as a graph, a cluster and a placement of subtasks."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamplace.model.arrays import Ints
from streamplace.model.cluster import Cluster
from streamplace.model.expansion import Expansion, expand, with_parallelism
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.units import UNLIMITED_BPS
from streamplace.planning.demand import EITHER, FORWARD, Demand
from streamplace.planning.offers import Catalogue

ROUNDING = 1e-8
"""Share by which the simulator's closed form may miss a rate that counts as carried."""


@dataclass(frozen=True, slots=True, eq=False)
class PlannedDeployment:
    """Subtasks, machines, and the placement of the subtasks on them.

    Attributes
    ----------
    expansion
        The graph at its rate and the planned parallelisms, and its subtasks.
    cluster
        The machines, named after their offers.
    placement
        The machine of every subtask.
    """

    expansion: Expansion
    cluster: Cluster
    placement: Placement

    @property
    def problem(self) -> Problem:
        """The placement problem of the subtasks on the cluster."""
        return Problem(self.expansion.graph, self.cluster)

    @property
    def carried(self) -> float:
        """Share of the rate that the machines carry, by the closed form of the simulator."""
        from streamsim import throughput

        return float(throughput(self.problem.instance, self.placement.index[None])[0])

    @property
    def carries(self) -> bool:
        """Whether the machines carry the rate."""
        return self.carried >= 1 - ROUNDING


def deployment_of(
    demand: Demand, catalogue: Catalogue, parallelism: Ints, kinds: Sequence[int], rows: Ints
) -> PlannedDeployment:
    """Return the deployment of machines and the numbers of subtasks on them.

    Parameters
    ----------
    kinds
        Type of each machine, [D].
    rows
        [D, N] number of subtasks of each operator on each machine.
    """
    graph = with_parallelism(demand.graph, parallelism)
    expansion = expand(graph)
    cluster = _cluster(catalogue, kinds)
    where = _paired(demand, parallelism, rows)
    names = expansion.graph.operators.name
    placement = Placement(names, cluster.devices.name, np.concatenate(where).astype(np.int32))
    return PlannedDeployment(expansion, cluster, placement)


def machine_names(catalogue: Catalogue, kinds: Sequence[int]) -> tuple[str, ...]:
    """Name each machine after its offer, with a running number."""
    number: dict[int, int] = {}
    names = []
    for kind in kinds:
        i = number.get(kind, 0)
        number[kind] = i + 1
        names.append(f"{catalogue.offers[kind].name}-{i}")
    return tuple(names)


def _cluster(catalogue: Catalogue, kinds: Sequence[int]) -> Cluster:
    names = machine_names(catalogue, kinds)
    return Cluster.of(
        [catalogue.offers[kind].device(name) for kind, name in zip(kinds, names, strict=True)],
        bandwidth=UNLIMITED_BPS,
        overhead=catalogue.overhead,
        overhead_per_byte=catalogue.overhead_per_byte,
    )


def _paired(demand: Demand, parallelism: Ints, rows: Ints) -> list[Ints]:
    """Machine of each subtask of each operator, with forward partners together where possible."""
    partner: dict[int, int] = {}
    for e, (u, v) in enumerate(zip(demand.source.tolist(), demand.target.tolist(), strict=True)):
        equal = demand.joined[e] == EITHER and parallelism[u] == parallelism[v]
        if demand.joined[e] == FORWARD or equal:
            partner.setdefault(v, u)
    where: list[Ints | None] = [None] * demand.n_operators
    for v in demand.graph.order.tolist():
        place = np.full(parallelism[v], -1, np.int32)
        u = partner.get(v)
        beside = where[u] if u is not None else None
        left = rows[:, v].copy()
        if beside is not None:
            for m in range(len(left)):
                chosen = np.flatnonzero(beside == m)[: left[m]]
                place[chosen] = m
                left[m] -= len(chosen)
        place[place < 0] = np.repeat(np.arange(len(left), dtype=np.int32), left)
        where[v] = place
    return [place for place in where if place is not None]
