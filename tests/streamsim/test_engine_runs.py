"""Runs: their settings, jumping over ticks that repeat, and what is observed of them."""

import numpy as np
import pytest
from engine_cases import chain, mixed_placements, random_dag, random_placements
from hypothesis import given
from hypothesis import strategies as st
from streamsim.engine import (
    Burst,
    GivenSettings,
    Ramp,
    Settings,
    observe,
    simulate,
    simulate_every_tick,
    trace,
)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"duration": -1}, "duration is -1"),
        ({"duration": 30.05}, "30.05"),
        ({"iterations": 1.5}, "iterations is 1.5"),
        ({"capacity": 0}, "capacity is 0"),
        ({"policy": "fair"}, "policy is 'fair'"),
        ({"warm_up": 30}, "warm_up"),
        ({"weights": (1.0, -1.0)}, "weights are"),
    ],
)
def test_impossible_settings_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        Settings(**wrong)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: simulate(chain(0, 0), [0, 0]), "shape"),
        (lambda: simulate(chain(0, 0), [[0]]), "shape"),
        (lambda: simulate(chain(0, 0), [[0.5, 0.0]]), "float64"),
        (lambda: simulate(chain(0, 0), [[0, 1]]), "device 1"),
        (lambda: simulate(chain(0, 0), [[-1, 0]]), "device -1"),
        (lambda: simulate(chain(0, 0, rate=0.0), [[0, 0]]), "rate"),
        (lambda: simulate(chain(0, 0), [[0, 0]], Settings(weights=(1.0,))), "1 weights"),
        (lambda: GivenSettings(random="foo"), "random is 'foo'"),
    ],
)
def test_impossible_runs_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_an_empty_batch_is_an_empty_answer():
    runs = simulate(chain(0, 0), np.zeros((0, 2), int))
    assert runs.relative.shape == (0,)
    assert runs.device_utilisation.shape == (0, 1)


def test_queues_without_a_bound_are_possible():
    runs = simulate(chain(0, 2e-2), [[0, 0]], Settings(capacity=float("inf")))
    assert runs.admitted == pytest.approx([100])
    assert runs.throughput == pytest.approx([50])


def assert_same(jumped, full):
    """All fields but the one that tells from when on ticks repeat."""
    for name in jumped._fields[:6]:
        assert getattr(jumped, name) == pytest.approx(getattr(full, name), rel=1e-11, abs=1e-9), (
            name
        )


@given(
    st.integers(0, 10_000),
    st.integers(1, 3),
    st.floats(5, 100),
    st.sampled_from([0.0, 0.25]),
    st.sampled_from([{}, {0: Ramp(2.0)}, {0: Burst(1.0, 0.5)}, {0: Burst(1.0, 0.5, 3.0, 0.2)}]),
)
def test_jumping_equals_the_full_run_on_random_graphs(
    seed, iterations, capacity, delay, generators
):
    rng = np.random.default_rng(seed)
    instance = random_dag(rng, n=7, latency=np.full((3, 3), delay))
    placements = random_placements(rng, instance, 5)
    how = Settings(20.0, 0.1, iterations, capacity, warm_up=5.0, generators=generators)
    assert_same(simulate(instance, placements, how), simulate_every_tick(instance, placements, how))


def test_a_growing_backlog_does_not_hide_that_ticks_repeat():
    """A source that can admit half of its rate repeats once the queue is full."""
    instance = chain(0, 2e-2)
    runs = simulate(instance, [[0, 0]], Settings(capacity=20))
    assert 0.4 <= runs.repeats_from[0] <= 1
    assert runs.backlog == pytest.approx([1500 - 20], abs=6)


def test_a_shrinking_backlog_is_simulated():
    """After a burst the backlog drains; nothing repeats before it is gone."""
    instance = chain(8e-3, 0)
    how = Settings(duration=30, warm_up=0, generators={0: Burst(on=2, off=28, high=2, low=0.5)})
    runs = simulate(instance, [[0, 0]], how)
    assert runs.backlog == pytest.approx([0], abs=1e-6)
    assert runs.repeats_from[0] >= 4


def test_observing_measures_the_same_runs():
    rng = np.random.default_rng(0)
    instance = random_dag(rng, 14)
    placements = mixed_placements(rng, instance, 6)
    result, runs = observe(instance, placements).runs, simulate(instance, placements)
    for a, b in zip(result[:6], runs[:6], strict=True):
        assert a == pytest.approx(b, rel=1e-9, abs=1e-6)


def test_tuples_that_wait_nowhere_have_no_latency():
    result = observe(chain(1e-3, 1e-3, 1e-3, devices=3), [[0, 0, 0], [0, 1, 2]])
    assert result.latency == pytest.approx([0, 0.2])
    assert result.latency_quantiles == pytest.approx(np.array([[0] * 3, [0.2] * 3]))


def test_a_full_queue_delays_by_its_length_over_its_rate():
    """Little's law: what is admitted waits (20 to 22.5) / 50 per second behind a full queue."""
    result = observe(chain(0, 2e-2), [[0, 0]], Settings(capacity=20))
    assert result.processing == pytest.approx([result.mean_queue[0, 0] / 50], abs=0.1)


def test_the_source_backlog_is_first_in_first_out():
    """At half the rate, what is admitted after t seconds was generated after t / 2."""
    run = trace(chain(0, 2e-2), [0, 0], Settings(duration=60, warm_up=0, capacity=10))
    assert run.latency[-1] == pytest.approx(30, abs=0.3)
    result = observe(chain(0, 2e-2), [[0, 0]], Settings(duration=60, warm_up=20, capacity=10))
    assert result.latency == pytest.approx([20], abs=0.2)
    assert result.latency_quantiles[0] == pytest.approx([20, 29, 29.8], abs=0.3)
    assert result.processing < 0.3


def test_a_burst_shows_in_the_upper_quantiles_alone():
    """A tenth of the tuples come at ten times what the source can take."""
    burst = Burst(on=0.1, off=9.9, high=25, low=0.5)
    result = observe(
        chain(1e-2, 0, rate=50), [[0, 0]], Settings(duration=40, generators={0: burst})
    )
    p50, p95, p99 = result.latency_quantiles[0]
    assert p50 < 0.2 < p95 <= p99 < 1.5


def test_queues_are_reported_in_the_callers_order():
    instance = chain(0, 0, 2e-2)
    flipped = chain(0, 0, 2e-2)._replace(stream_index=np.array([1, 0], np.int32))
    settings = Settings(capacity=20)
    ahead, back = (observe(i, [[0, 0, 0]], settings) for i in (instance, flipped))
    assert ahead.max_queue[0, 0] > ahead.max_queue[0, 1] > 15
    assert back.max_queue[0].tolist() == ahead.max_queue[0, ::-1].tolist()


def test_settling_is_detected_not_assumed():
    """A pipeline that fills for seconds settles then; one that pulses never does."""
    settings = Settings(duration=40, capacity=400)
    slow = chain(0, 0, 1.25e-2, payload=[0, 0])
    result = observe(slow, [[0, 0, 0]], settings)
    assert result.settled[0] <= 1
    filling = chain(2e-3, 9e-3, 1e-3, rate=100)
    assert observe(filling, [[0, 0, 0]], settings).settled[0] > 2
    pulsing = Settings(duration=40, generators={0: Burst(on=2, off=2)})
    assert np.isnan(observe(chain(0, 0), [[0, 0]], pulsing).settled[0])


@pytest.mark.parametrize("latency", [100.0, 3e8])
def test_nothing_that_arrives_has_no_latency(latency):
    """A sink behind a window-long silence reports nan, not zero; 3·10⁹ ticks exceed 32 bits."""
    instance = chain(0, 0, devices=2, latency=np.full((2, 2), latency))
    result = observe(instance, [[0, 1]], Settings(duration=3, capacity=1e6))
    assert np.isnan(result.latency[0])
    assert result.runs.throughput[0] == 0
