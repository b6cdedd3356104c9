"""Slots: one for each subtask, or shared by the operators of a slot sharing group."""

from dataclasses import replace

import pytest
from planning_cases import chain

from streamplace.model import Operator, StreamGraph
from streamplace.placers.registry import Budget
from streamplace.planning.offers import Catalogue, Offer
from streamplace.planning.planner import planned
from streamplace.planning.problem import PlanSettings

ASKED = PlanSettings(budget=Budget(None, 10**6))


def needing(*needs: int) -> StreamGraph:
    """Operators that need so many MIPS each, one after the other."""
    operators = [
        Operator(f"v{i}", ipt=1000 * need, rate=0 if i else 1000) for i, need in enumerate(needs)
    ]
    return chain(*operators, kind="rebalance")


@pytest.mark.parametrize(("sharing", "machines"), [(False, 5), (True, 3)])
def test_where_slots_limit_a_plan_needs_as_many_as_its_groups(sharing: bool, machines: int) -> None:
    """Operators of 3, 5 and 2 subtasks need ⌈10 / 2⌉ machines of two slots, or ⌈5 / 2⌉."""
    offer = Offer("box", 1.0, mips=1.0, cores=16, slots=2)
    result = planned(needing(3, 5, 2), Catalogue.of([offer], slot_sharing=sharing), ASKED)
    assert (result.cost, result.bound) == (machines, machines)
    assert (result.slots.separate, result.slots.shared) == (10, 5)
    assert result.slots.machines == {"box": 2}


def test_groups_share_no_slots_with_each_other() -> None:
    """Of 3, 5 and 2 subtasks, the last operator's do not share: 5 + 2 slots, or 4 machines."""
    graph = needing(3, 5, 2)
    groups = ["", "default", "own"]
    apart = graph.with_operators(replace(graph.operators, slot_sharing_group=groups))
    offer = Offer("box", 1.0, mips=1.0, cores=16, slots=2)
    result = planned(apart, Catalogue.of([offer], slot_sharing=True), ASKED)
    assert (result.cost, result.bound, result.slots.shared) == (4, 4, 7)
    assert list(result.graph.operators.slot_sharing_group) == groups
