"""Plans beside messages between subtasks, which are more for more subtasks."""

from dataclasses import replace

import numpy as np
import pytest
from streamsim import bottleneck, resource_loads

import streamplace
from streamplace import Budget, Operator, Stream, StreamGraph
from streamplace.model import Problem
from streamplace.model.expansion import expand
from streamplace.planning.contents import CPU, packing_of
from streamplace.planning.demand import demand_of
from streamplace.planning.offers import Catalogue, Offer
from streamplace.planning.packed import uses
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
    instance = Problem(reached, dear.cluster).instance
    assert bottleneck(resource_loads(instance, dear.placement.index)).load == pytest.approx(1)


def test_the_check_of_a_plan_counts_messages() -> None:
    free = planned(0.0)
    dear = replace(free, graph=replace(free.graph, attributes=DEAR))
    asked = PlanProblem.of(graph(), OFFERS)
    assert not list(contradictions(PlanProblem.of(graph(0.0), OFFERS), free))
    assert any("of the rate" in reason for reason in contradictions(asked, dear))


def test_the_check_of_a_plan_counts_messages_at_the_rate_that_it_carries() -> None:
    """There are more than at the rate that was asked for, so one in 10,000 less is carried."""
    dear, asked = planned(2e6), PlanProblem.of(graph(), OFFERS)
    assert not list(contradictions(asked, dear))
    (reason,) = contradictions(asked, replace(dear, carries=1.0001 * dear.carries))
    assert reason.startswith("it says that it carries")


@pytest.mark.parametrize("robust", [0, 1])
def test_a_packing_charges_the_messages_of_its_parallelism(robust: int) -> None:
    """Four channels of 250 tuples/s; costs may be too low by a half."""
    demand, p = demand_of(graph(), 0.5, robust), np.array([2, 2], np.int32)
    rows, kinds = np.array([[1, 1], [1, 1]], np.int32), np.zeros(2, np.int32)
    each = (1450 + 4 * 250 / 26) / 2
    used = uses(packing_of(demand, OFFERS, p), kinds, rows)
    assert used[:, CPU].tolist() == pytest.approx([(2 + 0.5 * robust) * each / 1000] * 2)
