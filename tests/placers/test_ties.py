"""Of placements of equal throughput, the least full one, then the one that sends least."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from strategies import problems
from streamsim import resource_loads

from streamplace.model import Cluster, Operator, Problem, Stream, StreamGraph
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.auto import with_least_peak
from streamplace.placers.registry import PLACERS, Budget

THROUGHPUT = OBJECTIVES["throughput"]


def peak(problem: Problem, index: object) -> float:
    """Load of the fullest resource."""
    return max(float(part.max()) for part in resource_loads(problem.instance, index))


def pipe(*ipt: float, payload: float = 1000.0, devices: int = 3) -> Problem:
    """Operators in a row, at 10,000 tuples/s."""
    names = [f"v{i}" for i in range(len(ipt))]
    rates = [1e4] + [0.0] * (len(ipt) - 1)
    operators = [
        Operator(name, ipt=cost, rate=rate, payload=payload)
        for name, cost, rate in zip(names, ipt, rates, strict=True)
    ]
    streams = [Stream(a, b) for a, b in itertools.pairwise(names)]
    return Problem(StreamGraph.of("pipe", operators, streams), Cluster.uniform(devices))


def test_placements_that_keep_up_have_the_least_peak_load() -> None:
    """Three operators of a quarter of a device each fit one device, and go to three."""
    problem = pipe(62_500, 62_500, 62_500)
    together = problem.placement([0, 0, 0])
    assert THROUGHPUT.value(problem, together) == 1
    evened = with_least_peak(problem, together)
    assert len(set(evened.index.tolist())) == 3
    assert peak(problem, evened.index) == pytest.approx(0.25)


def test_of_equally_full_placements_the_one_that_sends_least() -> None:
    """An operator that costs nothing goes to the one that feeds it."""
    problem = pipe(200_000, 100_000, 0)
    evened = with_least_peak(problem, problem.placement([0, 1, 2]))
    assert evened["v1"] == evened["v2"] != evened["v0"]


def test_auto_breaks_ties_whatever_its_budget() -> None:
    """Also where the first placement it looks at is the best possible."""
    problem = pipe(50_000, 50_000, 50_000)
    for evaluations in (1, 100):
        answer = PLACERS["auto"].place(problem, THROUGHPUT, budget=Budget(None, evaluations))
        assert answer.value == 1
        assert peak(problem, answer.placement.index) == pytest.approx(0.2)


@given(problems(most=6))
def test_neither_the_throughput_falls_nor_the_peak_load_rises(problem: Problem) -> None:
    """From any legal placement, which stays legal; a second time changes nothing."""
    before = problem.placement(problem.repaired(np.zeros(problem.n_operators, np.int32)))
    if not problem.legal(before.index[None])[0]:
        return
    after = with_least_peak(problem, before)
    problem.check(after)
    assert THROUGHPUT.value(problem, after) >= THROUGHPUT.value(problem, before)
    if len(problem.graph.sources) == 1:
        assert peak(problem, after.index) <= peak(problem, before.index) * (1 + 1e-9)
    assert with_least_peak(problem, after).as_dict() == after.as_dict()
