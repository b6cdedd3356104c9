"""Placers where subtasks read only so many tuples/s: exact is what all tries say."""

import numpy as np
import pytest
from placer_cases import best_of_all
from streamsim import throughput

from streamplace.model import Cluster, Constraints, Device, Operator, Problem, Stream, StreamGraph
from streamplace.model.level import finest_level, least_peak
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.registry import PLACERS, Budget

THROUGHPUT = OBJECTIVES["throughput"]


def drawn(seed: int, sources: int = 1) -> Problem:
    """A few operators on unlike devices of one core; of some, subtasks have a largest rate."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(sources + 2, 6)), int(rng.integers(2, 4))
    operators = [
        Operator(
            f"v{i}",
            ipt=float(rng.integers(1, 20)) * 1e4,
            payload=float(rng.integers(200)),
            rate=1e4 if i < sources else 0.0,
            parallelism=int(rng.choice([1, 2])),
            constant=float(rng.choice([0, 0, 100, 500])),
            max_rate=float(rng.choice([0, 0, 3e3, 6e3, 9e3])),
        )
        for i in range(n)
    ]
    streams = [Stream(f"v{rng.integers(v)}", f"v{v}") for v in range(sources, n)]
    devices = [Device(f"d{i}", mips=float(rng.choice([1000, 2500]))) for i in range(d)]
    cluster = Cluster.of(devices, bandwidth=float(rng.choice([1e7, 1e9])))
    rules = Constraints(colocate=[{"v0", "v1"}] if rng.random() < 0.3 else [])
    return Problem(StreamGraph.of("drawn", operators, streams), cluster, rules)


@pytest.mark.parametrize("sources", [1, 2])
@pytest.mark.parametrize("seed", range(12))
def test_exact_finds_and_proves_the_best_of_all_placements(seed: int, sources: int) -> None:
    problem = drawn(seed, sources)
    result = PLACERS["exact"].place(problem, THROUGHPUT, seed=1, budget=Budget(None, 200_000))
    best = best_of_all(problem)
    assert result.value == pytest.approx(best, rel=1e-9)
    assert result.bound == pytest.approx(best, rel=1e-7)


@pytest.mark.parametrize("name", ["anneal", "auto", "metis", "pilot"])
@pytest.mark.parametrize("seed", range(6))
def test_values_are_those_of_the_model_and_bounds_hold(seed: int, name: str) -> None:
    problem = drawn(seed)
    result = PLACERS[name].place(problem, THROUGHPUT, seed=1, budget=Budget(None, 5_000))
    best, place = best_of_all(problem), result.placement.index[None]
    assert result.value == pytest.approx(throughput(problem.instance, place)[0], rel=1e-9)
    assert result.value <= best * (1 + 1e-9)
    assert result.bound is None or result.bound >= best * (1 - 1e-9)


def test_a_limit_alone_proves_the_search_right() -> None:
    """Two devices have room for all; a subtask reads 40 % of the rate, wherever it runs."""
    operators = [Operator("src", ipt=1e4, rate=1e4), Operator("ask", ipt=1e4, max_rate=4e3)]
    graph = StreamGraph.of("pipe", operators, [Stream("src", "ask")])
    problem = Problem(graph, Cluster.uniform(2))
    assert least_peak(problem, finest_level(problem)) == pytest.approx(2.5)
    for name in ("anneal", "exact"):
        result = PLACERS[name].place(problem, THROUGHPUT, seed=1, budget=Budget(None, 1000))
        assert result.value == pytest.approx(0.4)
        assert result.bound == pytest.approx(0.4)


def test_a_limit_is_proven_where_a_constant_load_fills_the_core() -> None:
    """The look-ups take no CPU per tuple; the source must leave their device to their timers."""
    operators = [Operator("src", ipt=1e4, rate=1e4), Operator("ask", constant=2500, max_rate=4e3)]
    graph = StreamGraph.of("pipe", operators, [Stream("src", "ask")])
    problem = Problem(graph, Cluster.uniform(2))
    assert best_of_all(problem) == pytest.approx(0.4)
    result = PLACERS["exact"].place(problem, THROUGHPUT, seed=1, budget=Budget(None, 20_000))
    assert result.value == pytest.approx(0.4)
    assert result.bound == pytest.approx(0.4)


def test_coarse_levels_keep_the_limit_of_each_operator() -> None:
    """Thousands of operators in groups; the one that waits limits, and the others do not."""
    n = 600
    operators = [
        Operator(f"v{i}", ipt=100, payload=1, rate=1e3 * (i == 0), max_rate=500.0 * (i == n // 2))
        for i in range(n)
    ]
    streams = [Stream(f"v{i}", f"v{i + 1}") for i in range(n - 1)]
    problem = Problem(StreamGraph.of("long", operators, streams), Cluster.uniform(4))
    result = PLACERS["anneal"].place(problem, THROUGHPUT, seed=1, budget=Budget(None, 20_000))
    assert result.value == pytest.approx(0.5)
