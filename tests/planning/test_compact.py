"""Bounds and plans against a compact model of vector packing, solved by CP-SAT."""

import math

from hypothesis import given, settings
from hypothesis import strategies as st
from ortools.sat.python import cp_model

from streamplace.model import Operator, StreamGraph
from streamplace.placers.registry import Budget
from streamplace.planning.bounds import proven_bound
from streamplace.planning.demand import demand_of
from streamplace.planning.offers import Catalogue, Offer
from streamplace.planning.planner import planned
from streamplace.planning.problem import PlanSettings

Item = tuple[int, int]
"""CPU and memory that an operator needs."""


def cheapest(items: list[Item], kinds: list[tuple[int, int, int]]) -> int:
    """Return the least cost of machines of (price, CPU, memory) that hold all items."""
    model = cp_model.CpModel()
    cost = []
    holds: list[list[cp_model.IntVar]] = [[] for _ in items]
    for price, cpu, memory in kinds:
        for _ in items:
            used = model.new_bool_var("")
            inside = [model.new_bool_var("") for _ in items]
            for resource, room in ((0, cpu), (1, memory)):
                needs = [item[resource] for item in items]
                model.add(sum(n * x for n, x in zip(needs, inside, strict=True)) <= room * used)
            for x, machines in zip(inside, holds, strict=True):
                machines.append(x)
            cost.append(price * used)
    for machines in holds:
        model.add(sum(machines) == 1)
    model.minimize(sum(cost))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.catch_sigint_signal = False  # it takes Python's handler away for good
    assert solver.solve(model) == cp_model.OPTIMAL
    return round(solver.objective_value)


kinds = st.tuples(st.integers(1, 9), st.integers(50, 100), st.integers(50, 100))
items = st.tuples(st.integers(5, 50), st.integers(0, 50))


@settings(max_examples=15, deadline=None)
@given(st.lists(items, min_size=2, max_size=6), st.lists(kinds, min_size=1, max_size=2))
def test_the_compact_model_lies_between_bound_and_plan(
    items: list[Item], kinds: list[tuple[int, int, int]]
) -> None:
    """Operators that cannot be divided are items of a vector packing; plans of a few are best."""
    graph = StreamGraph.of(
        "items",
        [
            Operator(f"v{i}", ipt=cpu, rate=1e4, max_parallelism=1, memory=memory)
            for i, (cpu, memory) in enumerate(items)
        ],
    )
    offers = Catalogue.of(
        Offer(f"kind{i}", float(price), mips=cpu / 100, memory=float(memory))
        for i, (price, cpu, memory) in enumerate(kinds)
    )
    best = cheapest(items, kinds)
    bound = proven_bound(demand_of(graph), offers)
    assert bound is not None
    assert bound.value <= best
    settings = PlanSettings(budget=Budget(None, 10**6))
    assert math.isclose(planned(graph, offers, settings).cost, best)
