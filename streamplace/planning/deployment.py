"""Deployment: a plan as a graph, a cluster and a placement of subtasks."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from streamplace.model.arrays import Ints
from streamplace.model.cluster import Cluster
from streamplace.model.expansion import Expansion, expand, with_parallelism
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.units import UNLIMITED_BPS
from streamplace.planning.demand import Demand
from streamplace.planning.offers import Catalogue

if TYPE_CHECKING:
    from streamsim.steady import Loads

ROUNDING = 1e-8
"""Share by which the simulator's closed form may miss a rate that counts as carried."""


@dataclass(frozen=True, slots=True, eq=False)
class PlannedDeployment:
    """Subtasks, machines, and the placement of the subtasks on them."""

    expansion: Expansion  # the graph at its rate and the planned parallelisms, and its subtasks
    cluster: Cluster  # the machines, named after their offers
    placement: Placement  # the machine of every subtask
    # Whether subtasks that are joined one to one are on different machines, although the contents
    # of machines alone would let them be together.
    is_apart: bool = False

    @property
    def problem(self) -> Problem:
        """The placement problem of the subtasks on the cluster."""
        return Problem(self.expansion.graph, self.cluster, known=self.placement)

    @property
    def carried(self) -> float:
        """Share of the rate that the machines carry, by the closed form of the simulator."""
        from streamsim import throughput

        return float(throughput(self.problem.instance, self.placement.index[None])[0])

    @property
    def loads(self) -> "Loads":
        """Loads of the machines and links, by the simulator."""
        from streamsim import resource_loads

        return resource_loads(self.problem.instance, self.placement.index)

    @property
    def carries(self) -> bool:
        """Whether the machines carry the rate."""
        return self.carried >= 1 - ROUNDING


def deployment_of(
    demand: Demand, catalogue: Catalogue, parallelism: Ints, kinds: Sequence[int], rows: Ints
) -> PlannedDeployment:
    """Return the deployment of machines of types [D] with ``rows`` [D, N] of subtasks on them."""
    graph = with_parallelism(demand.graph, parallelism)
    expansion = expand(graph)
    cluster = _cluster(catalogue, kinds)
    where, is_apart = _paired(demand, parallelism, rows)
    names = expansion.graph.operators.name
    placement = Placement(names, cluster.devices.name, np.concatenate(where).astype(np.int32))
    return PlannedDeployment(expansion, cluster, placement, is_apart)


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


def _paired(demand: Demand, parallelism: Ints, rows: Ints) -> tuple[list[Ints], bool]:
    """Machine of each subtask of each operator, and whether partners are apart.

    Each operator is put beside the partners of its first one-to-one input. If partners of other
    inputs are then apart that could be together, operators are put beside each other along the
    heaviest one-to-one streams instead. If these form loops, some partners may remain apart.
    """
    best: list[Ints] = []
    least = inf
    for way in (_first_inputs, _one_to_one_trees):
        where = _beside(demand, rows, way(demand, parallelism))
        crossing = _crossing(demand, parallelism, rows, where)
        if crossing < least:
            best, least = where, crossing
        if not least:
            break
    return best, least > 0


def _beside(demand: Demand, rows: Ints, neighbours: list[list[int]]) -> list[Ints]:
    """Machine of each subtask, with operators put beside their neighbours in turn."""
    where: dict[int, Ints] = {}
    for root in demand.graph.order.tolist():
        alone = np.full(rows[:, root].sum(), -1, np.int32)
        waiting = [] if root in where else [(root, alone)]
        while waiting:
            v, partners = waiting.pop()
            where[v] = _placed(rows[:, v], partners)
            waiting += [(u, where[v]) for u in neighbours[v] if u not in where]
    return [where[v] for v in range(demand.n_operators)]


def _crossing(demand: Demand, parallelism: Ints, rows: Ints, where: list[Ints]) -> float:
    """Bits and tuples per second between partners that could be on one machine but are apart."""
    apart = 0.0
    for e in np.flatnonzero(demand.one_to_one(parallelism)).tolist():
        u, v = int(demand.source[e]), int(demand.target[e])
        pairs = int(np.minimum(rows[:, u], rows[:, v]).sum() - (where[u] == where[v]).sum())
        apart += pairs / float(parallelism[u]) * float(demand.bits[e] + demand.tuples[e])
    return apart


def _placed(row: Ints, partners: Ints) -> Ints:
    """Machine of each subtask of an operator, of which ``row`` counts those on each machine."""
    place, left = np.full(len(partners), -1, np.int32), row.copy()
    for m in range(len(left)):
        chosen = np.flatnonzero(partners == m)[: left[m]]
        place[chosen] = m
        left[m] -= len(chosen)
    place[place < 0] = np.repeat(np.arange(len(left), dtype=np.int32), left)
    return place


def _first_inputs(demand: Demand, parallelism: Ints) -> list[list[int]]:
    """Operators whose first one-to-one input is each operator."""
    streams = np.flatnonzero(demand.one_to_one(parallelism)).tolist()
    first: dict[int, int] = {}
    for e in streams:
        first.setdefault(int(demand.target[e]), int(demand.source[e]))
    neighbours: list[list[int]] = [[] for _ in range(demand.n_operators)]
    for v, u in first.items():
        neighbours[u].append(v)
    return neighbours


def _one_to_one_trees(demand: Demand, parallelism: Ints) -> list[list[int]]:
    """Neighbours of each operator in a spanning forest of one-to-one streams, the heaviest."""
    streams = np.flatnonzero(demand.one_to_one(parallelism))
    heaviest = np.lexsort((-demand.tuples[streams], -demand.bits[streams]))
    neighbours: list[list[int]] = [[] for _ in range(demand.n_operators)]
    tree = np.arange(demand.n_operators)
    for e in streams[heaviest].tolist():
        u, v = int(demand.source[e]), int(demand.target[e])
        if tree[u] != tree[v]:
            tree[tree == tree[v]] = tree[u]
            neighbours[u].append(v)
            neighbours[v].append(u)
    return neighbours


def has_loops(demand: Demand, parallelism: Ints) -> bool:
    """Whether one-to-one streams form loops, so that partners may have to be apart."""
    direct = demand.one_to_one(parallelism)
    pairs = set(zip(demand.source[direct].tolist(), demand.target[direct].tolist(), strict=True))
    in_trees = sum(map(len, _one_to_one_trees(demand, parallelism))) // 2
    return len(pairs) > in_trees
