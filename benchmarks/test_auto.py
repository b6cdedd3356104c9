"""Auto: seconds until a benchmark graph is placed, mostly with a proof."""

import pytest

from streamplace.families.branched import Branched, branched
from streamplace.model import Cluster, Problem
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.registry import PLACERS, Budget

THROUGHPUT = OBJECTIVES["throughput"]
TOPOLOGIES = [(1, 9, 2), (5, 3, 3), (5, 5, 5), (2, 12, 5)]


@pytest.mark.parametrize("topology", TOPOLOGIES, ids=str)
def test_benchmark_graph(benchmark, topology):
    """A tenth of a second at most."""
    branches, depth, devices = topology
    parameters = Branched(branches=branches, depth=depth, devices=devices, copies=1)
    problem = Problem(next(iter(branched(parameters, 0))), Cluster.uniform(5))
    place = PLACERS["auto"].function
    options = {"seed": 0, "budget": Budget(seconds=0.1)}
    benchmark.pedantic(place, (problem, THROUGHPUT), options, rounds=10, warmup_rounds=1)
