"""Exact: proofs against every placement there is, budgets, interrupts and given placements."""

import signal
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from placer_cases import best_of_all, counted, interrupt, small_problems
from problems import layered
from streamsim import _core

from streamplace.families.branched import Branched, branched
from streamplace.model import Cluster, Constraints, Device, Operator, Problem, Stream, StreamGraph
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers import stopwatch
from streamplace.placers.exact import peak_bounds
from streamplace.placers.exact.cpsat import AssignmentModel, Effort
from streamplace.placers.exact.prover import MOVES, SLICE, Prover
from streamplace.placers.exact.units import contracted, units_of
from streamplace.placers.incumbent import SearchInterrupt
from streamplace.placers.meter import Meter, Remaining
from streamplace.placers.registry import PLACERS, Budget

THROUGHPUT = OBJECTIVES["throughput"]
EXACT = PLACERS["exact"]
PLENTY = Budget(seconds=20)


def solved(problem, budget=PLENTY, seed=0, **options):
    """Place by exact."""
    return EXACT.with_options(**options).place(problem, THROUGHPUT, seed=seed, budget=budget)


def stressed(k, depth, seed):
    """A graph of the benchmark at twice its rate, which overloads its five devices."""
    graph = next(branched(Branched(k, depth, 5, copies=1), seed))
    return Problem(graph.at_rate(2e4), Cluster.uniform(5))


@pytest.mark.parametrize("sources", [1, 3])
@given(data=st.data(), evaluations=st.integers(1, 40))
def test_the_bound_holds_at_any_budget(sources, data, evaluations):
    problem = data.draw(small_problems(sources))
    result = solved(problem, Budget(seconds=None, evaluations=evaluations))
    optimum = best_of_all(problem)
    assert result.value <= optimum + 1e-9
    assert result.bound >= optimum - 1e-9


@given(small_problems(most=5), st.floats(1.01, 3))
def test_cp_sat_agrees_with_trying_everything(problem, cut):
    """The last resort alone: finds what is below a cut, or proves that nothing is."""
    units, unit = units_of(problem), problem.unit
    full, hint = np.full(units.n_devices, cut), np.zeros(units.n_units, np.int32)
    place, least = AssignmentModel(units, full, cut, 1.0, hint).solved(Effort(10.0, None, 1, 0))
    peak = 1 / best_of_all(problem)
    assert least <= max(peak, 1.0) * (1 + 1e-6)
    if peak < cut * (1 - 1e-6):
        assert 1 / THROUGHPUT.evaluate(problem, place[unit][None, :])[0] <= peak * (1 + 1e-6)
    else:
        assert place is None
        assert least >= cut * (1 - 1e-6)


@st.composite
def small_branched(draw):
    """Three or four branches of two equal stages on two or three equal devices, and all peaks."""
    k, n_devices = draw(st.sampled_from([(3, 3), (3, 2), (4, 2)]))
    stages = [draw(st.sampled_from([0.3, 0.4, 0.5, 0.55])) for _ in range(2)]
    payloads = st.sampled_from([0.0, 200.0, 500.0, 900.0])
    first = draw(payloads)
    operators = [Operator("src", ipt=1e5, payload=first, rate=2.0)]
    streams = []
    for b in range(k):
        operators += [
            Operator(f"a{b}", ipt=stages[0] * 1e6, payload=draw(payloads)),
            Operator(f"b{b}", ipt=stages[1] * 1e6, payload=draw(payloads)),
        ]
        streams += [Stream("src", f"a{b}", selectivity=0.5), Stream(f"a{b}", f"b{b}")]
        streams.append(Stream(f"b{b}", "sink"))
    operators.append(Operator("sink", ipt=1e5))
    graph = StreamGraph.of("branched", operators, streams)
    return Problem(graph, Cluster.uniform(n_devices, mips=1, bandwidth="8 kbps"))


@given(small_branched(), st.floats(1.001, 2.0))
def test_hubs_and_patterns_refute_only_what_is_impossible(problem, stretch):
    """Every bound and the search itself, at a cut near the optimum, against all placements."""
    optimum = 1 / best_of_all(problem)
    if optimum <= 1:
        return
    units = units_of(problem)
    for cut in (optimum * (1 - 1e-9), optimum * (1 + 1e-9), optimum * stretch):
        possible = optimum < cut
        smaller = contracted(units, cut)
        if smaller is None:
            assert not possible
            continue
        limits = peak_bounds.limits_below(smaller[0], cut)
        if peak_bounds.exceeds_capacity(limits):
            assert not possible
        for hub in peak_bounds.hubs_of(smaller[0]):
            if _core.spread(hub, cut, units.n_devices, 100_000, Remaining())[0] is False:
                assert not possible
        place, is_refuted, _ = smaller[0].compiled.place_below(limits, 10**7, Remaining())
        assert (place is not None, is_refuted) == (possible, not possible)


def test_a_hub_is_kept_apart_from_many_equal_branches():
    """What counts of equal branches suggest would put some beside the hub."""
    branches = [f"b{i}" for i in range(14)]
    operators = [Operator("hub", ipt=5e5, payload=1e3, rate=1.0)]
    operators += [Operator(name, ipt=3e5 * (1 + i % 2)) for i, name in enumerate(branches)]
    graph = StreamGraph.of("star", operators, [Stream("hub", name, 0.5) for name in branches])
    rules = Constraints(exlocate=[{"hub", name} for name in branches])
    problem = Problem(graph, Cluster.uniform(4, mips=1, bandwidth="8 kbps"), rules)
    result = solved(problem, Budget(evaluations=30_000))
    assert result.value == pytest.approx(1 / 2.5)  # five branches are on one device


@pytest.mark.parametrize(("k", "depth"), [(2, 6), (12, 2), (10, 2), (4, 5)])
def test_graphs_of_the_benchmark_are_proven(k, depth):
    """Branches of equal stages under stress, which overloads any five devices."""
    result = solved(stressed(k, depth, seed=1))
    assert result.bound == pytest.approx(result.value, abs=1e-6)
    assert result.value < 0.55


@pytest.mark.parametrize(
    ("ipt", "max_rate", "cores", "rules"),
    [
        pytest.param(4e3, 0, 4, None, id="a core"),
        pytest.param(1, 500, 1, None, id="a largest rate"),
        pytest.param(4e3, 0, 1, Constraints(allowed={"one": ["d0"]}), id="the device allowed"),
    ],
)
def test_what_limits_one_of_many_sources_on_every_device_is_part_of_the_bound(
    ipt, max_rate, cores, rules
):
    """A subtask carries half of the one source, wherever it may run; the other is carried."""
    operators = [Operator("one", ipt=ipt, rate=1e3, max_rate=max_rate)]
    operators += [Operator(f"o{i}", ipt=1, rate=1e3 * (i == 0)) for i in range(12)]
    graph = StreamGraph.of("two", operators, [Stream(f"o{i}", f"o{i + 1}") for i in range(11)])
    speeds = [2, 2, 2] if rules is None else [2, 8, 8]
    devices = [Device(f"d{i}", mips=mips, cores=cores) for i, mips in enumerate(speeds)]
    result = solved(Problem(graph, Cluster.of(devices), rules), Budget(evaluations=2000))
    assert result.value == pytest.approx(0.5)
    assert result.bound == pytest.approx(0.5)
    assert result.explain().sources == pytest.approx({"one": 0.5, "o0": 1.0})


def test_the_same_seed_and_evaluations_give_the_same_answer():
    """Neither time nor threads decide when evaluations end the search."""
    problem, budget = stressed(5, 5, seed=3), Budget(seconds=None, evaluations=30_000)
    one = solved(problem, budget, seed=7)
    other = solved(problem, budget, seed=7, workers=2)
    assert one.placement == other.placement
    assert one.bound == other.bound


def test_the_time_limit_is_kept():
    """A search that would go on for hours ends with an answer and an honest bound."""
    result = solved(stressed(9, 9, seed=0), Budget(seconds=0.5))
    assert result.seconds < 60
    too_large_to_prove = solved(stressed(50, 20, seed=0), Budget(seconds=1))
    for answer in (result, too_large_to_prove):
        assert answer.value <= answer.bound <= 1


@pytest.mark.parametrize("after", [0.3, pytest.param(3.0, marks=pytest.mark.slow)])
def test_an_interrupt_leaves_at_once(after):
    """Ctrl-C ends the compiled search and the solver alike."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
    problem = stressed(9, 9, seed=0)
    solved(problem, Budget(seconds=0.5))  # what is being imported, or compiled, swallows signals
    timer = threading.Timer(after, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            solved(problem, Budget(seconds=100))
    finally:
        timer.cancel()


def test_an_interrupt_carries_the_best_so_far(monkeypatch):
    interrupt(monkeypatch, MOVES)
    problem = stressed(9, 9, seed=0)
    with pytest.raises(SearchInterrupt) as stop:
        solved(problem, Budget(evaluations=1_000_000))
    found = THROUGHPUT.value(problem, stop.value.best.placement)
    assert found > THROUGHPUT.value(problem, problem.placement([0] * problem.n_operators))


def two_chains():
    """Two chains on four devices, which carry half of the work; 65,536 placements."""
    operators = [Operator(f"o{i}", ipt=1e6, rate=float(i < 2)) for i in range(8)]
    streams = [Stream(f"o{i}", f"o{i + 2}") for i in range(6)]
    return Problem(StreamGraph.of("two chains", operators, streams), Cluster.uniform(4, mips=1))


@pytest.mark.parametrize(
    ("budget", "most"),
    [(Budget(None, 10_000), 10_000 + 1), (Budget(seconds=1), SLICE + MOVES)],
    ids=["evaluations", "seconds"],
)
def test_trying_all_has_an_end(budget, most, monkeypatch):
    """A part of the placements proves nothing; four devices carry half of the work of eight.

    The answer is evaluated once more; the clock, of which each placement takes a millisecond, is
    read between batches.
    """
    rows = list[int]()
    monkeypatch.setattr(stopwatch, "clock", lambda: sum(rows) / 1000)
    result = EXACT.place(two_chains(), counted(rows), budget=budget)
    assert sum(rows) <= most
    assert result.bound >= 0.5 - 1e-9


def hopeless_source():
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


def beside_a_constant_load():
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
def test_the_answer_is_never_worse_than_the_placements_to_begin_with(case, evaluations, placer):
    """Where a lower peak is no higher value: several sources, and constant loads."""
    problem, devices = case()
    start = problem.placement(devices)
    search = PLACERS[placer].with_options(start=(start,))
    result = search.place(problem, THROUGHPUT, budget=Budget(evaluations=evaluations))
    assert result.value >= THROUGHPUT.value(problem, start) * (1 - 1e-12)
    assert result.trace[-1].value == pytest.approx(result.value)


def test_the_clock_ends_a_climb_between_its_moves():
    """Two thousand operators of two sources have 12,600 moves, each a placement of all of them."""
    rows = list[int]()
    EXACT.place(layered(2100, n_sources=2), counted(rows), budget=Budget(seconds=1e-3))
    assert max(rows) <= MOVES


@pytest.mark.parametrize("nodes", [1, 2, 3, 50])
def test_tries_that_use_more_nodes_than_there_are_end_quietly(nodes):
    """Each takes one more than it is given."""
    units = units_of(layered(40))
    prover = Prover(units, np.zeros(units.n_units, np.int32), Meter(Budget()), 0, 1)
    least = prover.least
    prover.close(nodes)
    assert least <= prover.least <= prover.peak
