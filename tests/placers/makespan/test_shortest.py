"""Searches and proofs of the shortest pass, held against each other and against trying all."""

import numpy as np
import pytest
from hypothesis import given, settings
from makespan_cases import MAKESPAN, giph, least_of_all, problems, value
from streamsim import _core

from streamplace import place
from streamplace.model import Cluster, Constraints, Device, Operator, Problem, Stream, StreamGraph
from streamplace.objectives.registry import named_objective
from streamplace.placers.exact.makespan import Proof
from streamplace.placers.incumbent import SearchInterrupt
from streamplace.placers.named import named_placer
from streamplace.placers.registry import PLACERS, Budget
from streamplace.scheduling.ranks import by_rank
from streamplace.scheduling.tasks import tasks_of


@given(problem=problems().filter(lambda problem: problem.n_operators <= 5))
def test_a_proof_is_what_trying_all_finds(problem):
    """The bound is none that a schedule beats, and mostly the value meets it."""
    result = PLACERS["exact"].place(problem, MAKESPAN, budget=Budget(None, 20_000))
    least = least_of_all(problem)
    assert result.bound <= least * (1 + 1e-6)
    assert result.value >= least * (1 - 1e-9)
    if result.value <= result.bound * (1 + 1e-6):
        assert result.value == pytest.approx(least, rel=1e-6)


@settings(max_examples=25, deadline=None)
@given(problem=problems())
def test_what_the_search_believes_is_what_the_simulator_says(problem):
    """Cores that do not wait take as long in the search as in the simulator."""
    tasks, rng = tasks_of(problem), np.random.default_rng(0)
    usable = np.isfinite(tasks.work)
    place_of = np.array([rng.choice(np.flatnonzero(row)) for row in usable], np.int32)
    place_of = problem.repaired(place_of)
    order = by_rank(tasks, rng.random(tasks.n_tasks))
    waiting, eager = _core.held_and_eager(tasks.core, order, place_of)
    priority = np.empty(tasks.n_tasks)
    priority[order] = -np.arange(tasks.n_tasks)
    assert eager == pytest.approx(
        MAKESPAN.value(problem, problem.placement(place_of, priority)), rel=1e-12
    )
    assert waiting >= MAKESPAN.bound(problem) * (1 - 1e-9)  # type: ignore[operator]


def test_an_interrupted_proof_carries_the_schedule_so_far(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Proof, "by_stages", interrupted)
    problem = giph(1)[0]
    with pytest.raises(SearchInterrupt) as stop:
        PLACERS["exact"].place(problem, MAKESPAN, budget=Budget(None, 10_000))
    assert MAKESPAN.value(problem, stop.value.best.placement) <= value("heft", problem)


@pytest.mark.parametrize(("count", "least"), [(4, 0), pytest.param(20, 16, marks=pytest.mark.slow)])
def test_on_the_benchmark_search_is_mostly_proven(count, least):
    proven = 0
    for problem in giph(count):
        heft = value("heft", problem)
        result = PLACERS["auto"].place(problem, MAKESPAN, budget=Budget(None, 30_000))
        assert result.value <= heft
        proven += result.value <= result.bound * (1 + 1e-6)
    assert proven >= least


@pytest.mark.parametrize(
    ("count", "most"), [(5, 1.0), pytest.param(15, 0.9, marks=pytest.mark.slow)]
)
def test_search_escapes_where_communication_dominates(count, most):
    """On the wider grid the search is below HEFT, by a tenth in the mean."""
    ratios = [
        PLACERS["anneal"].place(problem, MAKESPAN, budget=Budget(None, 30_000)).value
        / value("heft", problem)
        for problem in giph(count, "grid")
    ]
    assert max(ratios) <= 1
    assert np.mean(ratios) < most


def test_a_longer_search_continues_the_shorter_one():
    problem = giph(4, "grid")[1]
    values = [
        PLACERS["anneal"].place(problem, MAKESPAN, budget=Budget(None, n)).value
        for n in (10, 1000, 5000, 40_000)
    ]
    assert values == sorted(values, reverse=True)


def test_the_clock_does_not_end_the_first_round():
    """A busy machine costs quality, but the first schedules are made whatever it says."""
    problem = giph(4)[0]
    result = PLACERS["anneal"].place(problem, MAKESPAN, budget=Budget(1e-6))
    assert result.value <= value("heft", problem)


def test_memory_and_rivals_hold_in_searches_and_proofs():
    """Two tasks fit on each device, and two must not meet: everything together is best, else."""
    tasks = [Operator(f"v{i}", ipt=1e6, memory=4) for i in range(4)]
    streams = [Stream("v0", f"v{i}", payload=100) for i in (1, 2, 3)]
    graph = StreamGraph.of("memory", tasks, streams, fires="all")
    devices = [Device(f"d{i}", mips=1, memory=8) for i in range(2)]
    rules = Constraints(exlocate=[["v0", "v3"]])
    problem = Problem(graph, Cluster.of(devices, bandwidth=800), rules)
    for placer in ("anneal", "exact", "auto", "heft", "foresight", "etf", "sct"):
        result = PLACERS[placer].place(problem, MAKESPAN, budget=Budget(None, 5000))
        problem.check(result.placement)
    proof = PLACERS["exact"].place(problem, MAKESPAN, budget=Budget(None, 20_000))
    assert proof.value == pytest.approx(least_of_all(problem))


@pytest.mark.parametrize("memory", [(2.0, 3.0, 0.0), (2.5, 2.0, 0.0)])
def test_memory_is_counted_to_the_byte(memory):
    """Two operators of 4.5 or 5 bytes together are not on one device of 4."""
    operators = [
        Operator(f"o{i}", ipt=1e6, payload=1e3, rate=float(i == 0), memory=m)
        for i, m in enumerate(memory)
    ]
    graph = StreamGraph.of("small", operators, [Stream("o0", "o1"), Stream("o0", "o2")])
    devices = [Device(f"d{i}", mips=1.0 + i, memory=4.0) for i in range(2)]
    problem = Problem(graph, Cluster.of(devices, bandwidth="8 kbps"))
    result = PLACERS["exact"].place(problem, MAKESPAN, budget=Budget(None, 200_000))
    assert result.bound <= least_of_all(problem) * (1 + 1e-6) <= result.value * (1 + 2e-6)


@pytest.mark.parametrize(
    ("placer", "way"),
    [
        ("anneal", "makespan:network=link"),
        ("anneal", "makespan:preset=giph"),
        ("pilot:samples=0:refine=none", "makespan:network=link"),
    ],
)
def test_other_rules_of_a_pass_are_judged_by_the_simulator(placer, way):
    judge = named_objective(way)
    problem = giph(4)[1]
    result = named_placer(placer).place(problem, judge, budget=Budget(None, 3000))
    heft = PLACERS["heft"].place(problem, judge)
    assert result.value == judge.value(problem, result.placement)
    assert result.value <= heft.value * 1.02


def test_forced_choices_and_conditions_go_together():
    tasks = [Operator("a", ipt=1e6, rate=1.0), Operator("b", ipt=1e6), Operator("c", ipt=1e6)]
    graph = StreamGraph.of("g", tasks, [Stream("a", "b", payload=1), Stream("b", "c", payload=1)])
    cluster = Cluster.uniform(3, mips=1.5, bandwidth=80)
    free = place(graph, cluster, objective="makespan", budget=Budget(None, 2000))
    kept = place(
        graph, cluster, objective="makespan", require=["throughput>=1"], budget=Budget(None, 3000)
    )
    assert free.value == pytest.approx(2)
    assert kept.value == pytest.approx(2.2)
