"""Exact: time to a proof on graphs of the benchmark, easy and hard, typical and under stress."""

import pytest

from streamplace.families.branched import Branched, branched
from streamplace.model import Cluster, Problem
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.registry import PLACERS, Budget

THROUGHPUT = OBJECTIVES["throughput"]
SHAPES = [(1, 8, 2), (3, 5, 3), (2, 12, 5), (4, 6, 5), (5, 5, 5), (12, 2, 5)]


@pytest.mark.parametrize("rate", [1e4, 2e4], ids=["typical", "stress"])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "{}x{}-v{}".format(*shape))
def test_proof(benchmark, shape, rate):
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
