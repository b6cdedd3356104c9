"""CPU that operators use at any rate, and limits of what one subtask takes in."""

from functools import partial

import numpy as np
import pytest
from engine_cases import chain, mixed_placements, random_dag
from hypothesis import given
from streamsim import bottleneck, resource_loads, throughput
from streamsim.engine import Settings, simulate
from streamsim_strategies import placed

source_and_sink = partial(chain, 4e-3, 4e-3, devices=2)
"""100 tuples/s; each needs 0.4 of a core per second."""
WAITING = {"constant": [[0.0], [1.0]], "seconds": [[4e-3], [0.0]]}
"""A constant load fills the sink's core, and its tuples cost nothing."""


@pytest.mark.parametrize(
    ("changes", "placement", "expected"),
    [
        ({"constant": [[0.5], [0.5]], "seconds": [[0.0], [0.0]]}, [0, 0], 1.0),
        (WAITING | {"max_rate": [np.inf, 50.0]}, [0, 1], 0.5),
        (WAITING | {"max_rate": [np.inf, 200.0], "constant": [[0.0], [1.5]]}, [0, 1], 0.0),
    ],
    ids=[
        "free tuples on a full device",
        "a subtask that only waits on a full core",
        "an overfull core",
    ],
)
def test_full_devices_carry_what_costs_nothing_and_overfull_ones_nothing(
    changes, placement, expected
):
    """A source of 100 tuples/s and a sink."""
    assert throughput(source_and_sink(**changes), [placement])[0] == pytest.approx(expected)


def test_subtasks_share_a_constant_load_equally_and_each_has_one_core():
    """Two have (1 - 0.3) of a core for 0.4 each."""
    changes = {"constant": [[0.6], [0.0]], "cores": [4, 4], "seconds": [[8e-3], [0.0]]}
    two = source_and_sink(parallelism=[2, 1], **changes)
    uneven = source_and_sink(parallelism=[1.6, 1], subtasks=[2, 1], **changes)
    assert throughput(two, [[0, 0]])[0] == 1.0
    assert resource_loads(two, [0, 0]).cores[0] == pytest.approx(0.7)
    assert resource_loads(uneven, [0, 0]).cores[0] == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("seconds", "device", "load", "use"), [(3e-3, 1, 0.7, 0.7), (4e-3, 0, 0.8, 0.9)]
)
def test_the_fullest_is_full_first(seconds, device, load, use):
    """0.5 + 0.3 · x is full at 5/3 of the rate, 0.5 + 0.4 · x at 5/4, 0.7 · x at 10/7."""
    instance = source_and_sink(constant=[[0.5], [0.0]], seconds=[[seconds], [7e-3]])
    top = bottleneck(resource_loads(instance, [0, 1]))
    assert (top.device, top.load, top.use) == (device, pytest.approx(load), pytest.approx(use))


@pytest.mark.parametrize(
    "nothing",
    [
        lambda problem: {"max_rate": [np.inf] * problem.n_operators},
        lambda problem: {"constant": [[0.0] * len(row) for row in problem.seconds]},
    ],
    ids=["limits", "constant loads"],
)
@given(case=placed(count=2, max_sources=4))
def test_limits_and_constant_loads_of_nothing_change_no_bit(nothing, case):
    problem, batch = case
    plain, free = problem.instance, problem.but(**nothing(problem)).instance
    assert (len(free.max_rate), len(free.constant)) == (0, 0)
    assert throughput(plain, batch).tobytes() == throughput(free, batch).tobytes()
    for a, b in zip(resource_loads(plain, batch[0]), resource_loads(free, batch[0]), strict=True):
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("limits", [[np.inf], [20.0, 60.0, np.inf]], ids=["constants", "both"])
@pytest.mark.parametrize("seed", range(6))
def test_queues_end_where_the_closed_form_says(seed, limits):
    """Constant loads come first, and count as utilisation; subtasks that wait leave their CPU."""
    rng = np.random.default_rng(seed)
    cores = np.full(3, float(rng.choice([1, 2])))
    constant = rng.choice([0.0, 0.0, 0.1, 0.3], (8, 1)) / len(limits)
    most = rng.choice(limits, 8)
    subtasks = rng.integers(1, 3, 8)
    costs = {"cores": cores, "constant": constant, "max_rate": most, "parallelism": subtasks}
    instance = random_dag(rng, 8, **costs)
    placements = mixed_placements(rng, instance, 8)
    runs = simulate(instance, placements, Settings(duration=60, dt=0.02, warm_up=30))
    assert runs.relative == pytest.approx(throughput(instance, placements), abs=0.01)
    for row, place, x in zip(runs.device_utilisation, placements, runs.relative, strict=True):
        loads = resource_loads(instance, place)
        used = np.minimum(x * (loads.devices - loads.constants) + loads.constants, 1.0)
        assert row == pytest.approx(used, abs=0.02)


def test_queues_show_a_source_and_a_window_at_their_limits():
    for limits in ([20.0, np.inf], [np.inf, 20.0]):
        for windows in ((), ((1, 1.0, 0.5, 0.0, 0.5, np.inf),)):
            instance = source_and_sink(max_rate=limits, windows=windows)
            runs = simulate(instance, [[0, 0]], Settings(duration=30, dt=0.02, warm_up=15))
            assert runs.admitted[0] == pytest.approx(20.0, rel=0.01)
            assert runs.device_utilisation[0, 0] == pytest.approx(0.16, rel=0.02)


def test_queues_move_nothing_on_a_device_that_is_taken():
    for seconds in ([[4e-3], [4e-3]], [[0.0], [0.0]]):
        instance = source_and_sink(constant=[[1.5], [0.0]], seconds=seconds)
        runs = simulate(instance, [[0, 1]], Settings(duration=10, dt=0.02, warm_up=5))
        assert runs.relative[0] == 0.0
        assert runs.device_utilisation[0, 0] == pytest.approx(1.0)
