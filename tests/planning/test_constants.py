"""Plans beside constant loads, which do not grow with the rate."""

import pytest
from streamsim import throughput

import streamplace
from streamplace import Budget, Operator, Stream, StreamGraph
from streamplace.model import Problem
from streamplace.model.expansion import expand
from streamplace.planning.offers import Catalogue, Offer
from streamplace.planning.result import PlanResult

OFFERS = Catalogue.of([Offer("small", 1.0, mips=1000, at_most=9)])


def graph(rate: float, constant: float) -> StreamGraph:
    """One operator that needs 0.2 MIPS per tuple/s, and ``constant`` at any rate."""
    only = Operator("only", ipt=2e5, rate=rate, constant=constant, max_parallelism=1)
    return StreamGraph.of("one", [only])


def planned(rate: float, constant: float, **more: float) -> PlanResult:
    """Plan for a rate."""
    settings = {"seed": 1, "budget": Budget(None, 2000), **more}
    return streamplace.plan(graph(rate, constant), offers=OFFERS, **settings)


@pytest.mark.parametrize(("constant", "carries"), [(0.0, 5000.0), (500.0, 2500.0), (800.0, 1000.0)])
def test_a_plan_carries_what_its_constant_loads_leave(constant: float, carries: float) -> None:
    result = planned(900, constant)
    assert result.carries == pytest.approx(carries, rel=1e-9)
    at = Problem(expand(result.graph.at_rate(result.carries)).graph, result.cluster).instance
    assert throughput(at, result.placement.index[None])[0] == pytest.approx(1.0, rel=1e-9)


def test_the_reserve_for_wrong_costs_is_for_constant_loads_as_well() -> None:
    """1.25 · (500 + 0.2 · rate) of 1000 MIPS: 1500 tuples/s."""
    assert planned(900, 500.0, robust=1, error=0.25).carries == pytest.approx(1500, rel=1e-9)


def test_headroom_is_for_more_tuples_and_not_for_more_constant_loads() -> None:
    """A fifth of 2500 tuples/s stays free: 2000 can be planned and 2001 cannot."""
    assert sum(planned(2000, 500.0, headroom=0.2).machines.values()) == 1
    with pytest.raises(streamplace.StreamplaceError, match="no offers carry 2001"):
        planned(2001, 500.0, headroom=0.2)


def test_machines_are_needed_for_constant_loads_alone() -> None:
    operators = [
        Operator("src", ipt=1, rate=1.0, constant=700, max_parallelism=1),
        Operator("sink", ipt=1, constant=700, max_parallelism=1),
    ]
    both = StreamGraph.of("two", operators, [Stream("src", "sink")])
    result = streamplace.plan(both, offers=OFFERS, seed=1, budget=Budget(None, 2000))
    assert sum(result.machines.values()) == 2
    assert result.bound == 2


def test_what_limits_is_what_is_full_first() -> None:
    """The machine that is 80 % full of constant loads is full later than the one at 70 %."""
    operators = [
        Operator("src", ipt=1e5, rate=1000.0, constant=700, max_parallelism=1),
        Operator("sink", ipt=7e5, max_parallelism=1),
    ]
    both = StreamGraph.of("two", operators, [Stream("src", "sink")])
    result = streamplace.plan(both, offers=OFFERS, seed=1, budget=Budget(None, 2000))
    assert result.limit.operator == "sink"
    assert result.limit.use == pytest.approx(0.7)
    assert result.carries == pytest.approx(1000 / 0.7, rel=1e-9)
