"""Expansion into subtasks, and folding back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import graphs
from streamsim import throughput
from streamsim.passes import Rules, makespans

from streamplace.errors import GraphError, PlacementError, ProblemError
from streamplace.model import (
    Cluster,
    Constraints,
    Operator,
    Placement,
    Problem,
    Stream,
    StreamGraph,
    Window,
)
from streamplace.model.expansion import expand

parallel_graphs = graphs(most_subtasks=4, windowed=True)


def pair(p, q, **stream):
    """Operators a and b of parallelisms p and q, and a stream."""
    operators = [Operator("a", payload=8, rate=60, parallelism=p), Operator("b", parallelism=q)]
    return StreamGraph.of("pair", operators, [Stream("a", "b", **stream)])


def links(expansion):
    """Streams of the expanded graph, by name, with their selectivities."""
    return {(s.source, s.target): s.selectivity for s in expansion.graph.streams}


ALL_TO_ALL = {(f"a#{i}", f"b#{j}"): 0.25 for i in range(2) for j in range(2)}


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        (pair(2, 2), {("a#0", "b#0"): 1, ("a#1", "b#1"): 1}),
        (pair(1, 2), {("a", "b#0"): 0.5, ("a", "b#1"): 0.5}),
        (pair(2, 2, selectivity=0.5, partitioning="rebalance"), ALL_TO_ALL),
        (pair(2, 2, selectivity=0.5, partitioning="hash"), ALL_TO_ALL),
    ],
    ids=["equal", "unequal", "rebalance", "hash"],
)
def test_streams_join_subtasks_one_to_one_or_send_even_parts_to_all(graph, expected):
    assert links(expand(graph)) == expected


def test_a_stream_straight_between_different_parallelisms_is_refused():
    """A chain of them is no graph; a plan may still change the parallelisms of a forward one."""
    with pytest.raises(GraphError, match=r"a→b .*from 2 to 3"):
        expand(pair(2, 3, partitioning="forward"))
    with pytest.raises(GraphError, match=r"a→b .*from 2 to 3"):
        pair(2, 3, partitioning="chained")


LEAST = 1e-300
"""Smaller numbers have fewer digits, and halves of them may be nothing."""


@given(parallel_graphs)
def test_expansion_keeps_load_and_traffic_and_is_its_own_expansion(graph):
    expansion = expand(graph)
    cluster = Cluster.uniform(1)
    before, after = (Problem(g, cluster).instance for g in (graph, expansion.graph))
    per_operator = np.bincount(expansion.operator, weights=expansion.graph.input_rate)
    np.testing.assert_allclose(per_operator, graph.input_rate, rtol=1e-9, atol=LEAST)
    assert after.load.sum() == pytest.approx(before.load.sum(), rel=1e-9)
    assert after.traffic.sum() == pytest.approx(before.traffic.sum(), rel=1e-9)
    memory = np.bincount(expansion.operator, weights=expansion.graph.operators.memory)
    np.testing.assert_allclose(memory, graph.operators.memory, rtol=1e-9, atol=LEAST)
    assert expand(expansion.graph).graph == expansion.graph


@given(parallel_graphs, st.integers(1, 8), st.floats(0.01, 1000))
def test_subtasks_are_as_fast_as_operators(graph, cores, mips):
    cluster = Cluster.uniform(1, cores=cores, mips=mips)
    values = [
        throughput(Problem(g, cluster).instance, np.zeros((1, g.n_operators), int))[0]
        for g in (graph, expand(graph).graph)
    ]
    assert values[1] == pytest.approx(values[0], rel=1e-6)


@given(parallel_graphs, st.randoms())
def test_folding_counts_every_subtask_once(graph, random):
    """Row sums are the parallelisms, and names say the same as numbers."""
    expansion = expand(graph)
    names = expansion.graph.operators.name
    placement = Placement(names, ("d0", "d1", "d2"), [random.randrange(3) for _ in names])
    counts = expansion.fold(placement)
    assert counts.shape == (graph.n_operators, 3)
    assert counts.sum(axis=1).tolist() == graph.operators.parallelism.tolist()
    for v, named in enumerate(expansion.fold_names(placement).values()):
        assert [named.get(f"d{d}", 0) for d in range(3)] == counts[v].tolist()


def test_placements_of_other_graphs_are_refused():
    expansion = expand(pair(2, 3))
    other = Placement(("x",), ("d0",), [0])
    with pytest.raises(PlacementError):
        expansion.fold(other)


def test_names_of_subtasks_avoid_those_of_operators():
    operators = [Operator("a", rate=1, parallelism=2), Operator("a#1", rate=1), Operator("a##1")]
    graph = StreamGraph.of("tricky", operators, [Stream("a", "a##1")])
    assert expand(graph).graph.operators.name == ("a####0", "a####1", "a#1", "a##1")


@pytest.mark.parametrize("kind", ["rebalance", "forward", "hash"])
def test_windows_of_all_subtasks_emit_what_that_of_the_operator_does(kind):
    """Also where tuples arrive in other parts than those of its three key groups."""
    window = Window(1, 1, base=0, factor=1, limit=1000)
    operators = [
        Operator("a", rate=1000, parallelism=2),
        Operator("b", parallelism=2, max_parallelism=3, window=window),
        Operator("c"),
    ]
    streams = [Stream("a", "b", partitioning=kind), Stream("b", "c")]
    graph = StreamGraph.of("windowed", operators, streams)
    assert graph.input_rate[-1] == 1000
    assert expand(graph).graph.input_rate[-1] == pytest.approx(1000)


def test_pins_allowed_devices_and_exlocation_hold_for_every_subtask():
    carried = expand(pair(1, 2)).constraints(Constraints(pin={"a": "d0"}, allowed={"b": {"d1"}}))
    assert carried.pin == {"a": "d0"}
    assert carried.allowed == {"b#0": {"d1"}, "b#1": {"d1"}}
    apart = expand(pair(2, 1)).constraints(Constraints(exlocate=[{"a", "b"}]))
    assert set(apart.exlocate) == {frozenset({"a#0", "b"}), frozenset({"a#1", "b"})}


@pytest.mark.parametrize(
    ("p", "q", "groups"),
    [
        (2, 2, [{"a#0", "b#0"}, {"a#1", "b#1"}]),
        (1, 2, [{"a", "b#0", "b#1"}]),
        (2, 4, [{"a#0", "b#0", "b#1"}, {"a#1", "b#2", "b#3"}]),
        (2, 3, [{"a#0", "a#1", "b#0", "b#1", "b#2"}]),
    ],
)
def test_colocated_operators_share_devices_subtask_by_subtask(p, q, groups):
    carried = expand(pair(p, q)).constraints(Constraints(colocate=[{"a", "b"}]))
    assert list(carried.colocate) == groups


def test_too_many_exlocated_subtasks_are_refused():
    expansion = expand(pair(2000, 2000))
    with pytest.raises(ProblemError, match="4000000 pairs"):
        expansion.constraints(Constraints(exlocate=[{"a", "b"}]))


def test_a_problem_is_expanded_with_costs_and_constraints():
    problem = Problem(
        pair(1, 2), Cluster.uniform(2), Constraints(pin={"b": "d1"}), [[1, 2], [3, 4]]
    )
    expanded = expand(problem.graph).problem(problem)
    assert expanded.seconds.tolist() == [[1, 2], [3, 4], [3, 4]]
    assert expanded.legal([[0, 1, 1], [0, 0, 1]]).tolist() == [True, False]


@pytest.mark.parametrize("p", [10**4, 10**6])
def test_an_expansion_too_large_is_refused(p):
    with pytest.raises(GraphError, match=f"{2 * p} subtasks and {p * p} streams"):
        expand(pair(p, p, partitioning="hash"))


@pytest.mark.parametrize("partitioning", ["", "rebalance"])
def test_subtasks_of_a_join_take_sets_of_what_all_subtasks_send(partitioning):
    """Three and two senders' subtasks are two inputs of each of the four subtasks that join."""
    operators = [
        Operator("a", rate=60, parallelism=3),
        Operator("b", rate=60, parallelism=2),
        Operator("join", parallelism=4, fires="all"),
        Operator("sink"),
    ]
    streams = [
        Stream("a", "join", partitioning=partitioning),
        Stream("b", "join"),
        Stream("join", "sink"),
    ]
    expanded = expand(StreamGraph.of("join", operators, streams)).graph
    assert [o.name for o in expanded.operators if o.fires == "all"] == [
        f"join#{i}" for i in range(4)
    ]
    assert expanded.input_rate[-5:-1].tolist() == pytest.approx([15] * 4)
    assert expanded.input_rate[-1] == pytest.approx(60)


@pytest.mark.parametrize("partitioning", ["rebalance", "hash"])
def test_subtasks_are_sent_tuples_of_their_own(partitioning):
    """On a link, the halves of two subtasks take as long as the whole of their operator."""
    streams = [Stream("a", "b", partitioning=partitioning)]
    operators = [Operator("a", payload=1e6), Operator("b", parallelism=2)]
    graph = StreamGraph.of("two", operators, streams, fires="all")
    cluster, link = Cluster.uniform(2, bandwidth=8e6), Rules(network="link")
    for whole, place in ((graph, [0, 1]), (expand(graph).graph, [0, 1, 1])):
        seconds = makespans(Problem(whole, cluster).one_pass, [place], link)
        assert seconds.tolist() == pytest.approx([1.0])
