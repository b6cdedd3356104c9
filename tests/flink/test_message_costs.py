"""Messages between subtasks: what a profile contains of them."""

import numpy as np
import pytest
from problems import parse_graph

from streamplace.flink.measure.streams import with_message_cost
from streamplace.io.graphs import graph_line
from streamplace.model import Operator, Stream, StreamGraph
from streamplace.model.subtasks import with_parallelism


def test_a_profile_contains_the_messages_at_its_parallelism_and_rate():
    measured = with_message_cost(pair(), 1000.0)
    assert parse_graph(graph_line(measured), "line") == measured
    cost = 0.5 * float(measured.attributes["message ipt"]) / 1e6
    sent = 320 / 3

    def more(rate, p):
        graph = with_parallelism(measured.at_rate(rate), np.array([p, p], np.int32))
        return (graph.charged_constant / cost).tolist()

    assert more(320.0, 4) == [0.0, 0.0]
    assert more(320.0, 2) == [0.0, 0.0]
    assert more(320.0, 8) == pytest.approx([320 / 1.5 - sent] * 2, rel=1e-9)
    assert more(32.0, 4) == pytest.approx([32 / 1.2 - sent / 10] * 2, rel=1e-9)
    assert more(3200.0, 4) == [0.0, 0.0]


def pair():
    """Two operators of four subtasks each: 20 tuples/s flow through each of 16 channels."""
    ends = [
        Operator("a", ipt=1e6, rate=320.0, parallelism=4),
        Operator("b", ipt=1e6, parallelism=4),
    ]
    return StreamGraph.of("pair", ends, [Stream("a", "b", partitioning="rebalance")])


def test_operators_with_a_constant_load_contain_messages_as_others_do():
    ends = [Operator("a", ipt=1e6, rate=320.0), Operator("b", ipt=1e6, constant=1.0)]
    graph = StreamGraph.of("pair", ends, [Stream("a", "b", partitioning="rebalance")])
    attributes = with_message_cost(graph, 1000.0).attributes
    assert {"messages per tuple of a", "messages per tuple of b"} <= attributes.keys()
