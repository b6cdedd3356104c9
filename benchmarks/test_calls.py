"""What `streamplace.place` takes besides the scheduler: HEFT on 30 tasks and 20 devices."""

from functools import partial

import pytest

import streamplace
from streamplace.generate.registry import FAMILIES
from streamplace.model.problem import Problem
from streamplace.scheduling.insertion import by_upward_rank
from streamplace.scheduling.tasks import tasks_of


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


@pytest.mark.parametrize("call", ["kernel", "prepared", "new"])
def test_a_call_of_heft(benchmark, call):
    problem = tagged()
    place = partial(streamplace.place, placer="heft", objective="makespan")
    calls = {
        "kernel": partial(by_upward_rank, tasks_of(problem), True),
        "prepared": partial(place, problem),
        "new": lambda: place(again(problem)),
    }
    benchmark(calls[call])
    print(f"\nheft, {call}: {1e6 * benchmark.stats.stats.min:.0f} µs")
