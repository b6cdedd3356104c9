"""Budgets of seconds: their clock, and a machine so busy that it has always run out."""

import itertools
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from placer_cases import make_busy
from problems import PROBLEMS, chain, layered

from streamplace.families.random_dag import RandomDag, random_dag
from streamplace.model import Cluster, Device, Problem
from streamplace.objectives.registry import OBJECTIVES, Objective
from streamplace.placers import stopwatch
from streamplace.placers.meter import Meter
from streamplace.placers.registry import PLACERS, Budget
from streamplace.placers.stopwatch import now, start_up_seconds, starting_up

THROUGHPUT = OBJECTIVES["throughput"]
SEARCHES = ("auto", "anneal", "pilot")
MILLISECOND = 1e-3


@pytest.fixture
def busy(monkeypatch):
    make_busy(monkeypatch)


def placed(name, problem, seconds=None, evaluations=None, objective=THROUGHPUT, **options):
    """Place within a budget."""
    chosen = PLACERS[name].with_options(**options)
    return chosen.place(problem, objective, budget=Budget(seconds, evaluations))


def crossed(n):
    """Random graph whose network is the bottleneck."""
    parameters = RandomDag(operators=n, streams=2 * n, devices=4.0, network=300.0, skew=1.0)
    return Problem(next(random_dag(parameters, 0)), Cluster.uniform(4))


@pytest.mark.parametrize(
    "name", [name for name in PROBLEMS if len(set(PROBLEMS[name].interchangeable.tolist())) == 1]
)
@pytest.mark.parametrize("placer", SEARCHES)
def test_five_milliseconds_on_equal_devices_are_never_below_metis(placer, name, busy):
    problem = PROBLEMS[name]
    result = placed(placer, problem, 5 * MILLISECOND)
    assert result.value >= placed("metis-oracle", problem).value - 1e-12


@pytest.mark.parametrize("placer", SEARCHES)
def test_large_graphs_are_never_below_metis_where_time_allows(placer, busy):
    problem = crossed(2000)
    assert placed(placer, problem, 1.0).value >= placed("metis-oracle", problem).value - 1e-12


@pytest.mark.parametrize("n", [18, 200])
@pytest.mark.parametrize("step", [0, 300])
@pytest.mark.parametrize("placer", SEARCHES)
@pytest.mark.parametrize("limit", [25, pytest.param(13, marks=pytest.mark.slow)])
def test_ten_milliseconds_end_soon(limit, placer, n, step, monkeypatch):
    """Everything included, on equal and on unlike devices, in the median of CPU milliseconds."""
    monkeypatch.setattr(stopwatch, "clock", time.process_time)
    graph = next(random_dag(RandomDag(operators=n), 1))
    devices = [Device(f"d{i}", mips=1500 + step * i) for i in range(7)]
    problem = Problem(graph, Cluster.of(devices)).at_rate(8 * graph.source_rate)
    taken = []
    for _ in range(6):
        begin = time.process_time()
        placed(placer, problem, 10 * MILLISECOND)
        taken.append(time.process_time() - begin)
    assert np.median(taken[1:]) <= limit * MILLISECOND


@pytest.mark.parametrize("placer", ["anneal", "exact"])
@pytest.mark.parametrize("problem", [PROBLEMS["heterogeneous"], layered(40, n_sources=4)])
def test_no_move_is_made_when_the_time_is_over(placer, problem, busy):
    start = (problem.placement(problem.repaired(np.zeros(problem.n_operators, np.int32))),)
    hurried = placed(placer, problem, 1e-9, start=start)
    assert max(step.evaluations for step in hurried.trace) == 1
    assert hurried.value >= THROUGHPUT.value(problem, start[0])


def spread(sense, asked):
    """Highest device in use, which no placer knows; notes numbers of evaluated placements."""

    def evaluate(problem, placements):
        asked.append(len(placements))
        return placements.max(axis=1).astype(float)

    return Objective("spread", sense, "Highest device in use.", evaluate)


def test_other_objectives_are_not_climbed_when_the_time_is_over(busy):
    seen: list[int] = []
    problem = Problem(chain(9), Cluster.uniform(3))
    result = placed("anneal", problem, 1e-9, objective=spread("max", seen))
    assert sum(seen) == 2  # the placement to begin with, and the answer
    assert result.value == 0


@pytest.mark.parametrize("placer", ["auto", "pilot"])
def test_a_portfolio_asks_for_no_more_evaluations_that_are_dear(placer, busy):
    """An objective that nobody knows is evaluated for the first answer alone."""
    seen: list[int] = []
    problem = PROBLEMS["fork-join"]
    placed(placer, problem, 5 * MILLISECOND, objective=spread("min", seen))
    assert sum(seen) <= problem.n_devices + 2


def uneven(n):
    """Random graph on 16 devices of three speeds."""
    parameters = RandomDag(operators=n, streams=2 * n, devices=22.0, network=1500.0)
    devices = [Device(f"d{i}", mips=1250 * 2 ** (i % 3)) for i in range(16)]
    return Problem(next(random_dag(parameters, 0)), Cluster.of(devices))


@pytest.fixture
def cuts(monkeypatch):
    """Numbers of parts that METIS is asked for."""
    import pymetis

    seen, part_graph = list[int](), pymetis.part_graph

    def counted(parts, *rest, **options):
        seen.append(parts)
        return part_graph(parts, *rest, **options)

    monkeypatch.setattr(pymetis, "part_graph", counted)
    return seen


def test_a_starved_process_searches_large_graphs_instead_of_cutting_them(cuts, monkeypatch):
    """METIS is asked once, however long the budget: every cut may take seconds of the clock."""
    problem, looks = uneven(30_000), itertools.count()
    metis = placed("metis", problem).value
    cuts.clear()
    monkeypatch.setattr(stopwatch, "clock", lambda: 0.5 * next(looks))
    assert placed("auto", problem, 60.0).value > 1.5 * metis
    assert cuts == [16]


def test_the_clock_ends_what_metis_tries_on_large_graphs(cuts, busy):
    """One cut by the oracle, which is METIS's own answer, and one by METIS."""
    problem = uneven(8000)
    assert placed("auto", problem, 5.0).value >= placed("metis", problem).value
    assert cuts == [16, 16, 16]


def test_an_oracle_is_never_below_its_placer(busy):
    """It begins with as many parts as devices, however little time both have."""
    for problem in PROBLEMS.values():
        for base in ("metis", "fuser"):
            least = placed(base, problem, 1e-9).value
            assert placed(f"{base}-oracle", problem, 1e-9).value >= least


@given(st.integers(1, 100), st.integers(1, 200), st.lists(st.integers(1, 50), min_size=1))
def test_evaluations_are_an_exact_limit(least, evaluations, chunks):
    for seconds, most in ((1e-9, min(least, evaluations)), (None, evaluations)):
        meter, done = Meter(Budget(seconds, evaluations), least), 0
        for chunk in itertools.chain(chunks, itertools.repeat(7)):
            granted = meter.chunk(chunk)
            assert granted <= chunk
            if granted == 0:
                break
            meter.spend(granted)
            done += granted
        assert meter.over
        assert meter.late
        assert done == most


def test_the_clock_stands_still_while_libraries_are_loaded():
    wall, began, before = time.perf_counter(), now(), start_up_seconds()
    with starting_up():
        time.sleep(0.02)
    loading = start_up_seconds() - before
    assert loading >= 0.02
    assert now() - began <= time.perf_counter() - wall - loading


def test_the_clock_of_a_thread_goes_on_while_another_one_loads():
    def load():
        with starting_up():
            time.sleep(0.05)

    began, before = now(), start_up_seconds()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(load).result()
    assert now() - began >= 0.05
    assert start_up_seconds() == before
