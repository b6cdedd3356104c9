"""Exact within its budget: seeds, time, evaluations and interrupts."""

import signal
import threading
from dataclasses import replace
from typing import Any

import pytest
from exact_cases import EXACT, THROUGHPUT, branched, solved

from streamplace.model import Cluster, Operator, Problem, Stream, StreamGraph
from streamplace.placers.exact.rate.prover import MOVES
from streamplace.placers.incumbent import SearchInterrupt
from streamplace.placers.meter import Meter
from streamplace.placers.registry import Budget, Placer
from streamplace.placers.result import Result


def test_the_same_seed_and_evaluations_give_the_same_answer() -> None:
    """Neither time nor threads decide when evaluations end the search."""
    problem, budget = branched(5, 5, seed=3), Budget(seconds=None, evaluations=30_000)
    one = solved(problem, budget, seed=7)
    other = solved(problem, budget, seed=7, workers=2)
    assert one.placement == other.placement
    assert one.bound == other.bound


def test_the_trace_rises_to_the_value() -> None:
    result = solved(branched(5, 4, seed=2), Budget(seconds=None, evaluations=20_000))
    values = [step.value for step in result.trace]
    assert values == sorted(values)
    assert values[-1] == pytest.approx(result.value)


def test_the_time_limit_is_kept() -> None:
    """A search that would go on for hours ends with an answer and an honest bound."""
    result = solved(branched(9, 9, seed=0), Budget(seconds=0.5))
    assert result.seconds < 60
    too_large_to_prove = solved(branched(50, 20, seed=0), Budget(seconds=1))
    for answer in (result, too_large_to_prove):
        assert answer.value <= answer.bound <= 1


@pytest.mark.parametrize("after", [0.3, 3.0])
def test_an_interrupt_leaves_at_once(after: Any) -> None:
    """Ctrl-C ends the compiled search and the solver alike."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
    problem = branched(9, 9, seed=0)
    solved(problem, Budget(seconds=0.5))  # what is being imported, or compiled, swallows signals
    timer = threading.Timer(after, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            solved(problem, Budget(seconds=100))
    finally:
        timer.cancel()


def test_an_interrupt_carries_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search began with everything on one device."""
    spend = Meter.spend

    def interrupted(meter: Meter, evaluations: int) -> None:
        spend(meter, evaluations)
        if meter.spent > MOVES:
            raise KeyboardInterrupt

    monkeypatch.setattr(Meter, "spend", interrupted)
    problem = branched(9, 9, seed=0)
    with pytest.raises(SearchInterrupt) as stop:
        solved(problem, Budget(evaluations=1_000_000))
    found = THROUGHPUT.value(problem, stop.value.best.placement)
    assert found > THROUGHPUT.value(problem, problem.placement([0] * problem.n_operators))


def test_trying_all_placements_ends_with_the_evaluations() -> None:
    """A part of the placements proves nothing; four devices carry half of the work of eight."""
    rows = []

    def evaluate(problem: Problem, placements: Any) -> Any:
        rows.append(len(placements))
        return THROUGHPUT.evaluate(problem, placements)

    operators = [Operator(f"o{i}", ipt=1e6, rate=float(i < 2)) for i in range(8)]
    streams = [Stream(f"o{i}", f"o{i + 2}") for i in range(6)]
    graph = StreamGraph.of("two chains", operators, streams)
    problem = Problem(graph, Cluster.uniform(4, mips=1))
    counted = replace(THROUGHPUT, evaluate=evaluate)
    result = EXACT.place(problem, counted, budget=Budget(evaluations=10_000))
    assert sum(rows) <= 10_000 + 1  # the answer is evaluated once more
    assert result.bound is not None
    assert result.bound >= 0.5 - 1e-9


def test_the_first_placement_of_a_large_graph_is_found_within_the_evaluations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = Placer.place
    given = []

    def noted(placer: Placer, *case: Any, seed: int, budget: Budget) -> Result:
        given.append(budget.evaluations)
        return place(placer, *case, seed=seed, budget=budget)

    monkeypatch.setattr(Placer, "place", noted)
    solved(branched(25, 10, seed=0), Budget(evaluations=900))
    assert given[0] == 900
    assert 0 < sum(given[1:]) < 900
