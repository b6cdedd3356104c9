"""Known faults of CEPSim, each shown to be absent."""

from typing import Any

import numpy as np
import pytest
from engine_cases import chain
from streamsim import build_instance
from streamsim.engine import Settings, simulate, trace
from streamsim.engine.equivalents import source_equivalents


def joined(rate: Any = 100.0, **more: Any) -> Any:
    """A source whose tuples reach a join on its own device directly and over another device."""
    return build_instance(
        rate=[rate, 0, 0],
        seconds=np.zeros((3, 1)),
        source=[0, 0, 1],
        target=[2, 1, 2],
        device_type=[0, 0],
        seconds_per_byte=np.zeros((2, 2)),
        **more,
    )


def test_operators_with_local_and_remote_inputs_are_scheduled() -> None:
    runs = simulate(joined(), [[0, 1, 0]])
    assert runs.relative == pytest.approx([1])


def test_messages_of_the_same_tick_add_up() -> None:
    instance = build_instance(
        rate=[100, 0, 0, 0],
        seconds=np.zeros((4, 1)),
        source=[0, 0, 1, 2],
        target=[1, 2, 3, 3],
        device_type=[0, 0, 0],
        seconds_per_byte=np.zeros((3, 3)),
    )
    run = trace(instance, [0, 1, 1, 2], Settings(duration=2, warm_up=0))
    assert run.throughput[-1] == pytest.approx(100)
    assert run.transit[-1] == pytest.approx([0, 0, 0, 0])


@pytest.mark.parametrize("placement", [[0, 0, 0], [0, 1, 0], [0, 1, 2]])
@pytest.mark.parametrize("capacity", [3, 30])
def test_space_limits_are_never_stale(placement: Any, capacity: Any) -> None:
    """However much is generated, no queue overruns its capacity in any tick."""
    instance = chain(0, 0, 2e-2, rate=5000, devices=3)
    run = trace(instance, placement, Settings(duration=5, iterations=2, capacity=capacity))
    assert (run.queued + run.transit).max() <= capacity * (1 + 1e-12)


def test_limits_are_never_negative() -> None:
    """With queues full to the brim nothing is taken back, and no total is corrupted."""
    instance = joined(selectivity=[7.3, 0.1, 3.7])
    run = trace(instance, [0, 1, 0], Settings(duration=5, warm_up=0, capacity=1.7))
    assert run.queued.min() >= 0
    assert run.transit.min() >= 0
    assert run.throughput.min() >= 0
    assert np.diff(run.backlog).min() >= -1e-9


def test_source_equivalents_need_one_pass_however_many_paths() -> None:
    """Sixty diamonds in a row have 2⁶⁰ paths."""
    n = 60
    a, b, c, d = (np.arange(n) * 3 + i for i in range(4))
    instance = build_instance(
        rate=[100] + [0] * (3 * n),
        seconds=np.zeros((3 * n + 1, 1)),
        source=np.concatenate((a, a, b, c)),
        target=np.concatenate((b, c, d, d)),
        selectivity=np.repeat([1, 1, 0.5, 0.5], n),
        device_type=[0],
        seconds_per_byte=[[0]],
    )
    assert source_equivalents(instance)[-1] == pytest.approx(1)
    assert simulate(instance, np.zeros((1, 3 * n + 1), int)).relative == pytest.approx([1])
