"""Large graphs: auto against METIS and Mt-KaHyPar, by relative throughput and seconds.

Run ``python benchmarks/large.py`` (``--operators 1000000 --seconds 60`` for a larger one).
Mt-KaHyPar takes part where the package mtkahypar is installed; its seconds count the partitioning
alone.
"""

import argparse
import importlib.util
import time
from collections.abc import Callable

import numpy as np

from streamplace.generate.random_dag import RandomDag, random_dag
from streamplace.model import Cluster, Placement, Problem
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers import partition
from streamplace.placers.registry import PLACERS, Budget

DEVICES = 16
CHARACTERS = {
    "CPU-bound": {"devices": 24.0, "network": 60.0},
    "network-bound": {"devices": 6.0, "network": 3000.0, "skew": 1.0},
    "mixed": {"devices": 20.0, "network": 600.0},
}
"""CPU of the graph in devices, its traffic in links, and how uneven both are."""
THROUGHPUT = OBJECTIVES["throughput"]


def problem_of(character: str, operators: int) -> Problem:
    """Random DAG of twice as many streams as operators on equal devices."""
    parameters = RandomDag(operators=operators, streams=2 * operators, **CHARACTERS[character])
    graph = next(iter(random_dag(parameters, 0)))
    return Problem(graph, Cluster.uniform(DEVICES, mips=2500, bandwidth="1000 Mbps"))


def kahypar(problem: Problem) -> tuple[Placement, float]:
    """Least cut at 3 % imbalance by Mt-KaHyPar, and its seconds."""
    import mtkahypar

    partitioner = mtkahypar.initialize(1)
    context = partitioner.context_from_preset(mtkahypar.PresetType.DEFAULT)
    context.set_partitioning_parameters(DEVICES, 0.03, mtkahypar.Objective.CUT)
    context.logging = False
    instance, n = problem.instance, problem.n_operators
    weight = np.maximum(partition.whole(instance.traffic), 1)
    graph = partition.neighbours(problem, partition.unit_of(problem), n, weight)
    tail = np.repeat(np.arange(n), np.diff(graph.start))
    once = tail < graph.neighbour
    edges = np.stack([tail[once], graph.neighbour[once]], axis=1)
    loads = partition.whole(instance.load[:, 0])
    hypergraph = partitioner.create_graph(
        context, n, len(edges), edges.tolist(), loads.tolist(), graph.weight[once].tolist()
    )
    start = time.perf_counter()
    parts = hypergraph.partition(context).get_partition()
    return problem.placement(np.array(parts, np.int32)), time.perf_counter() - start


def by_placer(name: str, seconds: float) -> Callable[[Problem], tuple[Placement, float]]:
    """Return what places by one of our placers."""

    def place(problem: Problem) -> tuple[Placement, float]:
        result = PLACERS[name].place(problem, THROUGHPUT, budget=Budget(seconds))
        return result.placement, result.seconds

    return place


def main() -> None:
    """Print one row per graph and placer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operators", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--characters", nargs="*", default=list(CHARACTERS))
    given = parser.parse_args()
    placers = {"metis": by_placer("metis", given.seconds), "auto": by_placer("auto", given.seconds)}
    if importlib.util.find_spec("mtkahypar"):
        placers["mt-kahypar"] = kahypar
    by_placer("anneal", 0.5)(problem_of("mixed", 2000))  # compile
    for character in given.characters:
        problem = problem_of(character, given.operators)
        for name, place in placers.items():
            placement, seconds = place(problem)
            value = THROUGHPUT.value(problem, placement)
            print(f"{character:14} {name:11} throughput {value:.4f} in {seconds:6.2f} s")


if __name__ == "__main__":
    main()
