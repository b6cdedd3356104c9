"""Plans for operators of which one subtask reads only so many tuples per second."""

from dataclasses import replace
from math import ceil

import numpy as np
import pytest
from planning_cases import carried

import streamplace
from streamplace import Budget, Offer, Operator, Stream, StreamGraph
from streamplace.errors import ProblemError
from streamplace.model.expansion import with_parallelism
from streamplace.planning import planner
from streamplace.planning.demand import demand_of
from streamplace.planning.offers import Catalogue
from streamplace.planning.problem import PlanProblem, PlanSettings
from streamplace.planning.verification import contradictions

ONE_CORE = Catalogue.of([Offer("small", 1.0, mips=1000)])
FEW = PlanSettings(budget=Budget(None, 2000))


def asking(rate: float, most: float, **more: float) -> StreamGraph:
    """A source, and look-ups that take little CPU, of which a subtask waits for each."""
    ends = [
        Operator("src", ipt=1000, rate=rate, max_parallelism=1),
        Operator("ask", ipt=2000, max_rate=most, **more),  # type: ignore[arg-type]
    ]
    return StreamGraph.of("asking", ends, [Stream("src", "ask", partitioning="rebalance")])


@pytest.mark.parametrize(("rate", "most"), [(100, 100), (101, 100), (950, 100), (1000, 0)])
def test_an_operator_gets_as_many_subtasks_as_its_limit_needs(rate: float, most: float) -> None:
    result = planner.planned(asking(rate, most), ONE_CORE, FEW)
    assert result.parallelism["ask"] == (ceil(rate / most) if most else 1)
    assert result.cost == result.bound == 1
    assert carried(result) == 1.0


def test_what_limits_is_told_and_grows_with_the_rate() -> None:
    result = planner.planned(asking(950, 100), ONE_CORE, FEW)
    limit = result.limit
    assert (limit.resource, limit.operator, limit.use) == ("max_rate", "ask", pytest.approx(0.95))
    assert result.carries == pytest.approx(1000)
    words = " ".join(str(result.report()).split())
    assert "What limits is the max_rate of ask, by a subtask on small-0 (95.0 % in use)" in words


def test_key_groups_that_do_not_divide_evenly_need_more_subtasks() -> None:
    """Of eight key groups, three subtasks have three at most: 375 of 1000 tuples/s."""
    assert planner.planned(asking(1000, 400), ONE_CORE, FEW).parallelism["ask"] == 3
    ends = [
        Operator("src", ipt=1000, rate=1000, max_parallelism=1),
        Operator("ask", ipt=2000, max_rate=350, max_parallelism=8),
    ]
    graph = StreamGraph.of("keyed", ends, [Stream("src", "ask", partitioning="hash")])
    assert planner.planned(graph, ONE_CORE, FEW).parallelism["ask"] == 4


def test_too_few_key_groups_are_the_reason_of_a_refusal() -> None:
    reason = (
        "with max_parallelism 4, the busiest subtask of operator 'ask' would read 250 tuples/s, "
        "and its max_rate is 100; a plan was found for up to 400 tuples/s"
    )
    with pytest.raises(ProblemError, match=reason):
        planner.planned(asking(1000, 100, max_parallelism=4), ONE_CORE, FEW)
    kept = replace(FEW, keep_parallelism=True)
    with pytest.raises(ProblemError, match="with parallelism 2, the busiest subtask"):
        planner.planned(asking(1000, 100, parallelism=2), ONE_CORE, kept)


def test_the_bound_counts_the_slots_that_limits_need() -> None:
    """Ten subtasks of the look-ups, in three slots per machine: four machines."""
    offers = Catalogue.of([Offer("small", 1.0, mips=1000, slots=3.0)], slot_sharing=True)
    result = planner.planned(asking(1000, 100), offers, FEW)
    assert result.cost == result.bound == 4


def test_a_plan_with_fewer_subtasks_does_not_pass_its_check() -> None:
    graph = asking(950, 100)
    problem, result = PlanProblem.of(graph, ONE_CORE, FEW), planner.planned(graph, ONE_CORE, FEW)
    assert list(contradictions(problem, result)) == []
    free = result.graph.with_operators(
        replace(result.graph.operators, max_rate=np.array([0.0, 120.0]))
    )
    fewer = planner.planned(free, ONE_CORE, FEW)
    assert fewer.parallelism["ask"] == 8
    spoiled = replace(fewer, graph=with_parallelism(graph, fewer.graph.operators.parallelism))
    told = list(contradictions(problem, spoiled))
    assert any("ask#0 would read 118.750000% of the 100 tuples/s" in one for one in told)


def test_a_demand_tells_the_subtasks_that_equal_parts_keep_at_their_limit() -> None:
    assert demand_of(asking(950, 100)).at_max_rate.tolist() == [0.0, 9.5]


def test_the_highest_rate_is_that_of_the_limit() -> None:
    graph = asking(1, 100, max_parallelism=4)
    result = streamplace.plan(graph, offers=ONE_CORE, rate="max", budget=Budget(None, 2000))
    assert result.rate == pytest.approx(400, rel=1e-3)
