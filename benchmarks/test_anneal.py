"""Anneal: what a call costs before it searches, and what a proposal costs."""

import pytest

from streamplace.families.branched import Branched, branched
from streamplace.families.random_dag import RandomDag, random_dag
from streamplace.model import Cluster, Problem
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.registry import PLACERS, Budget

THROUGHPUT = OBJECTIVES["throughput"]
PROPOSALS = 100_000


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
def test_small_graph(benchmark, small, evaluations):
    """One proposal is the overhead of a call."""
    place = PLACERS["anneal"].function
    benchmark(place, small, THROUGHPUT, seed=0, budget=Budget(None, evaluations))


@pytest.mark.parametrize("evaluations", [1, 2_000_000])
def test_large_graph(benchmark, large, evaluations):
    """One proposal is what the levels and the first placement cost."""
    place = PLACERS["anneal"].function
    options = {"seed": 0, "budget": Budget(None, evaluations)}
    benchmark.pedantic(place, (large, THROUGHPUT), options, rounds=3, warmup_rounds=1)
