import logging
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from placer_cases import all_legal, best_of_all, counted, interrupt
from placer_cases import placed as placed_by
from planning_cases import chain as in_a_row
from problems import PROBLEMS, chain, fork_join, random_tasks
from rooms import needs_papers
from strategies import problems
from streamsim import resource_loads

from streamplace.errors import PlacementError
from streamplace.families.registry import FAMILIES
from streamplace.model import Cluster, Operator, Problem, StreamGraph, Window
from streamplace.objectives.conditions import BEYOND, read_condition, subject_to
from streamplace.objectives.registry import OBJECTIVES, Objective
from streamplace.placers.auto import with_least_peak
from streamplace.placers.meter import Meter
from streamplace.placers.portfolio import CHEAP
from streamplace.placers.registry import PLACERS, Budget
from streamplace.placers.request import PlacementRequest

THROUGHPUT = OBJECTIVES["throughput"]
UNLIMITED = Meter(Budget())
AUTO = PLACERS["auto"]
placed = partial(placed_by, "auto")
PORTFOLIO = ("single", "metis-oracle", "fuser-oracle", "metis")


@pytest.mark.parametrize("placer", ["auto", "exact"])
@pytest.mark.parametrize(
    "name", ["chain", "diamond", "fork-join", "constrained", "heterogeneous",
             "little memory", "little memory and rules"],
)  # fmt: skip
def test_small_problems_are_solved_and_proven(placer, name):
    result = placed_by(placer, PROBLEMS[name], 50_000)
    assert result.bound == pytest.approx(result.value, rel=1e-8)
    if "memory" in name:
        assert result.value == pytest.approx(best_of_all(PROBLEMS[name]))


@settings(max_examples=25)
@given(problems(most=5))
def test_nobody_in_the_portfolio_is_better(problem):
    value = placed(problem).value
    for name in PORTFOLIO:
        with suppress(PlacementError):  # a member that cannot honour the rules
            assert value >= PLACERS[name].place(problem, THROUGHPUT).value


@pytest.mark.parametrize("evaluations", [1, 10, 100, 1000])
def test_evaluations_are_kept_count_of(evaluations):
    """All members together.

    One more judges the answer of each member, one what search begins with, and one the last answer.
    """
    seen: list[int] = []
    unknown = Objective("counted", "max", "", counted(seen).evaluate)
    placed(Problem(fork_join(), Cluster.uniform(5)), evaluations, objective=unknown)
    assert 0 < sum(seen) <= evaluations + len(PORTFOLIO) + 4


def test_operators_behind_a_window_count_in_the_peak_load():
    """Their rate is the same whatever arrives at the window; alone, they need half a device."""
    operators = [
        Operator("src", ipt=1e6, payload=100, rate=1000),
        Operator("win", payload=100, window=Window(1, 1, base=100)),
        Operator("h1", ipt=1.25e7, payload=1000),
        Operator("h2", ipt=1.225e7),
    ]
    result = placed(Problem(in_a_row(*operators), Cluster.uniform(3)))
    assert result.bottleneck.load < 0.6


def two_of_six(rng, i):
    """Two of the six tasks before a task, if there are six."""
    return rng.choice(np.arange(i - 6, i), 2, replace=False).tolist() if i >= 6 else []


SLOW_LINKS = Problem(
    random_tasks(210, 0, two_of_six, ipt=1e9, payload=4e6), Cluster.uniform(4, bandwidth="8 Mbps")
)


def misplaced(problem, placements):
    """Operators that are not on the device wanted."""
    return (placements != np.arange(problem.n_operators) % 3).sum(axis=1).astype(float)


FORKS = Problem(fork_join(8), Cluster.uniform(6, bandwidth="300 Mbps"))
LOST = [
    pytest.param(FORKS, THROUGHPUT, "single", 20_000, id="rate"),
    pytest.param(SLOW_LINKS, OBJECTIVES["makespan"], "foresight", 20_000, id="pass"),
    pytest.param(
        Problem(chain(12), Cluster.uniform(3)),
        Objective("misplaced", "min", "", misplaced),
        "single",
        300,
        id="any other",
    ),
]


@pytest.mark.parametrize(("problem", "objective", "first", "after"), LOST)
def test_interrupted_it_keeps_what_the_running_search_has_found(
    monkeypatch, problem, objective, first, after
):
    """Only one placer has answered before."""
    monkeypatch.setattr("streamplace.placers.auto.CHEAP", CHEAP[:1])
    monkeypatch.setattr("streamplace.placers.auto.SCHEDULES", ("foresight",))
    before = PLACERS[first].place(problem, objective).value
    interrupt(monkeypatch, after)
    result = PlacementRequest(objective=objective, budget=Budget(seconds=60)).answer(problem)
    assert result.seconds < 30
    assert objective.better(result.value, before)


@pytest.mark.parametrize("placer", ["auto", "anneal"])
def test_a_search_that_is_part_of_something_is_over_once_interrupted(monkeypatch, placer):
    """A graph of a data set, or a limit of a front: what was cut short is no result of theirs."""
    interrupt(monkeypatch, 5000)
    with pytest.raises(KeyboardInterrupt):
        PlacementRequest(placer, budget=Budget(seconds=60)).place(FORKS)


def test_interrupted_in_a_search_by_another_objective_it_claims_no_bound(monkeypatch, caplog):
    """The share of the rate that is possible is no least latency in seconds."""
    judge = subject_to(OBJECTIVES["latency"], [read_condition("throughput>=0.1")])
    interrupt(monkeypatch, 500)
    plain = replace(judge.plain, bound=lambda problem: None)
    judge = replace(subject_to(plain, judge.conditions), guide="")
    result = PlacementRequest(objective=judge, budget=Budget(seconds=60)).answer(FORKS)
    assert result.bound is None
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]


@needs_papers
@pytest.mark.parametrize("scheduler", ["foresight", "heft", "etf"])
def test_a_pass_is_never_longer_than_a_list_scheduler_s(scheduler):
    """However few evaluations there are; on translation networks ETF is hard to beat."""
    (problem,) = FAMILIES["nmt"].generate(FAMILIES["nmt"].parameters(count=1), seed=0)
    makespan, few = OBJECTIVES["makespan"], Budget(0.1, 10)
    listed = PLACERS[scheduler].place(problem, makespan, budget=few)
    assert AUTO.place(problem, makespan, budget=few).value <= listed.value


@given(problems(), st.sampled_from(["latency", "cost", "devices"]))
def test_the_best_of_few_placements_is_found_and_proven(problem, name):
    """Against all placements there are; half of the throughput may be out of reach."""
    judge = subject_to(OBJECTIVES[name], [read_condition("throughput>=0.5")])
    assume(problem.n_devices**problem.n_operators <= 20_000)
    values = judge.values(problem, all_legal(problem))
    budget = Budget(evaluations=2 * problem.n_devices**problem.n_operators)
    if values.min() >= BEYOND:
        with pytest.raises(PlacementError):
            PLACERS["auto"].place(problem, judge, budget=budget)
        return
    result = PLACERS["auto"].place(problem, judge, budget=budget)
    assert result.value == values.min()
    assert result.proven
    assert "Bound: no placement is better than" in str(result.report())


def peak(problem, index):
    """Load of the fullest resource."""
    return max(float(part.max()) for part in resource_loads(problem.instance, index))


@given(problems(), st.sampled_from(["auto", "exact"]))
def test_the_fullest_resource_that_keeps_up_is_proven(problem, placer):
    assume(problem.n_devices**problem.n_operators <= 250)
    result = PLACERS[placer].place(problem, OBJECTIVES["throughput"], budget=Budget(seconds=2))
    if result.least_load is None:
        assert result.value < 1
        return
    least = min(peak(problem, place) for place in all_legal(problem))
    assert result.least_load <= max(least, 1e-3) * (1 + 1e-6)
    if any("proven the least" in line for line in result.spare()):
        assert peak(problem, result.placement.index) <= max(least, 1e-3) * (1 + 1e-6)


def test_equal_throughputs_differ_in_the_fullest_resource():
    """Packed as a bin problem: 0.5 + 0.3, 0.4 + 0.4, 0.8 are the least, of 2.4 on three devices."""
    names = [f"o{i}" for i in range(5)]
    ipt = [5e5, 3e5, 4e5, 4e5, 8e5]
    operators = [Operator(name, ipt=cost, rate=1.0) for name, cost in zip(names, ipt, strict=True)]
    graph = StreamGraph.of("parts", operators, [])
    problem = Problem(graph, Cluster.uniform(3, mips=1))
    result = PLACERS["auto"].place(problem, OBJECTIVES["throughput"])
    assert result.bottleneck.load == pytest.approx(0.8)
    assert list(result.spare()) == [
        "Fullest resource: 80.0 %, proven the least of all that carry the full rate"
    ]


def pipe(*ipt):
    """Operators in a row on three devices, at 10,000 tuples/s."""
    operators = [
        Operator(f"v{i}", ipt=cost, rate=1e4 * (i == 0), payload=1000.0)
        for i, cost in enumerate(ipt)
    ]
    return Problem(in_a_row(*operators), Cluster.uniform(3))


def test_of_equally_full_placements_the_one_that_sends_least():
    """An operator that costs nothing goes to the one that feeds it."""
    problem = pipe(200_000, 100_000, 0)
    evened = with_least_peak(problem, problem.placement([0, 1, 2]), UNLIMITED)
    assert evened["v1"] == evened["v2"] != evened["v0"]


def test_ties_are_broken_whatever_the_budget():
    """Also where the first placement that is looked at is the best possible."""
    problem = pipe(50_000, 50_000, 50_000)
    for evaluations in (1, 100):
        answer = placed(problem, evaluations)
        assert answer.value == 1
        assert peak(problem, answer.placement.index) == pytest.approx(0.2)


@given(problems(most=6))
def test_neither_the_throughput_falls_nor_the_peak_load_rises(problem):
    """From any legal placement, which stays legal; a second time changes nothing."""
    before = problem.placement(problem.repaired(np.zeros(problem.n_operators, np.int32)))
    if not problem.legal(before.index[None])[0]:
        return
    after = with_least_peak(problem, before, UNLIMITED)
    problem.check(after)
    assert THROUGHPUT.value(problem, after) >= THROUGHPUT.value(problem, before)
    if len(problem.graph.sources) == 1:
        assert peak(problem, after.index) <= peak(problem, before.index) * (1 + 1e-9)
    assert with_least_peak(problem, after, UNLIMITED).as_dict() == after.as_dict()
