"""Messages between subtasks: their number, what they cost, and what a profile contains of them."""

from collections.abc import Mapping

import pytest
from streamsim import throughput

from streamplace.errors import GraphError
from streamplace.model import Cluster, Operator, Problem, Stream, StreamGraph
from streamplace.model.expansion import expand

COSTS: Mapping[str, str | float] = {"message ipt": 2e5, "buffer timeout": 0.1}


def pair(attributes=COSTS, parallelism=(4, 4), kind="rebalance", rate=320.0):
    """Two operators; with four subtasks each, 20 tuples/s flow through each of 16 channels."""
    ends = [
        Operator("a", ipt=1e6, rate=rate, parallelism=parallelism[0]),
        Operator("b", ipt=1e6, parallelism=parallelism[1]),
    ]
    return StreamGraph.of("pair", ends, [Stream("a", "b", partitioning=kind)], attributes)


@pytest.mark.parametrize(
    ("kind", "parallelism", "each"),
    [
        ("rebalance", (4, 4), 16 * 20 / (1 + 20 * 0.1) / 4),
        ("rebalance", (2, 4), 8 * 40 / (1 + 40 * 0.1) / 2),
        ("hash", (4, 4), 16 * 20 / (1 + 20 * 0.1) / 4),
        ("forward", (4, 4), 4 * 80 / (1 + 80 * 0.1) / 4),
        ("", (4, 4), 4 * 80 / (1 + 80 * 0.1) / 4),
        ("", (1, 1), 320 / (1 + 320 * 0.1)),
        ("chained", (4, 4), 0.0),
    ],
)
def test_subtasks_have_their_part(kind, parallelism, each):
    """Half of a message costs 1e5 instructions: 0.1 MIPS for each per second."""
    graph = pair(parallelism=parallelism, kind=kind)
    p, q = parallelism
    expansion = expand(graph)
    wanted = [0.1 * each] * p + [0.1 * each * p / q] * q
    assert expansion.graph.operators.constant.tolist() == pytest.approx(wanted, rel=1e-12)
    assert expand(expansion.graph).graph == expansion.graph
    cluster = Cluster.uniform(1, mips=400.0)
    whole = throughput(Problem(graph, cluster).instance, [[0, 0]])
    apart = expansion.problem(Problem(graph, cluster))
    assert throughput(apart.instance, [[0] * (p + q)]) == pytest.approx(whole, rel=1e-12)
    assert whole[0] == pytest.approx((400 - sum(wanted)) / 640, rel=1e-12)


def test_nothing_changes_where_a_graph_does_not_say_what_a_message_costs():
    for attributes in ({}, {"buffer timeout": 0.1, "messages per tuple of a": 1.0}):
        graph = pair(attributes)
        assert graph.charged_constant is graph.operators.constant
        assert not expand(graph).graph.operators.constant.any()
    alone = pair({}, (1, 1))
    assert expand(alone).graph is alone


def test_no_charge_is_saved_by_a_contained_cost_above_the_cpu_that_was_measured():
    """The ipt of 1e6 contains at most itself, so that the load grows with the rate."""
    graph = pair({"message ipt": 1e9, "buffer timeout": 0.1, "messages per tuple of b": 1.0})
    loads = [
        float(at.input_rate[1] * 1.0 + at.charged_constant[1])
        for at in map(graph.at_rate, (1.0, 10.0, 100.0, 1e3, 1e4, 1e6))
    ]
    assert loads == sorted(loads)
    assert graph.charged_constant[1] == pytest.approx(500 * 320 / 3 - 320)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"message ipt": 2e5}, "'message ipt' without 'buffer timeout'"),
        ({"message ipt": "dear", "buffer timeout": 0.1}, "'message ipt' is 'dear'"),
        ({"message ipt": 1.0, "buffer timeout": -1}, "'buffer timeout' is -1"),
        ({"messages per tuple of b": True}, "'messages per tuple of b' is True"),
    ],
)
def test_what_is_no_amount_is_refused(attributes, message):
    with pytest.raises(GraphError, match=message):
        pair(attributes)
