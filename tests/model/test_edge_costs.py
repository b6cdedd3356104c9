"""Costs of a stream: nothing where it is chained, ``ipt`` elsewhere, and overhead to send it."""

import numpy as np
import pytest
from streamsim import resource_loads

from streamplace import Cluster, Device, Operator, Problem, Stream, StreamGraph
from streamplace.drawing.graphs import draw_graph
from streamplace.drawing.scene import Label
from streamplace.errors import PlacementError
from streamplace.model.expansion import expand


def pair(partitioning="forward", ipt=0.0, parallelism=1):
    """A source of 100 tuples/s of 50 bytes, half of which reach a second operator."""
    ends = [
        Operator("a", ipt=1e6, payload=50, rate=100, parallelism=parallelism),
        Operator("b", ipt=4e6, parallelism=parallelism),
    ]
    return StreamGraph.of("pair", ends, [Stream("a", "b", 0.5, partitioning=partitioning, ipt=ipt)])


def cluster(**costs):
    """Two devices of 1000 MIPS, with fast links."""
    return Cluster.of([Device("x", mips=1000), Device("y", mips=1000)], bandwidth="1 Tbps", **costs)


def device_loads(graph, cluster, placement):
    return resource_loads(Problem(graph, cluster).instance, placement).devices.tolist()


def test_chained_local_and_remote_tuples_cost_each_their_own():
    """50 tuples/s: 0.1 ms of each end to hand over, 1 ms + 50 · 10 µs of each end to send."""
    remote = cluster(overhead=1e-3, overhead_per_byte=1e-5)
    assert device_loads(pair("chained", 2e5), remote, [0, 0]) == pytest.approx([0.3, 0])
    assert device_loads(pair("forward", 2e5), remote, [0, 0]) == pytest.approx([0.31, 0])
    apart = [0.1 + 0.005 + 0.05 + 0.025, 0.2 + 0.005 + 0.05 + 0.025]
    assert device_loads(pair("forward", 2e5), remote, [0, 1]) == pytest.approx(apart)


def test_streams_without_costs_change_no_digit():
    plain, chained = (Problem(pair(kind), cluster()).instance for kind in ("forward", "chained"))
    assert plain.seconds.tobytes() == chained.seconds.tobytes()
    assert pair().charged_ipt is pair().operators.ipt or (pair().charged_ipt == [1e6, 4e6]).all()


def test_subtasks_share_the_cost_of_a_stream():
    graph = pair("rebalance", 2e5, parallelism=2)
    whole, split = device_loads(graph, cluster(), [0, 0]), expand(graph).graph
    assert device_loads(split, cluster(), [0, 0, 0, 0]) == pytest.approx(whole)
    assert device_loads(split, cluster(), [0, 1, 0, 1]) == pytest.approx([whole[0] / 2] * 2)


def test_tables_and_drawings_of_a_graph_count_what_streams_and_messages_cost():
    """As its placements do: 50 tuples/s, half of whose cost each end has; then messages."""
    graph = pair("forward", 2e6)
    sent = StreamGraph(graph.name, graph.operators, graph.streams, {
        "message ipt": 1e6, "buffer timeout": 0.0})  # fmt: skip
    for one, mips in ((graph, ("150 MIPS", "250 MIPS")), (sent, ("175 MIPS", "275 MIPS"))):
        drawn = {label.text for label in draw_graph(one).scene.shapes if isinstance(label, Label)}
        assert set(mips) <= drawn
        assert all(text in str(one) for text in mips)


def test_large_numbers_in_tables_and_drawings_have_no_exponents():
    tasks = StreamGraph.of("tasks", [Operator("a", ipt=2.5e12)], fires="all")
    assert "2500000 M instructions" in str(tasks)
    ends = [Operator("a", ipt=9.996e6, rate=100), Operator("b", constant=12340)]
    graph = StreamGraph.of("pair", ends, [Stream("a", "b")])
    assert "12340 MIPS, 12340 at any rate" in str(graph)
    drawn = {label.text for label in draw_graph(graph).scene.shapes if isinstance(label, Label)}
    assert {"1,000 MIPS", "12,340 MIPS"} <= drawn


def test_a_cost_matrix_is_charged_for_streams_as_well():
    seconds = np.full((2, 2), 1e-3)
    instance = Problem(pair("forward", 2e5), cluster(), seconds=seconds).instance
    assert resource_loads(instance, [0, 0]).devices[0] == pytest.approx(0.1 + 0.05 + 0.01)


def test_the_ends_of_a_chained_stream_share_a_device():
    """As if they were colocated; a chain of subtasks joins those of one number."""
    problem = Problem(pair("chained"), cluster())
    assert problem.legal([[0, 0], [0, 1], [1, 1]]).tolist() == [True, False, True]
    with pytest.raises(PlacementError, match="'a' and 'b'"):
        problem.check(problem.placement([0, 1]))
    split = expand(pair("chained", parallelism=2)).graph
    legal = Problem(split, cluster()).legal([[0, 1, 0, 1], [0, 1, 1, 0]])
    assert legal.tolist() == [True, False]
