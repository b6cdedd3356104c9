"""Jumping over ticks that repeat."""

from typing import Any

import numpy as np
import pytest
from engine_cases import SHAPES, branched, chain, mixed_placements, random_dag, random_placements
from hypothesis import given
from hypothesis import strategies as st
from streamsim.engine import Burst, Ramp, Settings, simulate, simulate_every_tick
from streamsim.engine.runs import Runs


def assert_same(jumped: Runs, full: Runs) -> None:
    """All fields but the one that tells from when on ticks repeat."""
    for name in jumped._fields[:6]:
        assert getattr(jumped, name) == pytest.approx(getattr(full, name), rel=1e-11, abs=1e-9), (
            name
        )


@pytest.mark.parametrize("shape", SHAPES[::3])
@pytest.mark.parametrize("rate", [1e4, 2e4])
def test_jumping_equals_the_full_run_on_benchmark_graphs(
    shape: tuple[int, int], rate: float
) -> None:
    rng = np.random.default_rng(8)
    instance = branched(rng, shape, rate)
    placements = mixed_placements(rng, instance, 20)
    how = Settings(capacity=2 * rate * 0.1)
    jumped = simulate(instance, placements, how)
    assert_same(jumped, simulate_every_tick(instance, placements, how))


@given(
    st.integers(0, 10_000),
    st.integers(1, 3),
    st.floats(5, 100),
    st.sampled_from([0.0, 0.25]),
    st.sampled_from([{}, {0: Ramp(2.0)}, {0: Burst(1.0, 0.5)}, {0: Burst(1.0, 0.5, 3.0, 0.2)}]),
)
def test_jumping_equals_the_full_run_on_random_graphs(
    seed: Any, iterations: Any, capacity: Any, delay: Any, generators: Any
) -> None:
    """With slices, latency, ramps and bursts as well."""
    rng = np.random.default_rng(seed)
    instance = random_dag(rng, n=7, latency=np.full((3, 3), delay))
    placements = random_placements(rng, instance, 5)
    how = Settings(20.0, 0.1, iterations, capacity, warm_up=5.0, generators=generators)
    assert_same(simulate(instance, placements, how), simulate_every_tick(instance, placements, how))


def test_a_growing_backlog_does_not_hide_that_ticks_repeat() -> None:
    """A source that can admit half of its rate repeats once the queue is full."""
    instance = chain(0, 2e-2)
    runs = simulate(instance, [[0, 0]], Settings(capacity=20))
    assert 0.4 <= runs.repeats_from[0] <= 1
    assert runs.backlog == pytest.approx([1500 - 20], abs=6)


def test_a_shrinking_backlog_is_simulated() -> None:
    """After a burst the backlog drains; nothing repeats before it is gone."""
    instance = chain(8e-3, 0)
    how = Settings(duration=30, warm_up=0, generators={0: Burst(on=2, off=28, high=2, low=0.5)})
    runs = simulate(instance, [[0, 0]], how)
    assert runs.backlog == pytest.approx([0], abs=1e-6)
    assert runs.repeats_from[0] >= 4
