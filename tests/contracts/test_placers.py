"""What every registered placer must satisfy."""

import contextlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from placer_cases import (
    EVALUATIONS,
    OF_PAPERS,
    OURS,
    QUESTIONS,
    SLOW,
    VARIED,
    answer,
    case,
    devices,
    first_answer,
    question,
)
from problems import PROBLEMS

from streamplace.errors import PlacementError
from streamplace.model import Cluster, Device, Operator, Problem, Stream, StreamGraph
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.registry import PLACERS, Budget
from streamplace.placers.result import Result

pytestmark = pytest.mark.xdist_group("placers")  # one process places, and asks for it often
LARGE = 2 * EVALUATIONS
CASES = [case(placer, problem) for placer in PLACERS for problem in PROBLEMS]
QUICK_IF_VARIED = [
    case(placer, problem, slow=problem not in VARIED) for placer in PLACERS for problem in PROBLEMS
]
"""The same cases, slow where the problem is not a varied one."""


def placed(placer, problem, evaluations=EVALUATIONS, objective=""):
    """Place within a number of evaluations, once; skip where the placer says that it cannot."""
    result = first_answer(placer, problem, objective or question(placer).name, evaluations)
    if isinstance(result, Result):
        return result
    if PROBLEMS[problem].rules is None or "\n" in str(result):
        raise result
    pytest.skip(str(result))


@pytest.mark.parametrize(("placer", "problem"), CASES)
def test_placements_are_legal_and_valued_by_the_objective(placer, problem):
    """The answer respects the constraints, and its value is the objective's."""
    result = placed(placer, problem)
    PROBLEMS[problem].check(result.placement)
    judge = question(placer)
    assert result.value == judge.value(PROBLEMS[problem], result.placement)
    assert result.objective == judge.name
    assert 0 <= result.value <= (judge.limit or np.inf)


OTHERS = [
    case(placer, name)
    for placer in PLACERS
    for name in OBJECTIVES
    if PLACERS[placer].judges(OBJECTIVES[name])
]


@pytest.mark.parametrize(("placer", "name"), OTHERS)
def test_placers_place_for_every_objective_that_they_declare(placer, name):
    """Legal, valued by the objective, the same for the same seed, no better than a bound."""
    problem, judge = PROBLEMS["constrained"], OBJECTIVES[name]
    if judge.refuses(problem) is not None:
        problem = with_watts(problem)
    budget = Budget(seconds=None, evaluations=60)
    try:
        first, other = (PLACERS[placer].place(problem, judge, seed=5, budget=budget) for _ in "ab")
    except PlacementError as error:
        pytest.skip(str(error))
    problem.check(first.placement)
    assert first.placement == other.placement
    assert first.value == judge.value(problem, first.placement)
    assert first.objective == name
    if first.bound is not None:
        slack = 1e-9 * abs(first.bound) * (1 if judge.sense == "max" else -1)
        assert not_better(judge, first.value, first.bound + slack)


def not_better(judge, value, bound):
    """Whether both are numbers, and the value is not better than the bound."""
    return judge.better(bound, value) or bound == value


def with_watts(problem):
    """The same problem on devices that say what they draw."""
    cluster = problem.cluster
    devices = replace(cluster.devices, watts=np.arange(1.0, 1 + cluster.n_devices))
    drawing = replace(cluster, devices=devices, joules_per_byte=1e-9)
    return Problem(problem.graph, drawing, problem.constraints, problem.seconds)


@pytest.mark.parametrize(("placer", "problem"), QUICK_IF_VARIED)
def test_a_larger_budget_is_never_worse(placer, problem):
    values = [
        placed(placer, problem, evaluations).value for evaluations in (10, EVALUATIONS, LARGE)
    ]
    assert values == sorted(values, reverse=question(placer).sense == "min")


@pytest.mark.parametrize(("placer", "problem"), QUICK_IF_VARIED)
def test_a_trace_leads_to_the_value(placer, problem):
    """Each step is later and better than the one before; the last has the value."""
    result = placed(placer, problem, LARGE)
    values = [step.value for step in result.trace]
    assert values == sorted(set(values), reverse=question(placer).sense == "min")
    assert [step.seconds for step in result.trace] == sorted(step.seconds for step in result.trace)
    assert not values or values[-1] == pytest.approx(result.value, rel=1e-9)


LEFT = ("constrained", "tagged")
"""Problems of rules that are left to the slow ones; another has pins and groups, too."""


@pytest.mark.parametrize("objective", QUESTIONS)
@pytest.mark.parametrize(
    ("problem", "placers"),
    [
        *(pytest.param(name, OURS, id=name) for name in VARIED if name not in LEFT),
        *(pytest.param(name, PLACERS, id=f"{name}, all", marks=SLOW) for name in PROBLEMS),
    ],
)
def test_no_placement_is_better_than_a_proven_bound(problem, placers, objective):
    """Bounds, whoever gives them, hold against every other placer and 20,000 random tries."""
    judge = OBJECTIVES[objective]
    results = [placed("random", problem, evaluations=20_000, objective=objective)]
    for placer in placers:
        if PLACERS[placer].judges(judge):
            with contextlib.suppress(pytest.skip.Exception):
                results.append(placed(placer, problem, objective=objective))
    values = np.array([result.value for result in results])
    best = values[judge.best(values)]
    bounds = {result.placer: result.bound for result in results if result.bound is not None}
    assert "exact" in bounds
    for placer, bound in bounds.items():
        slack = 1e-9 * max(1.0, bound) * (1 if judge.sense == "max" else -1)
        assert not_better(judge, best, bound + slack), placer


PLAIN = tuple(name for name in PROBLEMS if name not in VARIED)
SCRIPT = """
import json, sys
from placer_cases import answer, devices, question
placers, problems = map(json.loads, sys.argv[1:])
answers = {
    f"{placer}/{problem}": devices(answer(placer, problem, question(placer).name))
    for placer in placers
    for problem in problems
}
print(json.dumps(answers))
"""


@pytest.mark.parametrize(
    ("placers", "problems"),
    [
        pytest.param(OURS, VARIED, id="varied", marks=SLOW),
        pytest.param(OURS, PLAIN, id="others", marks=SLOW),
        pytest.param(OF_PAPERS, list(PROBLEMS), id="papers", marks=SLOW),
    ],
)
def test_neither_hash_seed_nor_threads_change_placements(placers, problems):
    """A fresh process with another hash seed and another thread count answers as this one did."""
    threads = "2" if os.environ.get("OMP_NUM_THREADS") == "1" else "1"
    environment = {
        **os.environ,
        "PYTHONHASHSEED": "12345" if os.environ.get("PYTHONHASHSEED") != "12345" else "0",
        "PYTHONPATH": str(Path(__file__).parents[1] / "support"),
        "OMP_NUM_THREADS": threads,
    }
    command = [sys.executable, "-c", SCRIPT, json.dumps(placers), json.dumps(problems)]
    run = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stderr
    here = {
        f"{placer}/{problem}": devices(
            first_answer(placer, problem, question(placer).name, EVALUATIONS)
        )
        for placer in placers
        for problem in problems
    }
    assert json.loads(run.stdout) == here


@pytest.mark.parametrize("placer", [*map(case, PLACERS)])
def test_placers_leave_the_problem_as_it_was(placer):
    problem = PROBLEMS["fork-join"]
    before = [np.array(column, copy=True) for column in problem.instance]
    answer(placer, "fork-join", question(placer).name)
    assert all(np.array_equal(x, y) for x, y in zip(before, problem.instance, strict=True))


TOGETHER = {"single", "enumerative"}
"""Placers that begin with everything on one device by design."""
SPREADING = [
    name
    for name in PLACERS
    if name not in TOGETHER and "weights" not in PLACERS[name].defaults()  # weights decide
]
CLUSTERS = {
    "equal": Cluster.uniform(4),
    "of two types": Cluster.of([Device(f"d{i}", mips=2500 + 500 * (i % 2)) for i in range(4)]),
}


def side_by_side(cluster):
    """Eight tasks that fill four devices together, between two that take and send nothing."""
    work = [f"w{i}" for i in range(8)]
    operators = [Operator("in"), *(Operator(name, ipt=1.2e9) for name in work), Operator("out")]
    streams = [Stream(*ends) for name in work for ends in (("in", name), (name, "out"))]
    return Problem(StreamGraph.of("side by side", operators, streams, fires="all"), cluster)


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("placer", SPREADING)
def test_a_placer_uses_several_devices_where_one_is_too_little(placer, cluster):
    """Whether the devices are equal, so that they are of one type, or not."""
    problem = side_by_side(CLUSTERS[cluster])
    budget = Budget(seconds=None, evaluations=300)
    result = PLACERS[placer].place(problem, question(placer), seed=1, budget=budget)
    assert len(set(result.placement.index.tolist())) > 1
