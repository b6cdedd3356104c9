"""Placers: seconds until a proof, what a call costs, what a proposal costs, METIS and the fuser."""

import numpy as np
import pymetis
import pytest

from streamplace.families.branched import Branched, branched
from streamplace.families.random_dag import RandomDag, random_dag
from streamplace.model import Cluster, Operators, Problem, StreamGraph, Streams
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers import partition
from streamplace.placers.registry import PLACERS, USUAL_BUDGET, Budget

THROUGHPUT = OBJECTIVES["throughput"]
TOPOLOGIES = [(1, 9, 2), (5, 3, 3), (5, 5, 5), (2, 12, 5)]
SHAPES = [(1, 8, 2), (3, 5, 3), (2, 12, 5), (4, 6, 5), (5, 5, 5), (12, 2, 5)]
PROPOSALS = 100_000
SIZES = [(27, 36), (100_000, 200_000)]


@pytest.mark.parametrize("topology", TOPOLOGIES, ids=str)
def test_auto_on_a_benchmark_graph(benchmark, topology):
    """A tenth of a second at most."""
    branches, depth, devices = topology
    parameters = Branched(branches=branches, depth=depth, devices=devices, copies=1)
    problem = Problem(next(iter(branched(parameters, 0))), Cluster.uniform(5))
    place = PLACERS["auto"].function
    options = {"seed": 0, "budget": Budget(seconds=0.1)}
    benchmark.pedantic(place, (problem, THROUGHPUT), options, rounds=10, warmup_rounds=1)


@pytest.mark.parametrize("rate", [1e4, 2e4], ids=["typical", "stress"])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "{}x{}-v{}".format(*shape))
def test_exact_until_the_proof(benchmark, shape, rate):
    """The whole placer until the optimum is proven, or 10 s."""
    k, depth, devices = shape
    family = Branched(branches=k, depth=depth, devices=devices, copies=1)
    (graph,) = branched(family, 0)
    problem = Problem(graph.at_rate(rate), Cluster.uniform(5, mips=2500, bandwidth="1000 Mbps"))
    result = benchmark.pedantic(
        PLACERS["exact"].place,
        (problem, THROUGHPUT),
        {"budget": Budget(seconds=10)},
        rounds=3,
        warmup_rounds=1,
    )
    benchmark.extra_info["gap"] = result.bound - result.value


@pytest.fixture(scope="module")
def small():
    """A benchmark graph of 26 operators on slow links, so that no bound ends the search."""
    graph = next(iter(branched(Branched(branches=6, depth=4, devices=5, copies=1), 0)))
    return Problem(graph, Cluster.uniform(5, bandwidth="500 Mbps"))


@pytest.fixture(scope="module")
def large():
    """A random graph of 100,000 operators on 16 devices."""
    parameters = RandomDag(operators=100_000, streams=200_000, devices=20.0, network=600.0)
    return Problem(next(iter(random_dag(parameters, 0))), Cluster.uniform(16))


@pytest.mark.parametrize("evaluations", [1, PROPOSALS])
def test_anneal_on_a_small_graph(benchmark, small, evaluations):
    """One proposal is the overhead of a call."""
    place = PLACERS["anneal"].function
    benchmark(place, small, THROUGHPUT, seed=0, budget=Budget(None, evaluations))


@pytest.mark.parametrize("evaluations", [1, 2_000_000])
def test_anneal_on_a_large_graph(benchmark, large, evaluations):
    """One proposal is what the levels and the first placement cost."""
    place = PLACERS["anneal"].function
    options = {"seed": 0, "budget": Budget(None, evaluations)}
    benchmark.pedantic(place, (large, THROUGHPUT), options, rounds=3, warmup_rounds=1)


@pytest.fixture(params=SIZES, ids=lambda size: f"{size[0]}-operators")
def problem(request):
    """A connected random graph on 8 devices."""
    n, m = request.param
    rng = np.random.default_rng(0)
    operators = Operators(
        tuple(f"o{i}" for i in range(n)),
        ipt=rng.random(n),
        payload=rng.random(n),
        rate=np.r_[10.0, np.zeros(n - 1)],
    )
    target = np.r_[np.arange(1, n), rng.integers(1, n, m - n + 1)]
    source = np.maximum(0, target - rng.integers(1, 40, m))
    streams = Streams(operators, source, target, selectivity=np.full(m, 0.5))
    return Problem(StreamGraph("random", operators, streams), Cluster.uniform(8))


def test_bare_pymetis(benchmark, problem):
    """The partitioner alone, on arrays that are ready."""
    instance = problem.instance
    weight = np.maximum(partition.whole(instance.traffic), 1)
    unit = partition.unit_of(problem)
    graph = partition.neighbours(problem, unit, problem.n_operators, weight)
    adjacency = pymetis.CSRAdjacency(graph.start, graph.neighbour)
    load = partition.whole(instance.load[:, 0])
    benchmark(pymetis.part_graph, 8, adjacency, vweights=load, eweights=graph.weight)


def test_metis_placer(benchmark, problem):
    """The whole placer: weights, adjacency, partition, placement."""
    place = PLACERS["metis"].function
    benchmark(place, problem, THROUGHPUT, seed=0, budget=USUAL_BUDGET)


def test_fuser_placer(benchmark, problem):
    """The fuser on the same graphs."""
    place = PLACERS["fuser"].function
    benchmark.pedantic(
        place, (problem, THROUGHPUT), {"seed": 0, "budget": USUAL_BUDGET}, rounds=3, warmup_rounds=1
    )
