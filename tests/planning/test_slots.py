"""Slots: one for each subtask, or shared by the operators of a slot sharing group."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planning_cases import all_contents, catalogues, chain, plannable

from streamplace.errors import ProblemError
from streamplace.model import Operator, StreamGraph
from streamplace.placers.registry import Budget
from streamplace.planning.demand import demand_of
from streamplace.planning.offers import Catalogue, Offer
from streamplace.planning.packing import SLOTS, packing_of, uses
from streamplace.planning.planner import planned
from streamplace.planning.problem import PlanSettings
from streamplace.planning.result import PlanResult
from streamplace.planning.subtasks import slot_groups, slots_of

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
    document = result.to_json()["slots"]
    assert document == {
        "sharing": sharing,
        "separate": 10,
        "shared": 5,
        "machines": {"box": 2},
    }


def test_groups_share_no_slots_with_each_other() -> None:
    """Of 3, 5 and 2 subtasks, the last operator's do not share: 5 + 2 slots, or 4 machines."""
    graph = needing(3, 5, 2)
    groups = ["", "default", "own"]
    apart = graph.with_operators(replace(graph.operators, slot_sharing_group=groups))
    offer = Offer("box", 1.0, mips=1.0, cores=16, slots=2)
    result = planned(apart, Catalogue.of([offer], slot_sharing=True), ASKED)
    assert (result.cost, result.bound, result.slots.shared) == (4, 4, 7)
    assert list(result.graph.operators.slot_sharing_group) == groups


@given(plannable(), catalogues(), st.data())
def test_no_slot_holds_two_subtasks_of_an_operator(
    graph: StreamGraph, offers: Catalogue, data: st.DataObject
) -> None:
    """Subtasks that are put into slots one by one need as many as the kernel counts."""
    demand = demand_of(graph)
    p = np.array(
        [data.draw(st.integers(1, int(most))) for most in demand.parallelism_limit], np.int32
    )
    kinds = np.zeros(2, np.int32)
    contents = list(all_contents(p, len(kinds)))
    rows = contents[data.draw(st.integers(0, len(contents) - 1))]
    groups = slot_groups(demand, offers).tolist()
    needed = []
    for row in rows.tolist():
        slots: list[tuple[int, set[int]]] = []
        for v, n in enumerate(row):
            for _ in range(n):
                free = (held for group, held in slots if group == groups[v] and v not in held)
                held = next(free, None)
                if held is None:
                    slots.append((groups[v], {v}))
                else:
                    held.add(v)
        needed.append(len(slots))
    assert slots_of(np.array(groups), rows).tolist() == needed
    use = uses(packing_of(demand, offers, p), kinds, rows)
    assert use[:, SLOTS].tolist() == [n / offers.offers[0].slots for n in needed]


def planned_or_none(graph: StreamGraph, offers: Catalogue) -> PlanResult | None:
    """Return the plan, where there is one."""
    try:
        return planned(graph, offers, ASKED)
    except ProblemError:
        return None


@settings(max_examples=15, deadline=None)
@given(plannable(most=2), catalogues(most=2))
def test_sharing_slots_never_costs_more(graph: StreamGraph, offers: Catalogue) -> None:
    """Whatever fits into slots of its own fits into shared ones; without limits, both are one."""
    own, shared = (
        planned_or_none(graph, replace(offers, slot_sharing=sharing)) for sharing in (False, True)
    )
    if own is not None:
        assert shared is not None
        assert shared.cost <= own.cost
        if all(math.isinf(offer.slots) for offer in offers.offers):
            assert shared.subtasks() == own.subtasks()
