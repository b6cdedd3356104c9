"""Overhead of `streamplace.place` over the scheduler: HEFT on 30 tasks and 20 devices."""

from functools import partial
from timeit import repeat

import pytest

import streamplace
from streamplace.families.registry import FAMILIES
from streamplace.model.problem import Problem
from streamplace.scheduling.insertion import by_upward_rank
from streamplace.scheduling.tasks import tasks_of

ROUNDS = 2000
"""So many that the quickest says what a quiet machine would take."""


def tagged() -> Problem:
    """A problem of GiPH's, in which tasks require what some devices offer."""
    family = FAMILIES["giph"]
    made = family.generate(family.parameters(setting="multiple_networks"), seed=0)
    return next(one for one in made if (one.n_operators, one.n_devices) == (30, 20))


def again(problem: Problem) -> Problem:
    """The same problem, with nothing compiled."""
    return Problem(
        problem.graph, problem.cluster, problem.constraints, problem.seconds, problem.moving
    )


@pytest.mark.parametrize("problem_is", ["prepared", "new"])
def test_a_call_of_heft(benchmark, problem_is):
    problem = tagged()
    kernel = partial(by_upward_rank, tasks_of(problem), True)
    kernel()
    alone = min(repeat(kernel, number=1, repeat=ROUNDS))
    place = partial(streamplace.place, placer="heft", objective="makespan")
    calls = {"prepared": partial(place, problem), "new": lambda: place(again(problem))}
    benchmark.pedantic(calls[problem_is], rounds=ROUNDS, warmup_rounds=100)
    call = benchmark.stats.stats.min
    print(
        f"\nheft on a {problem_is} problem: {1e6 * call:.0f} µs, {call / alone:.1f} × the "
        f"{1e6 * alone:.0f} µs of the scheduler"
    )
