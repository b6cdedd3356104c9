"""Partitioners of other people as placers of large graphs, where their packages are installed."""

import importlib.util
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from streamplace.model import Placement, Problem
from streamplace.placers import partition

IMBALANCE = 0.03
EDGE_SCALE = 10
"""KaHIP adds up edges from both ends in 32 bits, with room for less than the others."""


class Placed(NamedTuple):
    """A placement, the CPU seconds that it took, and the bound that was proven."""

    placement: Placement
    seconds: float
    bound: float = 1.0


Partitioner = Callable[[Problem], Placed]


class Parts(NamedTuple):
    """A problem as partitioners take it: undirected, with whole weights."""

    loads: partition.Longs
    graph: partition.Neighbours
    power: list[float]

    @classmethod
    def of(cls, problem: Problem) -> "Parts":
        """Weights as METIS is given them."""
        instance, n = problem.instance, problem.n_operators
        weight = np.maximum(partition.whole(instance.traffic), 1)
        graph = partition.neighbours(problem, partition.unit_of(problem), n, weight)
        power = partition.power(problem)
        loads = partition.whole(instance.load[:, 0])
        return cls(loads, graph, (power / power.sum()).tolist())


def mt_kahypar(problem: Problem) -> Placed:
    """Least cut within the devices' shares, and its CPU seconds."""
    import mtkahypar

    parts, n = Parts.of(problem), problem.n_operators
    tail = np.repeat(np.arange(n), np.diff(parts.graph.start))
    once = tail < parts.graph.neighbour
    edges = np.stack([tail[once], parts.graph.neighbour[once]], axis=1)
    partitioner = mtkahypar.initialize(1)
    context = partitioner.context_from_preset(mtkahypar.PresetType.DEFAULT)
    context.set_partitioning_parameters(len(parts.power), IMBALANCE, mtkahypar.Objective.CUT)
    whole = int(parts.loads.sum())
    context.set_individual_target_block_weights(
        [int(np.ceil(share * whole * (1 + IMBALANCE))) for share in parts.power]
    )
    context.logging = False
    weights = parts.graph.weight[once].tolist()
    graph = partitioner.create_graph(
        context, n, len(edges), edges.tolist(), parts.loads.tolist(), weights
    )
    start = time.process_time()
    part = graph.partition(context).get_partition()
    seconds = time.process_time() - start
    return Placed(problem.placement(np.array(part, np.int32)), seconds)


def kahip(problem: Problem) -> Placed:
    """Least cut by its configuration ``fast``, and its CPU seconds; its parts are equal."""
    import kahip as package

    parts = Parts.of(problem)
    columns = (
        parts.loads // EDGE_SCALE,
        parts.graph.start,
        np.maximum(parts.graph.weight // EDGE_SCALE, 1),
        parts.graph.neighbour,
    )
    weights, start, edges, neighbours = (column.tolist() for column in columns)
    since = time.process_time()
    _, part = package.kaffpa(
        weights, start, edges, neighbours, len(parts.power), IMBALANCE, True, 0, package.FAST
    )
    seconds = time.process_time() - since
    return Placed(problem.placement(np.array(part, np.int32)), seconds)


def installed() -> dict[str, Partitioner]:
    """Return the partitioners whose packages are installed, by name."""
    packages = {"mtkahypar": ("Mt-KaHyPar", mt_kahypar), "kahip": ("KaHIP", kahip)}
    return {
        name: partitioner
        for package, (name, partitioner) in packages.items()
        if importlib.util.find_spec(package)
    }
