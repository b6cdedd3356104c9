"""Slots: one for each subtask, or shared by the operators of a slot sharing group."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ortools.sat.python import cp_model
from planning_cases import all_contents, catalogues, plannable

from streamplace.errors import ProblemError
from streamplace.model import Operator, Stream, StreamGraph
from streamplace.placers.registry import Budget
from streamplace.planning.bounds import proven_bound
from streamplace.planning.contents import SLOTS, packing_of
from streamplace.planning.demand import demand_of
from streamplace.planning.offers import Catalogue, Offer
from streamplace.planning.packed import uses
from streamplace.planning.planner import planned
from streamplace.planning.problem import PlanSettings
from streamplace.planning.result import PlanResult
from streamplace.planning.subtasks import slot_groups, slots_of

ASKED = PlanSettings(budget=Budget(None, 10**6))
Row = tuple[int, int]
"""Parallelism of an operator, and the CPU of one of its subtasks."""


def chain(needs: list[int]) -> StreamGraph:
    """Operators that need so many MIPS each, one after the other."""
    operators = [
        Operator(f"v{i}", ipt=1000 * need, rate=1000 if i == 0 else 0)
        for i, need in enumerate(needs)
    ]
    streams = [
        Stream(f"v{i}", f"v{i + 1}", partitioning="rebalance") for i in range(len(needs) - 1)
    ]
    return StreamGraph.of("chain", operators, streams)


@pytest.mark.parametrize(("sharing", "machines"), [(False, 5), (True, 3)])
def test_where_slots_limit_a_plan_needs_as_many_as_its_groups(sharing: bool, machines: int) -> None:
    """Operators of 3, 5 and 2 subtasks need ⌈10 / 2⌉ machines of two slots, or ⌈5 / 2⌉."""
    offer = Offer("box", 1.0, mips=1.0, cores=16, slots=2)
    result = planned(chain([3, 5, 2]), Catalogue.of([offer], slot_sharing=sharing), ASKED)
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
    assert "The job takes 10 slots if every subtask has its own, and 5 if" in str(result)


def test_groups_share_no_slots_with_each_other() -> None:
    """Of 3, 5 and 2 subtasks, the last operator's do not share: 5 + 2 slots, or 4 machines."""
    graph = chain([3, 5, 2])
    groups = ["", "default", "own"]
    operators = replace(graph.operators, slot_sharing_group=groups)
    streams = replace(graph.streams, operators=operators)
    apart = replace(graph, operators=operators, streams=streams)
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
    p = np.array([data.draw(st.integers(1, int(most))) for most in demand.most], np.int32)
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


def cheapest(rows: list[Row], kinds: list[Row]) -> float:
    """Return the least cost of machines of so much CPU and so many slots, which operators share."""
    model = cp_model.CpModel()
    number = sum(p for p, _ in rows)
    cost = []
    placed: list[list[cp_model.IntVar]] = [[] for _ in rows]
    for price, (cpu, slots) in enumerate(kinds, 1):
        for _ in range(number):
            used = model.new_bool_var("")
            counts = [model.new_int_var(0, min(p, slots), "") for p, _ in rows]
            model.add(sum(n * c for n, (_, c) in zip(counts, rows, strict=True)) <= cpu * used)
            for n, all_of_it in zip(counts, placed, strict=True):
                all_of_it.append(n)
            cost.append(price * used)
    for (p, _), all_of_it in zip(rows, placed, strict=True):
        model.add(sum(all_of_it) == p)
    model.minimize(sum(cost))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.catch_sigint_signal = False  # it takes Python's handler away for good
    status = solver.solve(model)
    return solver.objective_value if status == cp_model.OPTIMAL else math.inf


rows = st.tuples(st.integers(1, 3), st.integers(10, 50))
kinds = st.tuples(st.integers(50, 120), st.integers(1, 3))


@settings(max_examples=12, deadline=None)
@given(st.lists(rows, min_size=1, max_size=3), st.lists(kinds, min_size=1, max_size=2))
def test_the_compact_model_lies_between_bound_and_plan(rows: list[Row], kinds: list[Row]) -> None:
    """Of a given parallelism, for the numbers of each operator's subtasks on each machine."""
    graph = StreamGraph.of(
        "given",
        [
            Operator(f"v{i}", ipt=p * cpu, rate=1e4, parallelism=p)
            for i, (p, cpu) in enumerate(rows)
        ],
    )
    offers = Catalogue.of(
        [
            Offer(f"kind{i}", i + 1.0, mips=cpu / 100, slots=slots)
            for i, (cpu, slots) in enumerate(kinds)
        ],
        slot_sharing=True,
    )
    best = cheapest(rows, kinds)
    bound = proven_bound(demand_of(graph, fixed=True), offers)
    assert bound is not None
    assert bound.value <= best
    result = planned(graph, offers, replace(ASKED, keep_parallelism=True))
    assert math.isclose(result.cost, best)
    assert result.bound <= best


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


def test_slots_of_all_machines_may_be_too_few() -> None:
    offers = [Offer("box", 1.0, mips=1.0, cores=16, slots=2, at_most=2)]
    catalogue = Catalogue.of(offers, slot_sharing=True)
    with pytest.raises(ProblemError, match="need 5 slots, most of them 'v1', and all machines"):
        planned(chain([3, 5, 2]), catalogue, ASKED)
    assert planned(chain([3, 4, 2]), catalogue, ASKED).cost == 2


def test_a_plan_never_needs_more_slots_of_a_machine_than_it_has() -> None:
    graph = StreamGraph.of(
        "keyed",
        [
            Operator("a", ipt=4000, rate=1000, max_parallelism=128),
            Operator("b", ipt=3500, max_parallelism=128),
            Operator("c", ipt=100, max_parallelism=1),
        ],
        [Stream("a", "b", partitioning="hash"), Stream("b", "c", partitioning="hash")],
    )
    offer = Offer("box", 1.0, mips=1.0, cores=2, slots=2)
    result = planned(graph, Catalogue.of([offer], slot_sharing=True), ASKED)
    assert result.is_cheapest
    assert result.cost == 4
    assert max(max(places.values()) for places in result.subtasks().values()) <= 2
