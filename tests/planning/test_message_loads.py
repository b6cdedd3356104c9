"""Plans beside messages between subtasks, which are more for more subtasks."""

from dataclasses import replace

import pytest
from streamsim import throughput

import streamplace
from streamplace import Budget, Operator, Stream, StreamGraph
from streamplace.model import Problem
from streamplace.model.expansion import expand
from streamplace.planning.offers import Catalogue, Offer
from streamplace.planning.problem import PlanProblem
from streamplace.planning.result import PlanResult
from streamplace.planning.verification import contradictions

OFFERS = Catalogue.of([Offer("small", 1.0, mips=1000)])
DEAR = {"message ipt": 2e6, "buffer timeout": 0.1}


def graph(ipt: float = 2e6) -> StreamGraph:
    """Two operators that each need 1450 of the 1000 MIPS of a machine."""
    ends = [Operator("a", ipt=1.45e6, rate=1000.0), Operator("b", ipt=1.45e6)]
    costs = {"message ipt": ipt, "buffer timeout": 0.1}
    return StreamGraph.of("pair", ends, [Stream("a", "b", partitioning="rebalance")], costs)


def planned(ipt: float) -> PlanResult:
    """Plan for messages that take this number of instructions."""
    return streamplace.plan(graph(ipt), offers=OFFERS, seed=1, budget=Budget(None, 20_000))


def test_a_plan_has_fewer_subtasks_where_messages_are_dear() -> None:
    """Three machines hold six halves of a core. Nine channels at 9.2 messages/s are too much."""
    free, dear = planned(0.0), planned(2e6)
    assert free.cost == 3
    assert sum(free.parallelism.values()) == 6
    assert dear.cost == 4
    assert sum(dear.parallelism.values()) == 4
    assert dear.bound == free.bound == 3
    reached = expand(dear.graph.at_rate(dear.carries)).graph
    assert reached.operators.constant.tolist() == pytest.approx(
        [4 * dear.carries / 4 / (1 + dear.carries / 4 * 0.1) / 2] * 4
    )
    share = throughput(Problem(reached, dear.cluster).instance, dear.placement.index[None])[0]
    assert share == pytest.approx(1.0, rel=1e-9)


def test_the_check_of_a_plan_counts_messages() -> None:
    free = planned(0.0)
    dear = replace(free, graph=replace(free.graph, attributes=DEAR))
    asked = PlanProblem.of(graph(), OFFERS)
    assert not list(contradictions(PlanProblem.of(graph(0.0), OFFERS), free))
    assert any("of the rate" in reason for reason in contradictions(asked, dear))
