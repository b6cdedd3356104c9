"""Exact within its budget: seeds, time, evaluations, interrupts and placements to begin with."""

import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest
from exact_cases import EXACT, THROUGHPUT, branched, solved
from placer_cases import counted
from problems import layered

from streamplace.model import Cluster, Constraints, Device, Operator, Problem, Stream, StreamGraph
from streamplace.placers import stopwatch
from streamplace.placers.exact.prover import MOVES, SLICE
from streamplace.placers.incumbent import SearchInterrupt
from streamplace.placers.meter import Meter
from streamplace.placers.registry import PLACERS, Budget


def test_the_same_seed_and_evaluations_give_the_same_answer() -> None:
    """Neither time nor threads decide when evaluations end the search."""
    problem, budget = branched(5, 5, seed=3), Budget(seconds=None, evaluations=30_000)
    one = solved(problem, budget, seed=7)
    other = solved(problem, budget, seed=7, workers=2)
    assert one.placement == other.placement
    assert one.bound == other.bound


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


def two_chains() -> Problem:
    """Two chains on four devices, which carry half of the work; 65,536 placements."""
    operators = [Operator(f"o{i}", ipt=1e6, rate=float(i < 2)) for i in range(8)]
    streams = [Stream(f"o{i}", f"o{i + 2}") for i in range(6)]
    return Problem(StreamGraph.of("two chains", operators, streams), Cluster.uniform(4, mips=1))


def test_trying_all_placements_ends_with_the_evaluations() -> None:
    """A part of the placements proves nothing; four devices carry half of the work of eight."""
    rows = list[int]()
    result = EXACT.place(two_chains(), counted(rows), budget=Budget(evaluations=10_000))
    assert sum(rows) <= 10_000 + 1  # the answer is evaluated once more
    assert result.bound is not None
    assert result.bound >= 0.5 - 1e-9


def test_trying_all_placements_ends_with_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock is read between batches; each placement takes a millisecond of the one second."""
    rows = list[int]()
    monkeypatch.setattr(stopwatch, "clock", lambda: sum(rows) / 1000)
    result = EXACT.place(two_chains(), counted(rows), budget=Budget(seconds=1))
    assert sum(rows) <= SLICE + MOVES
    assert result.bound is not None
    assert result.bound >= 0.5 - 1e-9


def hopeless_source() -> tuple[Problem, list[int]]:
    """A source that needs three devices, of which one is given up so that another keeps its rate.

    Spread over both devices, they have a lower peak, and both are slowed down.
    """
    light = [Operator(f"l{i}", ipt=5e4 / 9) for i in range(18)]
    operators = [Operator("slow", rate=1), Operator("h0", ipt=1.5e6), Operator("h1", ipt=1.5e6)]
    operators += [Operator("quick", rate=9), *light]
    streams = [Stream("slow", "h0"), Stream("slow", "h1")]
    streams += [Stream("quick", one.name) for one in light]
    graph = StreamGraph.of("hopeless", operators, streams)
    return Problem(graph, Cluster.uniform(2, mips=1)), [0] * 3 + [1] * 19


def beside_a_constant_load() -> tuple[Problem, list[int]]:
    """The work takes 1.15 times as long on the slow device, and 1.2 times beside 0.5."""
    operators = [
        Operator("src", rate=1e3),
        Operator("work", ipt=6e5),
        Operator("half", constant=500),
    ]
    graph = StreamGraph.of("beside", operators, [Stream("src", "work"), Stream("src", "half")])
    devices = [Device("d0", mips=1000), Device("d1", mips=520)]
    rules = Constraints(pin={"half": "d0", "src": "d0"})
    return Problem(graph, Cluster.of(devices), rules), [0, 1, 0]


@pytest.mark.parametrize("placer", ["exact", "anneal"])
@pytest.mark.parametrize(
    ("case", "evaluations"), [(hopeless_source, 3000), (beside_a_constant_load, 100)]
)
def test_the_answer_is_never_worse_than_the_placements_to_begin_with(
    case: Callable[[], tuple[Problem, list[int]]], evaluations: int, placer: str
) -> None:
    """Where a lower peak is no higher value: several sources, and constant loads."""
    problem, devices = case()
    start = problem.placement(devices)
    search = PLACERS[placer].with_options(start=(start,))
    result = search.place(problem, THROUGHPUT, budget=Budget(evaluations=evaluations))
    assert result.value >= THROUGHPUT.value(problem, start) * (1 - 1e-12)
    assert result.trace[-1].value == pytest.approx(result.value)


def test_the_clock_ends_a_climb_between_its_moves() -> None:
    """Two thousand operators of two sources have 12,600 moves, each a placement of all of them."""
    rows = list[int]()
    EXACT.place(layered(2100, n_sources=2), counted(rows), budget=Budget(seconds=1e-3))
    assert max(rows) <= MOVES
