"""Small questions whose cheapest plan is known."""

from dataclasses import replace

import pytest
from planning_cases import chain

from streamplace import Budget, Offer, Operator, plan
from streamplace.planning.offers import Catalogue

QUICK = Budget(evaluations=2000)
BOX = Offer("box", 1.0, mips=1.0, cores=16, slots=2)
CORE = Offer("one", 1.0, cores=1, mips=1000)


def needing(*mips, kind="rebalance", most=0, **last):
    """Operators that need so many MIPS each, one after the other; the last may be changed."""
    operators = [
        Operator(f"v{i}", ipt=1000 * need, rate=0 if i else 1000, max_parallelism=most)
        for i, need in enumerate(mips)
    ]
    operators[-1] = replace(operators[-1], **last)
    return chain(*operators, kind=kind)


def answer(graph, *offers):
    return plan(graph, offers=Catalogue.of(offers), budget=QUICK)


def test_a_plan_that_fills_its_slots_is_found():
    """Three thirds and a whole on two machines of two slots; two halves or four quarters do not."""
    thin = Offer("thin", 0.6, mips=0.75, slots=2, at_most=2)
    wide = Offer("wide", 2.5, mips=1.25, cores=4)
    result = answer(needing(1.0, 0.4, max_parallelism=1), thin, wide)
    assert (result.cost, result.is_cheapest) == (1.2, True)
    assert result.parallelism == {"v0": 3, "v1": 1}


def test_a_problem_is_not_refused_though_it_has_a_plan():
    """Five fifths and two halves; the least parallelisms and their multiples do not fit."""
    fast = Offer("fast", 1.5, mips=2.0, slots=2, at_most=3)
    result = answer(needing(2.1, 2.9), fast, Offer("slow", 0.3, mips=0.5, cores=3, at_most=1))
    assert (result.cost, result.is_cheapest) == (3.3, True)


def test_machines_that_hold_no_contents_are_excluded():
    """A quarter of a core is too slow for each of the two parts that slots allow."""
    result = answer(
        needing(2.5),
        Offer("fast", 2.5, mips=2.0, slots=2, at_most=2),
        Offer("slow", 1.5, mips=0.5, slots=2, at_most=1),
    )
    assert (result.cost, result.bound) == (5.0, 5)
    assert result.bounds["contents"] < result.bounds["enumeration"]


@pytest.mark.parametrize(("sharing", "machines"), [(False, 5), (True, 3)])
def test_where_slots_limit_a_plan_needs_as_many_as_its_groups(sharing, machines):
    """Operators of 3, 5 and 2 subtasks need ⌈10 / 2⌉ machines of two slots, or ⌈5 / 2⌉."""
    offers = Catalogue.of([BOX], slot_sharing=sharing)
    result = plan(needing(3, 5, 2), offers=offers, budget=Budget(None, 10**6))
    assert (result.cost, result.bound) == (machines, machines)
    assert (result.slots.separate, result.slots.shared) == (10, 5)
    assert result.slots.machines == {"box": 2}


def test_groups_share_no_slots_with_each_other():
    """Of 3, 5 and 2 subtasks, the last operator's do not share: 5 + 2 slots, or 4 machines."""
    graph, groups = needing(3, 5, 2), ["", "default", "own"]
    apart = graph.with_operators(replace(graph.operators, slot_sharing_group=groups))
    offers = Catalogue.of([BOX], slot_sharing=True)
    result = plan(apart, offers=offers, budget=Budget(None, 10**6))
    assert (result.cost, result.bound, result.slots.shared) == (4, 4, 7)
    assert list(result.graph.operators.slot_sharing_group) == groups


def test_operators_that_fit_whole_are_not_split():
    """Two machines carry 0.85 + 0.85 + 0.2 cores only if the last operator, and it alone, splits.

    All operators with two subtasks would do as well, and are tried first.
    """
    graph = needing(850, 850, 200, kind="hash")
    result = plan(graph, offers=[CORE], budget=Budget(None, 10**6))
    assert result.cost == 2
    assert result.parallelism == {"v0": 1, "v1": 1, "v2": 2}


def test_machines_are_filled_evenly():
    """Of 0.4 + 0.4 + 0.2 + 0.2 cores, first fit puts 1.0 on one machine."""
    graph = needing(400, 400, 200, 200, kind="hash", most=1)
    result = plan(graph, offers=[CORE], budget=Budget(None, 10**6))
    assert result.cost == 2
    assert result.carries == pytest.approx(1000 / 0.6)
