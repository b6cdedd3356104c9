"""METIS: what the placer costs on top of the bare partitioner, small and large."""

import numpy as np
import pymetis
import pytest

from streamplace.model import Cluster, Operators, Problem, StreamGraph, Streams
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers import partition
from streamplace.placers.registry import PLACERS, USUAL_BUDGET

THROUGHPUT = OBJECTIVES["throughput"]
SIZES = [(27, 36), (100_000, 200_000)]


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
