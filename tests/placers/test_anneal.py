import itertools
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from placer_cases import best_of_all
from placer_cases import placed as placed_by
from problems import PROBLEMS, chain, fork_join, layered, random_tasks

from streamplace.errors import PlacementError
from streamplace.model import Cluster, Operator, Problem, Stream, StreamGraph
from streamplace.objectives.conditions import read_condition, subject_to
from streamplace.objectives.registry import OBJECTIVES, Objective
from streamplace.placers.registry import PLACERS, Budget

THROUGHPUT = OBJECTIVES["throughput"]
ANNEAL = PLACERS["anneal"]
MOST_PLACEMENTS = 100_000
placed = partial(placed_by, "anneal")


@pytest.mark.parametrize("name", [name for name in PROBLEMS if "on one device" not in name])
def test_tiny_problems_are_placed_as_well_as_brute_force_places_them(name):
    problem = PROBLEMS[name]
    if problem.n_devices**problem.n_operators > MOST_PLACEMENTS:
        pytest.skip("too many placements to try them all")
    assert placed(problem, 20_000).value == pytest.approx(best_of_all(problem), rel=1e-9)


def test_the_answer_is_never_worse_than_the_placements_to_begin_with():
    for problem in (PROBLEMS["fork-join"], PROBLEMS["many sources"], layered(1000)):
        good = placed(problem, 30_000)
        bad = problem.placement(problem.repaired(np.zeros(problem.n_operators, np.int32)))
        assert placed(problem, 1, start=(bad, good.placement)).value >= good.value


@pytest.mark.parametrize("evaluations", [10, 1000])
@pytest.mark.parametrize("n_sources", [1, 2])
def test_counted_evaluations_are_never_below_metis(evaluations, n_sources):
    problem = layered(60, n_sources=n_sources)
    result = placed(problem, evaluations)
    assert result.value >= PLACERS["metis-oracle"].place(problem, THROUGHPUT).value
    assert result.trace[0].evaluations >= problem.n_devices
    assert result.trace[-1].evaluations <= evaluations


def test_too_few_devices_are_no_error_of_a_budget_that_is_used_up():
    """The one device has been tried in all the time there was, and one evaluation."""
    judge = subject_to(OBJECTIVES["devices"], [read_condition("throughput>=1")])
    problem = Problem(fork_join(), Cluster.uniform(1))
    with pytest.raises(PlacementError, match="throughput"):
        ANNEAL.place(problem, judge, budget=Budget(1e-6, 1))


def test_several_sources_end_at_the_full_rate_up_to_rounding():
    """The searches reach it and propose no more, while the value is a little less."""
    names = {s: [f"{s}{i}" for i in range(10)] for s in "ab"}
    operators = [
        Operator(name, ipt=5e4, rate=float(i == 0))
        for row in names.values()
        for i, name in enumerate(row)
    ]
    streams = [Stream(*pair) for row in names.values() for pair in itertools.pairwise(row)]
    graph = StreamGraph.of("two chains", operators, streams)
    result = placed(Problem(graph, Cluster.uniform(1, mips=1)), 1000)
    assert result.value == pytest.approx(1.0, abs=1e-12)


def test_a_placement_to_begin_with_must_be_of_this_problem():
    """A start that breaks the rules is refused, not repaired."""
    problem = PROBLEMS["constrained"]
    wrong = problem.placement(np.zeros(problem.n_operators, np.int32))
    with pytest.raises(PlacementError):
        placed(problem, start=(wrong,))


def test_large_graphs_come_close_to_the_mean_load():
    result = placed(layered(3000), 300_000)
    assert result.value >= 0.99 * result.bound


def test_large_graphs_respect_pins_groups_and_rivals():
    problem = layered(
        1500,
        pin={"v7": "d3", "v1400": "d1"},
        colocate=[{"v1", "v700", "v1499"}, {"v20", "v21"}],
        exlocate=[{"v30", "v31", "v32"}, {"v1", "v20"}],
        allowed={f"v{i}": {"d0", "d4"} for i in range(100, 160)},
    )
    result = placed(problem, 100_000)
    problem.check(result.placement)
    assert result.value >= 0.8 * result.bound


def test_large_graphs_of_several_sources_are_placed_by_levels():
    problem = layered(1000, n_sources=8)
    spread = PLACERS["round-robin"].place(problem, THROUGHPUT)
    assert placed(problem, 50_000).value > spread.value


def test_an_optimum_that_is_recognised_ends_the_search_early():
    problem = Problem(chain(4, payload=1.0), Cluster.uniform(4))
    result = ANNEAL.place(problem, THROUGHPUT, budget=Budget(seconds=100))
    assert result.value == result.bound == 1.0
    assert result.seconds < 50


def tasks(n=14, devices=3):
    """Random tasks of unequal work on equal devices."""
    cluster = Cluster.uniform(devices, mips=1000, bandwidth="1 Gbps")
    return Problem(random_tasks(n, seed=3, payload=1e6), cluster)


@pytest.mark.parametrize(
    ("name", "problem"),
    [("throughput", Problem(chain(9), Cluster.uniform(3))), ("makespan", tasks())],
)
def test_an_objective_of_a_kind_is_searched_like_the_kind(name, problem):
    """As those of third parties are: placers ask what an objective is, not what it is called."""
    usual, own = (
        placed(problem, 400, seed=1, objective=objective)
        for objective in (OBJECTIVES[name], replace(OBJECTIVES[name], name="own"))
    )
    assert own.objective == "own"
    assert own.placement.index.tolist() == usual.placement.index.tolist()
    assert [step.value for step in own.trace] == [step.value for step in usual.trace]


def test_a_search_begins_with_the_best_placement_by_the_guide():
    """That one is all that the objective wants, and too much for a few random moves."""
    problem = tasks(60, 6)
    wanted = placed(problem, 120, seed=1, objective=OBJECTIVES["makespan"])

    def strays(problem, placements):
        return (placements != wanted.placement.index).sum(axis=1).astype(float)

    guided = Objective("strays", "min", "Operators elsewhere.", strays, guide="makespan")
    assert placed(problem, 400, seed=1, objective=guided).value == 0
    assert placed(problem, 400, seed=1, objective=replace(guided, guide="")).value > 0
