"""Large graphs: auto against METIS with target weights, Mt-KaHyPar and KaHIP.

Run ``python benchmarks/large.py`` (all shapes, clusters and characters of 10,000 and 100,000
operators, in 15 minutes of CPU; ``--operators 1000000 --seconds 60 --shapes layered`` for a larger
one). Prints relative throughputs, CPU seconds, and ``auto`` as a share of the bound and as a
multiple of the best of the others. Mt-KaHyPar and KaHIP take part where the packages mtkahypar and
kahip are installed; their seconds count the partitioning alone. The clock of budgets counts CPU
seconds here, so that other work on the machine does not matter. Any placer may take part:
``--placers auto exact --operators 24`` shows how loose the simple bound is on network-bound graphs.

Every operator takes in between one and two times the source's rate, divided equally among its
inputs; what CPU and what traffic all operators have together is chosen.
"""

import argparse
import importlib.util
import math
import time
from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import numpy as np
from studies import Rows, dressed

from streamplace.families.random_dag import RandomDag, random_dag
from streamplace.model import Cluster, Device, Placement, Problem
from streamplace.model.coarsening import finest_level
from streamplace.model.least_peak import least_peak
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers import partition_graph, stopwatch
from streamplace.placers.registry import PLACERS, Budget

DEVICES = 16
MIPS = 2500.0
SPEEDS = (1250.0, 2500.0, 5000.0)
SLOWEST_LINK, FASTEST_LINK = 0.25e9, 4e9
EXPONENT = 2.3
"""Of the power law of degrees."""


class Character(NamedTuple):
    """Needs of a graph."""

    cluster: float  # CPU, in clusters
    links: float  # traffic, in links of 1 Gbps
    skew: float  # how uneven the operators are, as in the family random-dag


CHARACTERS = {
    "CPU-bound": Character(1.5, 60.0, 0.0),
    "network-bound": Character(0.375, 3000.0, 1.0),
    "mixed": Character(1.25, 600.0, 0.0),
}


def chain(n: int, rng: np.random.Generator) -> Rows:
    """One after another."""
    return np.stack([np.arange(n - 1), np.arange(1, n)])


def grid(n: int, rng: np.random.Generator) -> Rows:
    """Square, fed from above and from the left."""
    width = math.isqrt(n)
    at = np.arange(n)
    right, down = at[(at % width < width - 1) & (at < n - 1)], at[: n - width]
    return np.concatenate([np.stack([right, right + 1]), np.stack([down, down + width])], axis=1)


def hubs(n: int, rng: np.random.Generator) -> Rows:
    """Two inputs each by preferential attachment: an end of an earlier stream, chosen at random."""
    ends = np.zeros(4 * n, np.int64)
    draws = rng.random(2 * n)
    streams = [(0, 1)]
    ends[1], size = 1, 2
    for v in range(2, n):
        for source in {int(ends[int(draws[2 * v + i] * size)]) for i in range(2)}:
            streams.append((source, v))
            ends[size], ends[size + 1], size = source, v, size + 2
    return np.array(streams).T


def power_law(n: int, rng: np.random.Generator) -> Rows:
    """Degrees in and out by a power law, whatever the order; all have an input of an earlier."""
    weight = rng.permutation((1.0 + np.arange(n)) ** (-1 / (EXPONENT - 1)))
    total = np.cumsum(weight)
    target = np.arange(1, n)
    source = np.searchsorted(total, rng.random(n - 1) * total[:-1], side="right")
    ends = np.searchsorted(total, rng.random((2, n)) * total[-1], side="right")
    ends = np.sort(ends[:, ends[0] != ends[1]], axis=0)
    streams = np.concatenate([np.stack([source, target]), ends], axis=1)
    return np.asarray(np.unique(np.minimum(streams, n - 1), axis=1))


SHAPES: dict[str, Callable[[int, np.random.Generator], Rows]] = {
    "chain": chain,
    "grid": grid,
    "hubs": hubs,
    "power law": power_law,
}
LAYERED = "layered"
CLUSTERS = ("equal", "uneven")


def problem_of(shape: str, devices: str, character: str, operators: int) -> Problem:
    """Return the problem of a shape, a cluster and a character."""
    cluster = cluster_of(devices)
    need = CHARACTERS[character]
    mips = need.cluster * float(sum(device.mips for device in cluster.devices))
    if shape != LAYERED:
        rng = np.random.default_rng(0)
        streams = SHAPES[shape](operators, rng)
        facts = {"mips": mips, "links": need.links, "skew": need.skew}
        return Problem(dressed(streams, operators, rng, name=shape, **facts), cluster)
    parameters = RandomDag(
        operators=operators,
        streams=2 * operators,
        devices=mips / MIPS,
        network=need.links,
        skew=need.skew,
    )
    return Problem(next(iter(random_dag(parameters, 0))), cluster)


def cluster_of(devices: str) -> Cluster:
    """Equal devices and links of 1 Gbps, or three speeds and links of 0.25 to 4 Gbps."""
    if devices == "equal":
        return Cluster.uniform(DEVICES, mips=MIPS, bandwidth=1e9)
    rng = np.random.default_rng(0)
    links = np.exp(rng.uniform(np.log(SLOWEST_LINK), np.log(FASTEST_LINK), (DEVICES, DEVICES)))
    mips = [SPEEDS[d % len(SPEEDS)] for d in range(DEVICES)]
    return Cluster.of([Device(f"d{d}", mips=m) for d, m in enumerate(mips)], bandwidth=links)


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


def undirected(
    problem: Problem,
) -> tuple[partition_graph.Longs, partition_graph.Neighbours, list[float]]:
    """Loads, neighbours and shares of devices, in whole weights as METIS is given them."""
    instance, n = problem.instance, problem.n_operators
    weight = np.maximum(partition_graph.whole(instance.traffic), 1)
    graph = partition_graph.neighbours(problem, problem.unit, n, weight)
    power = partition_graph.power(problem)
    return partition_graph.whole(instance.load[:, 0]), graph, (power / power.sum()).tolist()


def mt_kahypar(problem: Problem, *, is_thorough: bool = False) -> Placed:
    """Least cut within the devices' shares, and its CPU seconds."""
    import mtkahypar

    (loads, own, power), n = undirected(problem), problem.n_operators
    tail = np.repeat(np.arange(n), np.diff(own.start))
    once = tail < own.neighbour
    edges = np.stack([tail[once], own.neighbour[once]], axis=1)
    partitioner, presets = mtkahypar.initialize(1), mtkahypar.PresetType
    context = partitioner.context_from_preset(presets.QUALITY if is_thorough else presets.DEFAULT)
    context.set_partitioning_parameters(len(power), IMBALANCE, mtkahypar.Objective.CUT)
    whole = int(loads.sum())
    context.set_individual_target_block_weights(
        [int(np.ceil(share * whole * (1 + IMBALANCE))) for share in power]
    )
    context.logging = False
    weights = own.weight[once].tolist()
    graph = partitioner.create_graph(
        context, n, len(edges), edges.tolist(), loads.tolist(), weights
    )
    start = time.process_time()
    part = graph.partition(context).get_partition()
    seconds = time.process_time() - start
    return Placed(problem.placement(problem.repaired(part)), seconds)


def kahip(problem: Problem, *, is_thorough: bool = False) -> Placed:
    """Least cut into equal parts, by its configuration ``strong`` or ``fast``; its CPU seconds."""
    import kahip as package

    loads, graph, power = undirected(problem)
    edges = np.maximum(graph.weight // EDGE_SCALE, 1)
    columns = (loads // EDGE_SCALE, graph.start, edges, graph.neighbour)
    since = time.process_time()
    mode = package.STRONG if is_thorough else package.FAST
    _, part = package.kaffpa(
        *(column.tolist() for column in columns), len(power), IMBALANCE, True, 0, mode
    )
    seconds = time.process_time() - since
    return Placed(problem.placement(problem.repaired(part)), seconds)


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
    parser.add_argument("--shapes", nargs="*", default=[*SHAPES, LAYERED])
    parser.add_argument("--clusters", nargs="*", default=list(CLUSTERS))
    parser.add_argument("--characters", nargs="*", default=list(CHARACTERS))
    parser.add_argument("--placers", nargs="*", default=["metis", *installed(), "auto"])
    given = parser.parse_args()
    others = installed()
    placers = {name: others.get(name) or by_placer(name, given.seconds) for name in given.placers}
    by_placer("auto", 0.5)(problem_of("hubs", "uneven", "mixed", 2000))  # compile
    stopwatch.clock = time.process_time
    more = ("of bound", "of others") if "auto" in placers else ()
    print("| operators | shape | devices | character | bound |", " | ".join((*placers, *more)), "|")
    print("|---" * (5 + len(placers) + len(more)) + "|")
    asked = product(given.operators, given.shapes, given.clusters, given.characters)
    for n, shape, devices, character in asked:
        problem = problem_of(shape, devices, character, n)
        cells = f"{n:,} | {shape} | {devices} | {character}"
        print(f"| {cells} | {row(problem, placers)} |", flush=True)


if __name__ == "__main__":
    main()
