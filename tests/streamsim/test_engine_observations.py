"""Latency, queues and settling."""

import numpy as np
import pytest
from engine_cases import branched, chain, mixed_placements
from streamsim.engine import Burst, Settings, observe, simulate, trace


def test_observing_measures_the_same_runs() -> None:
    rng = np.random.default_rng(0)
    instance = branched(rng, (3, 4), 1e4)
    placements = mixed_placements(rng, instance, 6)
    seen, runs = observe(instance, placements).runs, simulate(instance, placements)
    for a, b in zip(seen[:6], runs[:6], strict=True):
        assert a == pytest.approx(b, rel=1e-9, abs=1e-6)


def test_tuples_that_wait_nowhere_have_no_latency() -> None:
    """Within a slice; a hop costs a tick."""
    seen = observe(chain(1e-3, 1e-3, 1e-3, devices=3), [[0, 0, 0], [0, 1, 2]])
    assert seen.latency == pytest.approx([0, 0.2])
    assert seen.latency_quantiles == pytest.approx(np.array([[0] * 3, [0.2] * 3]))


def test_a_full_queue_delays_by_its_length_over_its_rate() -> None:
    """Little's law: what is admitted waits (20 to 22.5) / 50 per second behind a full queue."""
    seen = observe(chain(0, 2e-2), [[0, 0]], Settings(capacity=20))
    assert seen.processing == pytest.approx([seen.mean_queue[0, 0] / 50], abs=0.1)


def test_the_source_backlog_is_first_in_first_out() -> None:
    """At half the rate, what is admitted after t seconds was generated after t / 2."""
    run = trace(chain(0, 2e-2), [0, 0], Settings(duration=60, warm_up=0, capacity=10))
    assert run.latency[-1] == pytest.approx(30, abs=0.3)
    seen = observe(chain(0, 2e-2), [[0, 0]], Settings(duration=60, warm_up=20, capacity=10))
    assert seen.latency == pytest.approx([20], abs=0.2)
    assert seen.latency_quantiles[0] == pytest.approx([20, 29, 29.8], abs=0.3)
    assert seen.processing < 0.3


def test_a_burst_shows_in_the_upper_quantiles_alone() -> None:
    """A tenth of the tuples come at ten times what the source can take."""
    burst = Burst(on=0.1, off=9.9, high=25, low=0.5)
    seen = observe(chain(1e-2, 0, rate=50), [[0, 0]], Settings(duration=40, generators={0: burst}))
    p50, p95, p99 = seen.latency_quantiles[0]
    assert p50 < 0.2 < p95 <= p99 < 1.5


def test_queues_are_reported_in_the_callers_order() -> None:
    """Streams given against the direction of flow."""
    instance = chain(0, 0, 2e-2)
    flipped = chain(0, 0, 2e-2)._replace(stream_index=np.array([1, 0], np.int32))
    settings = Settings(capacity=20)
    ahead, back = (observe(i, [[0, 0, 0]], settings) for i in (instance, flipped))
    assert ahead.max_queue[0, 0] > ahead.max_queue[0, 1] > 15
    assert back.max_queue[0].tolist() == ahead.max_queue[0, ::-1].tolist()


def test_settling_is_detected_not_assumed() -> None:
    """A pipeline that fills for seconds settles then; one that pulses never does."""
    settings = Settings(duration=40, capacity=400)
    slow = chain(0, 0, 1.25e-2, payload=[0, 0])
    seen = observe(slow, [[0, 0, 0]], settings)
    assert seen.settled[0] <= 1
    filling = chain(2e-3, 9e-3, 1e-3, rate=100)
    assert observe(filling, [[0, 0, 0]], settings).settled[0] > 2
    pulsing = Settings(duration=40, generators={0: Burst(on=2, off=2)})
    assert np.isnan(observe(chain(0, 0), [[0, 0]], pulsing).settled[0])


def test_nothing_that_arrives_has_no_latency() -> None:
    """A sink behind a window-long silence reports nan, not zero."""
    instance = chain(0, 0, devices=2, latency=np.full((2, 2), 100.0))
    seen = observe(instance, [[0, 1]], Settings(duration=3, capacity=1e6))
    assert np.isnan(seen.latency[0])
    assert seen.runs.throughput[0] == 0
