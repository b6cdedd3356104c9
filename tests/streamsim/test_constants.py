"""Constant loads: CPU that operators use at any rate, which leaves less to their tuples."""

from typing import Any

import numpy as np
import pytest
from engine_cases import mixed_placements, random_dag, source_and_sink
from hypothesis import given
from streamsim import Instance, bottleneck, resource_loads, source_rates, throughput
from streamsim.engine import Settings, simulate
from streamsim_strategies import Description, Ints, placed


def pair(constant: list[list[float]] | None, **changes: Any) -> Instance:
    """A source and a sink; each needs 0.4 of a core per second at its full rate."""
    return source_and_sink(**{"constant": constant, **changes})


@pytest.mark.parametrize(
    ("constant", "expected"), [(0.2, 1.0), (0.6, 0.5), (0.8, 0.25), (1.0, 0.0), (1.5, 0.0)]
)
def test_the_rest_of_the_device_is_for_tuples(constant: float, expected: float) -> None:
    assert throughput(pair([[constant], [0.0]]), [[0, 0]])[0] == pytest.approx(expected)


def test_without_costs_per_tuple_a_full_device_is_enough_and_an_overfull_one_is_not() -> None:
    free = [[0.0], [0.0]]
    assert throughput(pair([[0.5], [0.5]], seconds=free), [[0, 0]])[0] == 1.0
    assert throughput(pair([[0.5], [0.75]], seconds=free), [[0, 0]])[0] == 0.0


def test_subtasks_share_a_constant_load_equally_and_each_has_one_core() -> None:
    """One subtask: (1 - 0.6) of a core for 0.8; two: (1 - 0.3) of a core for 0.4 each."""
    changes: dict[str, Any] = {"cores": [4, 4], "seconds": [[8e-3], [0.0]]}
    alone = pair([[0.6], [0.0]], **changes)
    two = pair([[0.6], [0.0]], parallelism=[2, 1], **changes)
    uneven = pair([[0.6], [0.0]], parallelism=[1.6, 1], subtasks=[2, 1], **changes)
    assert throughput(alone, [[0, 0]])[0] == pytest.approx(0.5)
    assert throughput(two, [[0, 0]])[0] == 1.0
    assert resource_loads(two, [0, 0]).cores[0] == pytest.approx(0.7)
    assert resource_loads(uneven, [0, 0]).cores[0] == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("seconds", "device", "load", "use"), [(3e-3, 1, 0.7, 0.7), (4e-3, 0, 0.8, 0.9)]
)
def test_the_fullest_device_is_the_one_that_is_full_first(
    seconds: float, device: int, load: float, use: float
) -> None:
    """0.5 + 0.3 · x is full at 5/3 of the rate, 0.5 + 0.4 · x at 5/4, 0.7 · x at 10/7."""
    instance = pair([[0.5], [0.0]], seconds=[[seconds], [7e-3]])
    top = bottleneck(resource_loads(instance, [0, 1]))
    assert (top.device, top.load, top.use) == (device, pytest.approx(load), pytest.approx(use))


def test_a_source_whose_device_is_taken_leaves_the_other_source_alone() -> None:
    instance = pair([[1.5], [0.0]], rate=[100, 100], source=[], target=[])
    assert source_rates(instance, [0, 1]).tolist() == [0.0, 1.0]
    shared = pair([[0.6], [0.0]], rate=[100, 100], source=[], target=[])
    assert source_rates(shared, [0, 0]).tolist() == pytest.approx([0.5, 0.5])


@given(placed(count=2, max_sources=6))
def test_constant_loads_of_nothing_change_no_bit(case: tuple[Description, Ints]) -> None:
    problem, batch = case
    none = [[0.0] * len(row) for row in problem.seconds]
    plain, zero = problem.instance, problem.but(constant=none).instance
    assert throughput(plain, batch).tobytes() == throughput(zero, batch).tobytes()
    assert len(zero.constant) == 0
    for a, b in zip(resource_loads(plain, batch[0]), resource_loads(zero, batch[0]), strict=True):
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("seed", range(6))
def test_queues_end_where_the_closed_form_says(seed: int) -> None:
    """Constant loads come first, and count as utilisation."""
    rng = np.random.default_rng(seed)
    cores = np.full(3, float(rng.choice([1, 2])))
    constant = rng.choice([0.0, 0.0, 0.1, 0.3], (8, 1))
    constant[0] = 0.3
    instance = random_dag(rng, 8, cores=cores, constant=constant, parallelism=rng.integers(1, 3, 8))
    placements = mixed_placements(rng, instance, 8)
    runs = simulate(instance, placements, Settings(duration=60, dt=0.02, warm_up=30))
    expected = throughput(instance, placements)
    assert runs.relative == pytest.approx(expected, abs=0.01)
    for row, place, x in zip(runs.device_utilisation, placements, runs.relative, strict=True):
        loads = resource_loads(instance, place)
        growing = loads.devices - loads.constants
        used = np.minimum(x * growing + loads.constants, 1.0)
        assert row == pytest.approx(used, abs=0.02)


def test_queues_move_nothing_on_a_device_that_is_taken() -> None:
    for seconds in ([[4e-3], [4e-3]], [[0.0], [0.0]]):
        instance = pair([[1.5], [0.0]], seconds=seconds)
        runs = simulate(instance, [[0, 1]], Settings(duration=10, dt=0.02, warm_up=5))
        assert runs.relative[0] == 0.0
        assert runs.device_utilisation[0, 0] == pytest.approx(1.0)
