"""Plans for operators of which one subtask reads only so many tuples per second."""

from math import ceil

import pytest
from planning_cases import carried, chain

from streamplace import Budget, Offer, Operator, StreamGraph
from streamplace.planning import planner
from streamplace.planning.offers import Catalogue
from streamplace.planning.problem import PlannerSettings

ONE_CORE = Catalogue.of([Offer("small", 1.0, mips=1000)])
FEW = PlannerSettings(budget=Budget(None, 2000))


def asking(rate, most, groups=0):
    """A source, and look-ups that take little CPU, of which a subtask waits for each."""
    source = Operator("src", ipt=1000, rate=rate, max_parallelism=1)
    ask = Operator("ask", ipt=2000, max_rate=most, max_parallelism=groups)
    return chain(source, ask, kind="hash" if groups else "rebalance")


@pytest.mark.parametrize(
    ("rate", "most", "groups", "subtasks"),
    [
        *((rate, 100, 0, ceil(rate / 100)) for rate in (100, 101, 950)),
        (1000, 0, 0, 1),
        (1000, 400, 0, 3),
        (1000, 350, 8, 4),  # of eight key groups, three subtasks have three at most: 375 tuples/s
    ],
)
def test_limits_ask_for_subtasks(rate, most, groups, subtasks):
    result = planner.planned(asking(rate, most, groups), ONE_CORE, FEW)
    assert result.parallelism["ask"] == subtasks
    assert result.cost == result.bound == 1
    assert carried(result) == 1.0


@pytest.mark.parametrize(
    ("cores", "subtasks", "machines"), [(1.0, 3, 2), (1.5, 2, 2), (2.0, 2, 2), (9.0, 2, 2)]
)
def test_threads_use_more_than_a_core(cores, subtasks, machines):
    """2900 MIPS are two subtasks of 1450, or three of 967, on machines of two cores of 1000."""
    two_cores = Catalogue.of([Offer("small", 1.0, mips=1000, cores=2)])
    only = StreamGraph.of("one", [Operator("a", ipt=2.9e6, rate=1000, cores=cores)])
    result = planner.planned(only, two_cores, FEW)
    assert result.parallelism["a"] == subtasks
    assert result.cost == result.bound == machines
    assert carried(result) == 1.0


def test_what_limits_is_told_and_grows_with_the_rate():
    result = planner.planned(asking(950, 100), ONE_CORE, FEW)
    limit = result.limit
    assert (limit.resource, limit.operator, limit.use) == ("max_rate", "ask", pytest.approx(0.95))
    assert result.carries == pytest.approx(1000)
    words = " ".join(str(result.report()).split())
    assert "The limit is the max_rate of ask, by a subtask on small-0 (95.0 % in use)" in words


def test_the_bound_counts_the_slots_that_limits_need():
    """Ten subtasks of the look-ups, in three slots per machine: four machines."""
    offers = Catalogue.of([Offer("small", 1.0, mips=1000, slots=3.0)], slot_sharing=True)
    result = planner.planned(asking(1000, 100), offers, FEW)
    assert result.cost == result.bound == 4
