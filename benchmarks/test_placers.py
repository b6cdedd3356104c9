"""Placers: seconds until a proof, what a call costs, what a proposal costs, and partitioners."""

import pytest

from streamplace.families.branched import Branched, branched
from streamplace.families.random_dag import RandomDag, random_dag
from streamplace.model import Cluster, Problem
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.registry import PLACERS, USUAL_BUDGET, Budget

THROUGHPUT = OBJECTIVES["throughput"]
TOPOLOGIES = [(1, 9, 2), (5, 3, 3), (5, 5, 5), (2, 12, 5)]
SHAPES = [(1, 8, 2), (3, 5, 3), (2, 12, 5), (4, 6, 5), (5, 5, 5), (12, 2, 5)]
PROPOSALS = 100_000


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


@pytest.mark.parametrize("name", ["metis", "fuser"])
def test_partitioners(benchmark, large, name):
    """The whole placer: weights, adjacency, partition, placement."""
    place = PLACERS[name].function
    options = {"seed": 0, "budget": USUAL_BUDGET}
    benchmark.pedantic(place, (large, THROUGHPUT), options, rounds=3, warmup_rounds=1)
