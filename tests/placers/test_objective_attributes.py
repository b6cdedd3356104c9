"""Placers ask what an objective is, not what it is called: objectives of third parties."""

from dataclasses import replace

import numpy as np
import pytest
from problems import chain

from streamplace.model import Cluster, Operator, Problem, Stream, StreamGraph
from streamplace.model.arrays import Floats, Ints
from streamplace.objectives.registry import OBJECTIVES, Objective
from streamplace.placers.registry import PLACERS, Budget
from streamplace.placers.result import Result

FEW = Budget(None, 400)
PIPE = Problem(chain(9), Cluster.uniform(3))


def tasks(n: int = 14, devices: int = 3) -> Problem:
    """Random tasks of unequal work on equal devices."""
    rng = np.random.default_rng(3)
    operators = [Operator(f"t{i}", ipt=rng.integers(1, 9) * 1e8, payload=1e6) for i in range(n)]
    streams = [Stream(f"t{rng.integers(i)}", f"t{i}") for i in range(1, n)]
    graph = StreamGraph.of("tasks", operators, streams, fires="all")
    return Problem(graph, Cluster.uniform(devices, mips=1000, bandwidth="1 Gbps"))


def annealed(problem: Problem, objective: Objective) -> Result:
    """Answer of the local search within a few evaluations."""
    return PLACERS["anneal"].place(problem, objective, seed=1, budget=FEW)


@pytest.mark.parametrize(("name", "problem"), [("throughput", PIPE), ("makespan", tasks())])
def test_an_objective_of_a_kind_is_searched_like_the_kind(name: str, problem: Problem) -> None:
    usual = annealed(problem, OBJECTIVES[name])
    own = annealed(problem, replace(OBJECTIVES[name], name="own"))
    assert own.objective == "own"
    assert own.placement.index.tolist() == usual.placement.index.tolist()
    assert [step.value for step in own.trace] == [step.value for step in usual.trace]


def test_a_search_begins_with_the_best_placement_by_the_guide() -> None:
    """That one is all that the objective wants, and too much for a few random moves."""
    problem = tasks(60, 6)
    share = Budget(None, 120)
    wanted = PLACERS["anneal"].place(problem, OBJECTIVES["makespan"], seed=1, budget=share)

    def strays(problem: Problem, placements: Ints) -> Floats:
        return np.asarray((placements != wanted.placement.index).sum(axis=1), np.float64)

    guided = Objective("strays", "min", "Operators elsewhere.", strays, guide="makespan")
    assert annealed(problem, guided).value == 0
    assert annealed(problem, replace(guided, guide="")).value > 0
