"""Plans of operators whose subtasks are joined one to one."""

from dataclasses import replace

import numpy as np
import pytest
from planning_cases import carried, chain

import streamplace
from streamplace import Budget, Cluster, Device, Offer, Operator, Stream, StreamGraph
from streamplace.errors import GraphError
from streamplace.planning.offers import Catalogue

BUDGET = Budget(None, 20_000)


@pytest.mark.parametrize("kind", ["forward", ""])
@pytest.mark.parametrize("width", [1e6, 5e5])
def test_an_operator_is_beside_the_partners_of_all_of_its_inputs(kind, width):
    """Memory lets no machine hold more of the light source; the heavy stream crosses nothing."""
    operators = [
        Operator("light", ipt=1000, rate=1000, payload=1, memory=30, parallelism=3),
        Operator("heavy", ipt=1000, rate=3000, payload=100, memory=3, parallelism=3),
        Operator("union", ipt=1000, memory=9, parallelism=3),
    ]
    streams = [Stream(name, "union", partitioning=kind) for name in ("light", "heavy")]
    graph = StreamGraph.of("union", operators, streams)
    offers = [
        Offer(name, 1.0, cores=4, memory=memory, egress=width, ingress=width, at_most=1)
        for name, memory in (("a", 18), ("b", 14), ("c", 10))
    ]
    result = streamplace.plan(graph, offers=offers, keep_parallelism=True, budget=BUDGET)
    places = result.subtasks()
    assert places["light"] == {"a-0": 1, "b-0": 1, "c-0": 1}
    assert places["heavy"] == places["union"]
    assert carried(result, result.carries) == pytest.approx(1, rel=1e-6)


def test_a_loop_whose_partners_are_apart_carries_less():
    """Memory keeps a machine from holding whole loops; some stream crosses between machines."""
    memory = {"a": 20, "b": 10, "c": 30, "d": 20}
    operators = [
        Operator(name, ipt=1000, rate=1000 * (name == "a"), payload=100, memory=m, parallelism=3)
        for name, m in memory.items()
    ]
    streams = [Stream(*ends) for ends in ("ab", "ac", "bd", "cd")]
    graph = StreamGraph.of("loop", operators, streams)
    offers = [
        Offer(name, 1.0, cores=4, memory=m, egress=1e6, ingress=1e6, at_most=1)
        for name, m in (("a", 25), ("b", 30), ("c", 30))
    ]
    result = streamplace.plan(graph, offers=offers, keep_parallelism=True, budget=BUDGET)
    assert carried(result, result.carries) == pytest.approx(1, rel=1e-6)
    assert result.limit.use == pytest.approx(1000 / result.carries)


def test_a_loop_whose_partners_are_apart_carries_what_messages_leave_at_that_rate():
    """There are more messages than at the rate that was asked for.

    Memory allows a single packing, in which some streams cross. Contents count a pair of ``c`` and
    ``d`` on one machine, which the other streams keep apart.
    """
    memory = {"a": 3, "b": 30, "c": 300, "d": 3000}
    operators = [
        Operator(name, ipt=1500 if name == "d" else 3000, memory=m, parallelism=3,
                 rate=1000 * (name == "a"))
        for name, m in memory.items()
    ]  # fmt: skip
    streams = [Stream(*ends, partitioning="forward") for ends in ("ab", "ac", "bd", "cd")]
    costs = {"message ipt": 1e4, "buffer timeout": 0.1}
    graph = StreamGraph.of("loop", operators, streams, costs)
    machines = (("x", 9.2, 2021), ("y", 4.7, 111), ("z", 8.0, 1201))
    offers = [Offer(name, 1.0, mips=mips, memory=m, at_most=1) for name, mips, m in machines]
    catalogue, budget = Catalogue.of(offers, 1.5e-4), Budget(None, 10**6)
    result = streamplace.plan(graph, offers=catalogue, keep_parallelism=True, budget=budget)
    assert result.cost == 3
    assert result.carries > 1.1 * result.rate
    assert carried(result, result.carries) == pytest.approx(1, rel=1e-6)


def joined(groups, join, kind):
    """Two sources, and what joins one tuple of each; the first is joined one to one."""
    sources = [Operator("a", rate=1000, max_parallelism=groups), Operator("b", rate=1000)]
    streams = [Stream("a", "join", partitioning="forward"), Stream("b", "join", partitioning=kind)]
    return StreamGraph.of("joined", [*sources, join], streams)


@pytest.mark.parametrize("bought", [True, False])
def test_parallelisms_that_give_a_join_unequal_inputs_are_not_used(bought):
    """Of two subtasks, one would get two of three key groups of one input, half of the other."""
    graph = joined(3, Operator("join", ipt=1.5e6, fires="all"), "rebalance")
    offers = [Offer("m", 1.0, mips=1000, cores=4)] if bought else None
    cluster = None if bought else Cluster.of([Device("m", mips=1000, cores=4)])
    result = streamplace.plan(graph, offers=offers, cluster=cluster, budget=BUDGET)
    assert result.parallelism["join"] == 3
    assert carried(result, result.carries) == pytest.approx(1, rel=1e-6)
    kept = graph.with_operators(replace(graph.operators, parallelism=np.array([2, 2, 2], np.int32)))
    with pytest.raises(GraphError, match="'join#1'"):
        streamplace.plan(kept, offers=offers, cluster=cluster, keep_parallelism=True, budget=BUDGET)


def test_a_join_of_forward_and_keyed_inputs_has_a_parallelism_that_divides_the_key_groups():
    """Three subtasks would do, but get 43, 43 and 42 of 128 key groups."""
    graph = joined(0, Operator("join", ipt=2.4e6, fires="all", max_parallelism=128), "hash")
    cluster = Cluster.of([Device("m", mips=1000, cores=4)])
    result = streamplace.plan(graph, cluster=cluster, budget=BUDGET)
    assert result.parallelism["join"] == 4
    assert carried(result, result.carries) == pytest.approx(1, rel=1e-6)


def test_a_stream_is_hashed_to_key_groups_although_both_ends_keep_equal_parallelisms():
    """The source's subtasks have two and one of three splits, and the receiver's equal parts."""
    graph = chain(
        Operator("source", ipt=10, rate=1000, parallelism=2, max_parallelism=3),
        Operator("sum", ipt=1000, parallelism=2, max_parallelism=4),
    )
    offers = [Offer("m", 1.0, mips=0.6, cores=2)]
    result = streamplace.plan(graph, offers=offers, keep_parallelism=True, budget=BUDGET)
    assert result.machines == {"m": 1}
    assert carried(result, result.carries) == pytest.approx(1, rel=1e-6)
