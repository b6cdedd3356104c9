"""Placers beside constant loads: none is better than exact, and exact is what all tries say."""

import itertools

import numpy as np
import pytest
from streamsim import throughput

from streamplace.model import Cluster, Device, Operator, Problem, Stream, StreamGraph
from streamplace.model.level import finest_level, least_peak, least_times
from streamplace.objectives.conditions import subject_to
from streamplace.objectives.registry import OBJECTIVES, Condition
from streamplace.placers.anneal.min_devices import least_devices
from streamplace.placers.registry import PLACERS, Budget

THROUGHPUT = OBJECTIVES["throughput"]


def drawn(seed: int, sources: int = 1) -> Problem:
    """A few operators on two or three unlike devices; every other one uses CPU at any rate."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(sources + 2, 6)), int(rng.integers(2, 4))
    operators = [
        Operator(
            f"v{i}",
            ipt=float(rng.integers(1, 20)) * 1e4,
            payload=float(rng.integers(200)),
            rate=1e4 if i < sources else 0.0,
            parallelism=int(rng.choice([1, 2])),
            constant=float(rng.choice([0, 0, 100, 500, 1500])),
        )
        for i in range(n)
    ]
    streams = [Stream(f"v{rng.integers(v)}", f"v{v}") for v in range(sources, n)]
    devices = [
        Device(f"d{i}", mips=float(rng.choice([1000, 2500])), cores=int(rng.choice([1, 2])))
        for i in range(d)
    ]
    bandwidth, overhead = float(rng.choice([1e7, 1e9])), float(rng.choice([0.0, 1e-6]))
    cluster = Cluster.of(devices, bandwidth=bandwidth, overhead=overhead)
    return Problem(StreamGraph.of("drawn", operators, streams), cluster)


def best_of_all(problem: Problem) -> float:
    """Highest throughput of all placements."""
    every = itertools.product(range(problem.n_devices), repeat=problem.n_operators)
    return float(throughput(problem.instance, np.array(list(every), np.int32)).max())


@pytest.mark.parametrize("sources", [1, 2])
@pytest.mark.parametrize("seed", range(12))
def test_exact_finds_and_proves_the_best_of_all_placements(seed: int, sources: int) -> None:
    problem = drawn(seed, sources)
    result = PLACERS["exact"].place(problem, THROUGHPUT, seed=1, budget=Budget(None, 200_000))
    best = best_of_all(problem)
    assert result.value == pytest.approx(best, rel=1e-9)
    assert result.bound == pytest.approx(best, rel=1e-7)


@pytest.mark.parametrize("seed", range(12))
def test_anneal_is_close_and_its_bound_is_none_that_a_placement_exceeds(seed: int) -> None:
    problem = drawn(seed)
    result = PLACERS["anneal"].place(problem, THROUGHPUT, seed=1, budget=Budget(None, 60_000))
    best = best_of_all(problem)
    assert 0.85 * best <= result.value <= best * (1 + 1e-9)
    assert result.bound is not None
    assert result.bound >= best * (1 - 1e-9)
    assert THROUGHPUT.bound(problem) is None or THROUGHPUT.bound(problem) >= best * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_the_full_rates_must_be_divided_by_no_less(seed: int) -> None:
    problem = drawn(seed)
    times = least_times(problem)
    best = best_of_all(problem)
    assert 1 / times >= best * (1 - 1e-9)
    assert times >= max(1.0, least_peak(problem, finest_level(problem)))


def test_the_fewest_devices_have_room_for_what_is_used_at_any_rate() -> None:
    """Three operators of 0.4 and 0.5 at any rate: one each on three devices."""
    operators = [Operator(f"v{i}", ipt=1e5, constant=1250, rate=1e4 * (i == 0)) for i in range(3)]
    streams = [Stream("v0", "v1"), Stream("v1", "v2")]
    problem = Problem(StreamGraph.of("chain", operators, streams), Cluster.uniform(5))
    assert least_devices(problem, 1.0) == 3
    judge = subject_to(OBJECTIVES["devices"], [Condition.of("throughput>=1")])
    result = PLACERS["anneal"].place(problem, judge, seed=1, budget=Budget(None, 20_000))
    assert result.value == 3


def test_metis_weighs_what_is_used_at_any_rate() -> None:
    """Four operators; two of them use most of a device before any tuple comes."""
    constants = [0.0, 1800.0, 1800.0, 0.0]
    operators = [
        Operator(f"v{i}", ipt=2e4, constant=mips, rate=1e4 * (i == 0))
        for i, mips in enumerate(constants)
    ]
    streams = [Stream(f"v{i}", f"v{i + 1}") for i in range(3)]
    problem = Problem(StreamGraph.of("chain", operators, streams), Cluster.uniform(2))
    result = PLACERS["metis"].place(problem, THROUGHPUT, seed=1, budget=Budget(None, 100))
    assert result.placement["v1"] != result.placement["v2"]
    assert result.value == 1.0
