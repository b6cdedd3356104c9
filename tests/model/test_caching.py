"""Values that follow from a graph or a cluster are computed once, and not copied along."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from problems import chain, diamond, heterogeneous

from streamplace.errors import ProblemError
from streamplace.model import Cluster, Device, Operator, Problem, Stream, StreamGraph


def test_problems_on_one_cluster_share_its_arrays() -> None:
    """The network of a cluster takes the memory of one, however many problems use it."""
    cluster = heterogeneous()
    one, other = Problem(chain(), cluster), Problem(diamond(), cluster)
    assert one.instance.latency is other.instance.latency
    assert one.one_pass.links is other.one_pass.links


def test_another_rate_is_another_graph() -> None:
    """What was computed from a graph does not stay with its copy at another rate."""
    problem = Problem(diamond(), Cluster.uniform(2))
    traffic, size = problem.instance.traffic, problem.one_pass.streams["size"].copy()
    faster = problem.at_rate(2 * problem.graph.source_rate)
    assert faster.instance.traffic == pytest.approx(2 * traffic)
    assert faster.one_pass.streams["size"] == pytest.approx(size)


def pickled(thing: Any) -> Any:
    """Copy by way of a file."""
    return pickle.loads(pickle.dumps(thing))


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickled])
def test_copies_compile_anew(duplicate: Callable[[Any], Any]) -> None:
    """Copies have the same arrays as their original."""
    problem = Problem(diamond(), heterogeneous())
    assert problem.one_pass.n_operators == problem.n_operators
    again = Problem(duplicate(problem.graph), duplicate(problem.cluster))
    assert np.array_equal(again.one_pass.streams, problem.one_pass.streams)
    assert np.array_equal(again.one_pass.links, problem.one_pass.links)


def test_a_tag_that_no_device_offers_is_refused_every_time() -> None:
    """The first problem with a graph and a cluster is not the only one that is checked."""
    operators = [Operator("a", rate=1), Operator("b", requires=frozenset({"gpu"}))]
    graph = StreamGraph.of("pipe", operators, [Stream("a", "b")])
    cluster = Cluster.of([Device("d0", tags=frozenset({"ssd"}))])
    for _ in range(2):
        with pytest.raises(ProblemError, match="operator 'b' requires 'gpu', which no device"):
            Problem(graph, cluster)
