"""Stream graphs: what is accepted, what is derived, what is refused."""

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import diamond, many_sources
from strategies import graphs

from streamplace.errors import GraphError
from streamplace.model import Operator, Operators, Stream, StreamGraph, Streams, Window


def pipe(**attributes):
    """Source and sink."""
    operators = [Operator("src", rate=10), Operator("sink")]
    return StreamGraph.of("pipe", operators, [Stream("src", "sink")], attributes)


def test_rates_follow_selectivities_and_parallel_streams_add_up():
    assert diamond().input_rate.tolist() == [1e4, 5e3, 5e3, 1e4]
    operators = [Operator("src", rate=10), Operator("sink")]
    graph = StreamGraph.of("twice", operators, [Stream("src", "sink"), Stream("src", "sink", 0.5)])
    assert graph.input_rate.tolist() == [10, 15]


def test_a_window_sets_the_output_rate():
    """Two evaluations per second of 1 + 0.5 · 20 tuples."""
    operators = [Operator("src", rate=10), Operator("win", window=Window(2, 0.5, 1, 0.5))]
    graph = StreamGraph.of(
        "windowed", [*operators, Operator("sink")], [Stream("src", "win"), Stream("win", "sink")]
    )
    assert graph.input_rate.tolist() == [10, 10, 22]


def test_sources_have_a_rate_and_sinks_feed_nobody():
    graph = many_sources()
    assert graph.sources.tolist() == [0, 1, 2, 3, 4]
    assert [graph.operators.name[v] for v in graph.sinks] == ["x", "y"]


@given(graphs(), st.floats(1, 1e6))
def test_a_graph_at_another_rate_is_scaled(graph, rate):
    scaled = graph.at_rate(rate)
    assert scaled.source_rate == pytest.approx(rate)
    np.testing.assert_allclose(
        scaled.input_rate, graph.input_rate * (rate / graph.source_rate), rtol=1e-9, atol=1e-300
    )
    assert scaled.operators.name == graph.operators.name


@given(graphs(windowed=True))
def test_graphs_survive_pickling_and_copying(graph):
    assert pickle.loads(pickle.dumps(graph)) == graph
    assert copy.deepcopy(graph) == graph


def test_attributes_are_plain_and_read_only():
    graph = pipe(split="train", copies=np.int64(3))
    assert type(graph.attributes["copies"]) is int
    with pytest.raises(TypeError):
        graph.attributes["split"] = "test"


@pytest.mark.parametrize("value", [None, [1], math.nan, 2**63, np.ones(2), "\ud800"])
def test_an_attribute_that_no_file_could_hold_is_refused(value):
    with pytest.raises(GraphError, match=r"attribute 'split' is .*"):
        pipe(split=value)


def test_a_cycle_is_named_in_the_direction_of_its_streams():
    operators = [Operator("src", rate=1), *map(Operator, "abc")]
    streams = [Stream("src", "a"), Stream("a", "b"), Stream("b", "c"), Stream("c", "a")]
    with pytest.raises(GraphError, match=r"(a → b → c → a|b → c → a → b|c → a → b)"):
        StreamGraph.of("loop", operators, streams)
    with pytest.raises(GraphError, match="a → a"):
        StreamGraph.of("loop", [Operator("a", rate=1)], [Stream("a", "a")])


def test_a_long_cycle_is_abridged():
    operators = [Operator(f"v{i}") for i in range(1000)]
    streams = [Stream(f"v{i}", f"v{(i + 1) % 1000}") for i in range(1000)]
    with pytest.raises(GraphError, match="→ … →") as caught:
        StreamGraph.of("ring", operators, streams)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("operators", "streams", "place"),
    [
        ([], [], "no operators"),
        ([Operator("a", rate=1), Operator("lost")], [], "operator 'lost'"),
        (
            [Operator("a", rate=1), Operator("b", rate=2)],
            [Stream("a", "b")],
            "operator 'b' has rate 2",
        ),
        (
            [Operator("a", rate=1e15), Operator("b"), Operator("c")],
            [Stream("a", "b", 1e15), Stream("b", "c", 0)],
            r"operator 'b' .*1e\+30 tuples/s",
        ),
        ([Operator("w", rate=1, window=Window(1, 1), fires="all")], [], "'w'.*'all'"),
    ],
)
def test_a_graph_that_makes_no_sense_is_refused(operators, streams, place):
    with pytest.raises(GraphError, match=place):
        StreamGraph.of("bad", operators, streams)


def test_a_source_of_rate_0_counts_for_nothing():
    """Where another has a rate; among none that has, and without streams, it is refused."""
    streams = [Stream("cam", "sink"), Stream("meter", "sink")]
    operators = [Operator("cam", ipt=1e9), Operator("meter", rate=100), Operator("sink", ipt=1e5)]
    graph = StreamGraph.of("g", operators, streams)
    assert (graph.sources.tolist(), graph.source_rate) == ([1], 100)
    assert graph.at_rate(50).operators.rate.tolist() == [0, 50, 0]
    silent = [Operator("cam"), Operator("meter"), Operator("sink")]
    with pytest.raises(GraphError, match="'cam' has neither input streams nor a rate above 0"):
        StreamGraph.of("g", silent, streams)


def test_streams_of_another_graph_are_refused():
    one, two = (Operators(["a"], rate=[1]) for _ in range(2))
    with pytest.raises(GraphError, match="another graph"):
        StreamGraph("mixed", one, Streams(two, [], []))


def tasks(*, left=1.0):
    operators = [Operator(name, ipt=1e6) for name in ("load", "left", "right", "add")]
    ways = [("load", "left"), ("load", "right"), ("left", "add"), ("right", "add")]
    streams = [Stream(*ends, selectivity=left if ends[0] == "left" else 1.0) for ends in ways]
    return StreamGraph.of("tasks", operators, streams, fires="all")


def test_a_graph_that_fires_all_is_a_task_graph():
    graph = tasks()
    assert graph.input_rate.tolist() == [1, 1, 1, 1]
    assert graph.operators["add"].fires == "all"
    assert graph.at_rate(30).input_rate.tolist() == [30, 30, 30, 30]


def test_unequal_inputs_of_a_join_are_named_with_their_rates():
    with pytest.raises(GraphError, match=r"right→add brings 1 tuples/s and left→add 0\.5"):
        tasks(left=0.5)


def test_an_operator_may_say_otherwise_than_its_graph():
    operators = [Operator("a", rate=3), Operator("b", rate=2), Operator("merge", fires="each")]
    graph = StreamGraph.of(
        "merge", operators, [Stream("a", "merge"), Stream("b", "merge")], fires="all"
    )
    assert graph.input_rate.tolist() == [3, 2, 5]
