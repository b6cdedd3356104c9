"""Limits of what one subtask takes in, whatever CPU it has."""

from typing import Any

import numpy as np
import pytest
from engine_cases import mixed_placements, random_dag, source_and_sink
from hypothesis import given
from streamsim import Instance, bottleneck, resource_loads, throughput
from streamsim.engine import Settings, simulate
from streamsim.steady import is_plain
from streamsim_strategies import Description, Ints, placed


def pair(max_rate: list[float] | None, **changes: Any) -> Instance:
    """A source of 100 tuples/s and a sink; each needs 0.4 of a core per second."""
    return source_and_sink(**{"max_rate": max_rate, **changes})


@pytest.mark.parametrize("cores", [[1, 1], [4, 4]])
@pytest.mark.parametrize("subtasks", [1, 2, 3, 4])
def test_so_many_subtasks_carry_so_many_times_the_limit(subtasks: int, cores: list[int]) -> None:
    instance = pair([np.inf, 25.0], parallelism=[1, subtasks], cores=cores)
    assert throughput(instance, [[0, 1]])[0] == pytest.approx(subtasks * 25 / 100)
    top = bottleneck(resource_loads(instance, [0, 1]))
    if subtasks < 4:
        assert (top.kind, top.device, top.load) == ("core", 1, pytest.approx(4 / subtasks))


def test_a_source_emits_no_more_than_its_limit() -> None:
    assert throughput(pair([20.0, np.inf]), [[0, 1]])[0] == pytest.approx(0.2)


def test_a_limit_takes_nothing_from_other_operators_of_the_device() -> None:
    """The sink waits; the source has the rest of the device, and other sources as well."""
    instance = pair([np.inf, np.inf, 20.0], rate=[100, 0, 100], seconds=[[4e-3], [4e-3], [0.0]])
    assert throughput(instance, [[0, 0, 0]])[0] == pytest.approx((100 + 20) / 200)


def test_a_limit_holds_beside_constant_loads_and_does_not_add_up_with_them() -> None:
    """Half of the core is left, in which 125 tuples/s fit; the subtask reads 50."""
    constant = [[0.0], [0.5]]
    assert throughput(pair([np.inf, 50.0], constant=constant), [[0, 1]])[0] == pytest.approx(0.5)
    assert throughput(pair([np.inf, 200.0], constant=constant), [[0, 1]])[0] == 1.0
    busy = pair([np.inf, 200.0], constant=constant, seconds=[[0.0], [1e-2]])
    assert throughput(busy, [[0, 1]])[0] == pytest.approx(0.5)


def test_a_limit_holds_where_a_constant_load_fills_the_core() -> None:
    """A subtask that only waits needs nothing of the core, and reads no more than its limit."""
    waiting: dict[str, Any] = {"constant": [[0.0], [1.0]], "seconds": [[4e-3], [0.0]]}
    assert throughput(pair([np.inf, 50.0], **waiting), [[0, 1]])[0] == pytest.approx(0.5)
    assert throughput(pair([np.inf, 200.0], **waiting), [[0, 1]])[0] == 1.0
    overfull: dict[str, Any] = waiting | {"constant": [[0.0], [1.5]]}
    assert throughput(pair([np.inf, 200.0], **overfull), [[0, 1]])[0] == 0.0


def test_a_source_at_its_limit_beside_a_constant_load_leaves_the_others_alone() -> None:
    """It emits 20 of 100 tuples/s; a half of both cores is free, and the others need 0.4 of it."""
    changes: dict[str, Any] = {"rate": [100, 0, 100], "seconds": [[4e-3], [4e-3], [0.0]]}
    changes |= {"constant": [[0.0], [0.0], [1.0]], "cores": [2, 2]}
    instance = pair([np.inf, np.inf, 20.0], **changes)
    assert throughput(instance, [[0, 0, 0]])[0] == pytest.approx((100 + 20) / 200)


def test_the_short_kernel_is_not_used_where_a_subtask_may_limit() -> None:
    assert is_plain(pair(None))
    assert is_plain(pair([np.inf, np.inf]))
    assert not is_plain(pair([np.inf, 50.0]))


@given(placed(count=2, max_sources=4))
def test_limits_of_nobody_change_no_bit(case: tuple[Description, Ints]) -> None:
    problem, batch = case
    free = problem.but(max_rate=[np.inf] * problem.n_operators).instance
    assert len(free.max_rate) == 0
    assert throughput(free, batch).tobytes() == throughput(problem.instance, batch).tobytes()


@pytest.mark.parametrize("seed", range(6))
def test_queues_end_where_the_closed_form_says(seed: int) -> None:
    """Subtasks that wait leave the CPU to the other operators of their device."""
    rng = np.random.default_rng(seed)
    cores = np.full(3, float(rng.choice([1, 2])))
    limits = rng.choice([20.0, 60.0, np.inf], 8)
    constant = rng.choice([0.0, 0.0, 0.1], (8, 1))
    instance = random_dag(
        rng,
        8,
        cores=cores,
        constant=constant,
        max_rate=limits,
        parallelism=rng.integers(1, 3, 8),
    )
    placements = mixed_placements(rng, instance, 8)
    runs = simulate(instance, placements, Settings(duration=60, dt=0.02, warm_up=30))
    assert runs.relative == pytest.approx(throughput(instance, placements), abs=0.01)


def test_queues_show_a_source_and_a_window_at_their_limits() -> None:
    for limits in ([20.0, np.inf], [np.inf, 20.0]):
        for windows in ((), ((1, 1.0, 0.5, 0.0, 0.5, np.inf),)):
            instance = pair(limits, windows=windows)
            runs = simulate(instance, [[0, 0]], Settings(duration=30, dt=0.02, warm_up=15))
            assert runs.admitted[0] == pytest.approx(20.0, rel=0.01)
            assert runs.device_utilisation[0, 0] == pytest.approx(0.16, rel=0.02)
