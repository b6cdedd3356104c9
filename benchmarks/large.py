"""Large graphs: auto against METIS with target weights, Mt-KaHyPar and KaHIP.

Run ``python benchmarks/large.py`` (all shapes, clusters and characters of 10,000 and 100,000
operators, in 15 minutes of CPU; ``--operators 1000000 --seconds 60 --shapes layered`` for a larger
one). Prints relative throughputs, CPU seconds, and ``auto`` as a share of the bound and as a
multiple of the best of the others. Mt-KaHyPar and KaHIP take part where the packages mtkahypar and
kahip are installed; their seconds count the partitioning alone. The clock of budgets counts CPU
seconds here, so that other work on the machine does not matter; with ``--load 11`` it runs eleven
times as fast, as it does for a process that gets an eleventh of a core. Any placer may take part:
``--placers auto exact --operators 24`` shows how loose the simple bound is on network-bound graphs.
"""

import argparse
import importlib.util
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from large_problems import CHARACTERS, CLUSTERS, LAYERED, SHAPES, problem_of

from streamplace.model import Placement, Problem
from streamplace.model.level import finest_level, least_peak
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers import partition, stopwatch
from streamplace.placers.registry import PLACERS, Budget

THROUGHPUT = OBJECTIVES["throughput"]
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


def by_placer(name: str, seconds: float) -> Partitioner:
    """Return what places by one of our placers, and its CPU seconds."""

    def place(problem: Problem) -> Placed:
        start = time.process_time()
        result = PLACERS[name].place(problem, THROUGHPUT, budget=Budget(seconds))
        bound = 1.0 if result.bound is None else result.bound
        return Placed(result.placement, time.process_time() - start, bound)

    return place


def row(problem: Problem, placers: dict[str, Partitioner]) -> str:
    """Bound, every placer's throughput and seconds, and how auto compares."""
    placed = {name: place(problem) for name, place in placers.items()}
    values = {name: THROUGHPUT.value(problem, each.placement) for name, each in placed.items()}
    simple = 1 / max(least_peak(problem, finest_level(problem)), 1.0)
    bound = min(simple, *(each.bound for each in placed.values()))
    cells = [f"{values[name]:.3f} ({each.seconds:.1f} s)" for name, each in placed.items()]
    cells.insert(0, f"{bound:.3f}")
    if "auto" in values:
        cells.append(f"{values['auto'] / bound:.3f}")
        others = [value for name, value in values.items() if name != "auto"]
        cells.append(f"{values['auto'] / max(others):.2f}" if others else "")
    return " | ".join(cells)


def main() -> None:
    """Print one row per problem."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operators", type=int, nargs="*", default=[10_000, 100_000])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--load", type=float, default=1.0)
    parser.add_argument("--shapes", nargs="*", default=[*SHAPES, LAYERED])
    parser.add_argument("--clusters", nargs="*", default=list(CLUSTERS))
    parser.add_argument("--characters", nargs="*", default=list(CHARACTERS))
    parser.add_argument("--placers", nargs="*", default=["metis", *installed(), "auto"])
    given = parser.parse_args()
    others = installed()
    placers = {name: others.get(name) or by_placer(name, given.seconds) for name in given.placers}
    by_placer("auto", 0.5)(problem_of("hubs", "uneven", "mixed", 2000))  # compile
    stopwatch.clock = lambda: given.load * time.process_time()
    more = ("of bound", "of others") if "auto" in placers else ()
    print("| operators | shape | devices | character | bound |", " | ".join((*placers, *more)), "|")
    print("|---" * (5 + len(placers) + len(more)) + "|")
    for n in given.operators:
        for shape in given.shapes:
            for devices in given.clusters:
                for character in given.characters:
                    problem = problem_of(shape, devices, character, n)
                    cells = f"{n:,} | {shape} | {devices} | {character}"
                    print(f"| {cells} | {row(problem, placers)} |", flush=True)


if __name__ == "__main__":
    main()
