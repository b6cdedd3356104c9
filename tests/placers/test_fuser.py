from itertools import pairwise

import numpy as np
import pytest

from streamplace.model import Cluster, Operator, Problem, Stream, StreamGraph
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.registry import PLACERS

THROUGHPUT = OBJECTIVES["throughput"]
FUSER = PLACERS["fuser"]


def graph_of(*pairs, n, ipt=1.0):
    """Operators o0 … joined by the given pairs; o0 is the source."""
    operators = [Operator(f"o{i}", ipt=ipt, rate=float(i == 0)) for i in range(n)]
    return StreamGraph.of("graph", operators, [Stream(f"o{a}", f"o{b}") for a, b in pairs])


def branches(k, depth):
    """A source, k pipelines of the same depth and a sink."""
    sink = k * depth + 1
    pairs = []
    for b in range(k):
        line = [0, *(1 + b * depth + i for i in range(depth)), sink]
        pairs += list(pairwise(line))
    return graph_of(*pairs, n=sink + 1)


def placed(graph, devices=2, **options):
    """Place by the fuser on equal devices."""
    problem = Problem(graph, Cluster.uniform(devices))
    return FUSER.with_options(**options).place(problem, THROUGHPUT).placement


def cut(graph, placement):
    """Count the streams between devices."""
    index = placement.index
    return int((index[graph.streams.source] != index[graph.streams.target]).sum())


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(
    "graph", [branches(3, 4), branches(7, 3), branches(1, 10), branches(100, 50)]
)
def test_pes_differ_by_at_most_one_operator(graph, k):
    sizes = [len(pe) for pe in placed(graph, 5, k=k).pes().values()]
    assert len(sizes) == k
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(("k", "depth", "devices", "cuts"), [(1, 10, 4, 3), (2, 5, 2, 2)])
def test_pipelines_are_cut_once_per_border(k, depth, devices, cuts):
    graph = branches(k, depth)
    assert cut(graph, placed(graph, devices)) == cuts


def test_operators_trade_places_where_that_cuts_less():
    even, odd = [2, 4, 6, 8], [1, 3, 5, 7]
    pairs = [(0, 1), (0, 2)]
    for knot in (even, odd):
        pairs += [(a, b) for i, a in enumerate(knot) for b in knot[i + 1 :]]
    graph = graph_of(*pairs, n=9)
    assert cut(graph, placed(graph)) <= 1


def test_cpu_does_not_matter():
    light = branches(3, 3)
    heavy = graph_of(
        *zip(light.streams.source.tolist(), light.streams.target.tolist(), strict=True),
        n=11,
        ipt=1e9,
    )
    assert np.array_equal(placed(light, 3).index, placed(heavy, 3).index)
