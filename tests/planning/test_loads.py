"""Plans beside constant loads, and beside messages, of which more subtasks send more."""

from dataclasses import replace

import numpy as np
import pytest
from planning_cases import carried, chain
from streamsim import bottleneck, resource_loads

import streamplace
from streamplace import Budget, Operator, Stream, StreamGraph
from streamplace.model import Problem
from streamplace.model.expansion import expand
from streamplace.planning.offers import Catalogue, Offer
from streamplace.planning.packing import PackedMachines
from streamplace.planning.problem import PlanProblem
from streamplace.planning.rates import rate_of
from streamplace.planning.verification import contradictions

FEW = Catalogue.of([Offer("small", 1.0, mips=1000, at_most=9)])
OFFERS = Catalogue.of([Offer("small", 1.0, mips=1000)])
DEAR = {"message ipt": 2e6, "buffer timeout": 0.1}


def held(rate, constant, **more):
    """Plan for one operator that needs 0.2 MIPS per tuple/s, and ``constant`` at any rate."""
    only = Operator("only", ipt=2e5, rate=rate, constant=constant, max_parallelism=1)
    return few(StreamGraph.of("one", [only]), **more)


def few(graph, **more):
    """Plan on up to nine machines."""
    return streamplace.plan(graph, offers=FEW, seed=1, budget=Budget(None, 2000), **more)


@pytest.mark.parametrize(("constant", "carries"), [(0.0, 5000.0), (500.0, 2500.0), (800.0, 1000.0)])
def test_a_plan_carries_what_its_constant_loads_leave(constant, carries):
    result = held(900, constant)
    assert result.carries == pytest.approx(carries, rel=1e-9)
    assert carried(result, result.carries) == pytest.approx(1.0, rel=1e-9)


def test_what_constant_loads_leave_does_not_depend_on_the_rate_that_is_planned():
    """However small that is: 2.5e12 times a billionth of a tuple per second."""
    assert held(1e-9, 500.0).carries == pytest.approx(2500.0)


def test_headroom_is_for_more_tuples_and_not_for_more_constant_loads():
    """A fifth of 2500 tuples/s stays free: 2000 can be planned and 2001 cannot."""
    assert sum(held(2000, 500.0, headroom=0.2).machines.values()) == 1
    with pytest.raises(streamplace.StreamplaceError, match="2001"):
        held(2001, 500.0, headroom=0.2)


def test_what_the_headroom_leaves_free_is_not_in_use():
    """A machine executes 1000 MIPS: 500 for the constant load, and 400 for 2000 tuples/s."""
    result = held(2000, 500.0, headroom=0.2)
    assert result.limit.use == pytest.approx(0.9)
    assert result.free["cpu"] == pytest.approx(0.1)


def test_a_machine_that_constant_loads_overfill_carries_nothing():
    graph = StreamGraph.of("over", [Operator("src", ipt=1e3, rate=1.0, constant=1500)])
    problem = PlanProblem.of(graph, Catalogue.of([Offer("small", 1.0, mips=1000)]))
    one = np.ones((1, 1), np.int32)
    assert rate_of(problem, PackedMachines(np.zeros(1, np.int32), one[0], one)) == 0


def test_a_machine_that_constant_loads_fill_limits_no_rate():
    """40, 30 and 30 % of its speed add up to more than the whole by the last bit."""
    unit = 9 / 7
    operators = [
        Operator(f"v{i}", ipt=0, rate=1.0, constant=part * unit, max_parallelism=1)
        for i, part in enumerate([4, 3, 3])
    ]
    graph = StreamGraph.of("full", operators)
    offers = Catalogue.of([Offer("small", 1.0, mips=10 * unit)])
    result = streamplace.plan(graph, offers=offers, seed=1, budget=Budget(None, 2000))
    assert result.machines == {"small": 1}
    assert result.carries == float("inf")


@pytest.mark.parametrize(
    ("operators", "carries"),
    [
        (  # the machine that is 80 % full of constant loads is full later than the one at 70 %
            [
                Operator("src", ipt=1e5, rate=1000.0, constant=700, max_parallelism=1),
                Operator("sink", ipt=7e5, max_parallelism=1),
            ],
            1000 / 0.7,
        ),
        (  # a machine that constant loads fill is not what limits
            [
                Operator("timer", ipt=0, rate=1.0, constant=1000, max_parallelism=1),
                Operator("sink", ipt=7e5, rate=1000.0, max_parallelism=1),
            ],
            1001 / 0.7,
        ),
    ],
)
def test_what_limits_is_what_is_full_first(operators, carries):
    is_chain = not operators[1].rate
    result = few(chain(*operators) if is_chain else StreamGraph.of("two", operators))
    assert (result.limit.operator, result.limit.use) == ("sink", pytest.approx(0.7))
    assert result.carries == pytest.approx(carries, rel=1e-9)


def sending(ipt=2e6):
    """Two operators that each need 1450 of the 1000 MIPS of a machine."""
    ends = [Operator("a", ipt=1.45e6, rate=1000.0), Operator("b", ipt=1.45e6)]
    costs = {"message ipt": ipt, "buffer timeout": 0.1}
    return StreamGraph.of("pair", ends, [Stream("a", "b", partitioning="rebalance")], costs)


def planned(ipt):
    """Plan for messages that take this number of instructions."""
    return streamplace.plan(sending(ipt), offers=OFFERS, seed=1, budget=Budget(None, 20_000))


def test_a_plan_has_fewer_subtasks_where_messages_are_dear():
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


def test_the_check_of_a_plan_counts_messages():
    """Of the rate that it carries, too: there are more than at the rate that was asked for."""
    free, asked = planned(0.0), PlanProblem.of(sending(), OFFERS)
    assert not list(contradictions(PlanProblem.of(sending(0.0), OFFERS), free))
    dear = replace(free, graph=replace(free.graph, attributes=DEAR))
    assert any("of the rate" in reason for reason in contradictions(asked, dear))
    dear = planned(2e6)
    assert not list(contradictions(asked, dear))
    (reason,) = contradictions(asked, replace(dear, carries=1.0001 * dear.carries))
    assert reason.startswith("it says that it carries")
