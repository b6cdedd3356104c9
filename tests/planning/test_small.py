"""Small problems: all plans of them are tried where the search and the cuts disagree."""

from contextlib import suppress
from math import inf

import pytest
from planning_cases import chain, cheapest_by_brute_force, tiny

from streamplace import Budget, Offer, Operator, StreamGraph, plan
from streamplace.errors import ProblemError
from streamplace.planning.demand import demand_of
from streamplace.planning.offers import Catalogue
from streamplace.planning.result import PlanResult

QUICK = Budget(evaluations=2000)


def pair(first: float, second: float, most: int = 0) -> StreamGraph:
    """Two operators that need so many MIPS."""
    ends = (
        Operator("u", ipt=1000 * first, rate=1000),
        Operator("v", ipt=1000 * second, max_parallelism=most),
    )
    return chain(*ends, kind="rebalance")


def answer(graph: StreamGraph, *offers: Offer) -> PlanResult:
    return plan(graph, offers=Catalogue.of(offers), budget=QUICK)


def test_a_plan_that_fills_its_slots_is_found() -> None:
    """Three thirds and a whole on two machines of two slots; two halves or four quarters do not."""
    thin = Offer("thin", 0.6, mips=0.75, slots=2, at_most=2)
    result = answer(pair(1.0, 0.4, most=1), thin, Offer("wide", 2.5, mips=1.25, cores=4))
    assert (result.cost, result.is_cheapest) == (1.2, True)
    assert result.parallelism == {"u": 3, "v": 1}


def test_a_problem_is_not_refused_though_it_has_a_plan() -> None:
    """Five fifths and two halves; the least parallelisms and their multiples do not fit."""
    fast = Offer("fast", 1.5, mips=2.0, slots=2, at_most=3)
    result = answer(pair(2.1, 2.9), fast, Offer("slow", 0.3, mips=0.5, cores=3, at_most=1))
    assert (result.cost, result.is_cheapest) == (3.3, True)


def test_machines_that_hold_no_contents_are_excluded() -> None:
    """A quarter of a core is too slow for each of the two parts that slots allow."""
    result = answer(
        StreamGraph.of("one", [Operator("v", ipt=2500, rate=1000)]),
        Offer("fast", 2.5, mips=2.0, slots=2, at_most=2),
        Offer("slow", 1.5, mips=0.5, slots=2, at_most=1),
    )
    assert (result.cost, result.bound) == (5.0, 5)
    assert result.bounds["contents"] < result.bounds["enumeration"]


@pytest.mark.parametrize(
    "seed", [*range(25), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(25, 400))]
)
def test_no_tiny_problem_has_a_cheaper_plan(seed: int) -> None:
    """By brute force."""
    graph, catalogue = tiny(seed)
    best = cheapest_by_brute_force(demand_of(graph), catalogue, 4, finest=6)
    cost = bound = inf
    with suppress(ProblemError):
        result = plan(graph, offers=catalogue, budget=QUICK)
        cost, bound = result.cost, float(result.bound)
    assert cost <= best * (1 + 1e-9)
    assert bound <= cost * (1 + 1e-12)
