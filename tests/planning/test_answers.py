"""Every plan that is returned holds what it promises, whatever was asked for, in whatever budget.

The plans are judged from what a user gets, by the simulator and by sums written here.
"""

import re
from dataclasses import replace
from fractions import Fraction
from math import isfinite

import numpy as np
import pytest
from planning_cases import carried
from planning_cases import question as drawn
from streamsim import resource_loads

import streamplace
from streamplace import Budget, Offer, Operator, Stream, StreamGraph
from streamplace.errors import DefectError, ProblemError
from streamplace.model import Problem
from streamplace.model.expansion import expand
from streamplace.planning import planner
from streamplace.planning.offers import Catalogue
from streamplace.planning.problem import PlannerSettings, PlanProblem
from streamplace.planning.verification import contradictions

LARGEST = r"a plan was found for up to ([0-9.e+-]+) tuples/s"


def fullest(result, rate):
    """Use of the fullest machine, core or limit."""
    expansion = expand(result.graph.at_rate(rate))
    instance = Problem(expansion.graph, result.cluster).instance
    place = result.placement.index
    used = np.array(resource_loads(instance, place).devices)
    rows = np.arange(len(place)), instance.device_type[place]
    cores = instance.full_load[rows] * instance.cores[place]  # a subtask uses one
    reads = expansion.graph.input_rate / expansion.graph.operators.largest_rates()
    return max(float(used.max()), float(cores.max()), float(reads.max()))


def assert_kept(question, result):
    """Rate, headroom, reserve, parallelism, machines, cost and bound of a plan."""
    graph, free = question["graph"], question["headroom"]
    rate = graph.source_rate / (1 - free)
    assert result.rate == graph.source_rate
    assert carried(result, rate) >= 1 - 1e-8
    assert fullest(result, rate) <= 1 + 1e-6
    if isfinite(result.carries):
        assert result.carries >= rate * (1 - 1e-8)
        assert carried(result, result.carries) >= 1 - 1e-6
    problem = Problem(expand(result.graph).graph, result.cluster)
    problem.check(result.placement)
    operators = graph.operators
    if question["keep_parallelism"]:
        assert list(result.parallelism.values()) == operators.parallelism.tolist()
    for p, most in zip(
        result.parallelism.values(), operators.max_parallelism.tolist(), strict=True
    ):
        assert 1 <= p <= (most or p)
    assert float(result.bound) <= result.cost * (1 + 1e-12)
    if question["cluster"] is not None:
        assert result.cluster == question["cluster"]
        assert result.cost == len(set(result.placement.index.tolist()))
    else:
        assert_offers(question["offers"], result)


def assert_offers(offers, result):
    """Numbers, prices and slots of machines that are bought."""
    cost = Fraction(0)
    counts = expand(result.graph).fold(result.placement)
    groups = [name or "default" for name in result.graph.operators.slot_sharing_group]
    for offer in offers.offers:
        number = result.machines.get(offer.name, 0)
        assert offer.at_least <= number <= offer.at_most
        cost += number * Fraction(repr(offer.price))
        for m, name in enumerate(result.cluster.devices.name):
            if name.rpartition("-")[0] != offer.name:
                continue
            there = counts[:, m]
            if offers.slot_sharing:
                taken = sum(
                    max(n for n, own in zip(there, groups, strict=True) if own == group)
                    for group in set(groups)
                )
            else:
                taken = there.sum()
            assert taken <= offer.slots
    assert result.cost == pytest.approx(float(cost), rel=1e-12)


def slowly(first, end):
    """Seeds for the slow tests."""
    return [pytest.param(seed, marks=pytest.mark.slow) for seed in range(first, end)]


def asked(question, **changes):
    """Return what the public function says."""
    return streamplace.plan(**{**question, **changes})


# Seed 225 leaves a machine idle while improved.
@pytest.mark.parametrize("seed", [*range(12), 225, *slowly(12, 225), *slowly(226, 1000)])
def test_a_plan_holds_what_it_promises(seed):
    """Any graph, machines and flags, and small budgets; or a refusal, but never a defect."""
    question = drawn(seed)
    try:
        result = asked(question)
    except ProblemError:
        return
    assert_kept(question, result)


@pytest.mark.parametrize("seed", [*range(100, 105), *slowly(105, 115)])
def test_no_budget_finds_a_plan_below_the_bound_of_another(seed):
    question, results = drawn(seed), []
    for moves in (100, 5000):
        try:
            results.append(asked(question, budget=Budget(None, moves)))
        except ProblemError:
            return
    assert max(result.bound for result in results) <= min(
        Fraction(repr(result.cost)) * (1 + Fraction(1, 10**12)) for result in results
    )


@pytest.mark.parametrize("seed", [200, *slowly(201, 205)])
@pytest.mark.parametrize("factor", [30.0, 1e7])
def test_a_refusal_names_a_rate_that_is_carried(seed, factor):
    """The largest rate of a refusal has a plan when it is asked for, and is not absurdly small."""
    question = drawn(seed)
    graph = question["graph"]
    try:
        asked(question, graph=graph.at_rate(graph.source_rate * factor))
    except ProblemError as refused:
        named = re.search(LARGEST, str(refused))
        if named is None:
            return
        slower = graph.at_rate(float(named.group(1)))
        result = asked(question, graph=slower)
        assert_kept({**question, "graph": slower}, result)


@pytest.mark.parametrize(("selectivity", "headroom"), [(2e6, 0.0), (1.0, 0.9995)])
def test_rates_that_no_graph_can_have_are_not_tried(selectivity, headroom):
    """The rate of an operator, or the rate with its headroom, ends before others do."""
    ends = [Operator("files", rate=1), Operator("lines", ipt=1)]
    graph = StreamGraph.of("g", ends, [Stream("files", "lines", selectivity)])
    offers, budget = [Offer("a", 1.0, mips=1e-2, at_most=2)], Budget(None, 100)
    result = streamplace.plan(graph, offers=offers, headroom=headroom, budget=budget, rate="max")
    assert carried(result, result.rate / (1 - headroom)) >= 1 - 1e-8
    most = result.graph.source_rate
    assert most == pytest.approx(2e4 * (1 - headroom) / selectivity, rel=1e-4)
    slower = streamplace.plan(graph, offers=offers, headroom=headroom, budget=budget, rate=most / 3)
    assert slower.cost == 1


PIPE = StreamGraph.of(
    "pipe",
    [
        Operator("source", ipt=1000, payload=10, rate=1000, max_parallelism=4),
        Operator("count", ipt=2000, max_parallelism=8, memory=4.0),
    ],
    [Stream("source", "count", partitioning="hash")],
)
OFFERS = Catalogue.of([Offer("box", 1.0, mips=1.0, slots=4.0)])
FEW = PlannerSettings(budget=Budget(None, 10**4))


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda r: {"placement": moved(r)}, "carries"),
        (lambda r: {"cost": r.cost - 1}, "costs 3"),
        (lambda r: {"bound": Fraction(5)}, "bound of 5"),
        (lambda r: {"machines": {"box": 2}}, "machines"),
        (lambda r: {"carries": 2 * r.carries}, "carries"),
        (lambda r: {"parallelism": {"source": 1, "count": 1}}, "parallelisms"),
        (lambda r: {"graph": PIPE.at_rate(500)}, "rates"),
    ],
)
def test_a_spoiled_plan_does_not_pass_its_check(spoil, reason):
    problem = PlanProblem.of(PIPE, OFFERS, FEW)
    result = planner.planned(PIPE, OFFERS, FEW)
    assert list(contradictions(problem, result)) == []
    spoiled = replace(result, **spoil(result))
    assert any(reason in told for told in contradictions(problem, spoiled))


def moved(result):
    """Return a placement of all subtasks on the first machine."""
    return replace(result.placement, index=np.zeros_like(result.placement.index))


def test_sources_of_few_tuples_are_checked():
    """Without a third of the second source, a billionth of all tuples would be missing."""
    operators = [
        Operator("few", ipt=1.5e9, rate=1.0, parallelism=2),
        Operator("many", ipt=0.3, rate=1e9),
    ]
    graph = StreamGraph.of("unlike", operators, [])
    asked = PlannerSettings(budget=Budget(None, 1000), keep_parallelism=True)
    offers = Catalogue.of([Offer("box", 1.0, mips=1000)])
    result = planner.planned(graph, offers, asked)
    problem = PlanProblem.of(graph, offers, asked)
    assert list(contradictions(problem, result)) == []
    one, other, rest = result.placement.index.tolist()
    assert len({one, other, rest}) == 3
    together = replace(result.placement, index=np.array([one, one, rest], np.int32))
    told = list(contradictions(problem, replace(result, placement=together)))
    assert any("a device is 150.0" in reason for reason in told)


def test_a_plan_that_fails_its_check_is_not_returned(monkeypatch):
    whole = planner.result_of

    def cheapened(*arguments):
        return replace(whole(*arguments), cost=1.0)

    monkeypatch.setattr(planner, "result_of", cheapened)
    with pytest.raises(DefectError, match=r"costs 1, .*costs 3"):
        planner.planned(PIPE, OFFERS, FEW)
