"""Windowed operators."""

import numpy as np
import pytest
from engine_cases import chain
from streamsim import WindowedOperator
from streamsim.engine import Settings, observe, simulate, trace


def windowed(size, advance, base=0.0, factor=1.0, limit=np.inf, sink=0.0, **more):
    """A source of 100 tuples/s, a windowed operator and a sink."""
    window = WindowedOperator(1, size, advance, base, factor, limit)
    return chain(0, 0, sink, windows=(window,), **more)


def emitted(instance, seconds=10.0, **more):
    """Tuples that reach the sink in every tick."""
    run = trace(instance, [0, 0, 0], Settings(duration=seconds, warm_up=0, **more))
    per_second = instance.input_rate[2]
    return run.throughput * 0.1 * per_second / 100


def test_a_tumbling_window_emits_f_of_its_count_once_per_advance():
    """One result per second, the first after the first second."""
    out = emitted(windowed(size=1, advance=1, base=1, factor=0))
    assert np.flatnonzero(out).tolist() == [10, 20, 30, 40, 50, 60, 70, 80, 90]
    assert out[out > 0] == pytest.approx(1)


def test_a_sliding_window_counts_each_tuple_once_per_pane():
    """Size 2 s, advance 0.5 s: f sees 200 tuples, twice a second."""
    out = emitted(windowed(size=2, advance=0.5, factor=0.1))
    assert out[[5, 10, 15, 20, 25]] == pytest.approx([5, 10, 15, 20, 20])


def test_the_limit_of_f_holds():
    out = emitted(windowed(size=1, advance=1, base=5, factor=1, limit=30))
    assert out[10] == pytest.approx(30)


def test_the_mean_emission_is_the_full_rate_of_the_instance():
    instance = windowed(size=0.5, advance=0.25, base=2, factor=0.3)
    out = emitted(instance, seconds=60)[200:]
    assert out.sum() / 40 == pytest.approx(instance.output_rate[1], rel=0.02)


def test_results_wait_for_room_and_then_hold_up_the_input():
    """Results of 100 tuples into a queue of 20 that drains at 50/s: half of the rate, none lost."""
    instance = windowed(size=1, advance=1, sink=2e-2)
    settings = Settings(duration=60, warm_up=20, capacity=20)
    runs = simulate(instance, [[0, 0, 0]], settings)
    assert runs.relative == pytest.approx([0.5], abs=0.02)
    run = trace(instance, [0, 0, 0], settings)
    assert run.queued.max() <= 20


def test_sending_results_costs_overhead_when_they_are_sent():
    """A remote stream out of a window is paid for per result, at both ends."""
    instance = windowed(size=1, advance=1, factor=0.1, overhead=0.01, devices=2)
    runs = simulate(instance, [[0, 0, 1]], Settings(duration=31, warm_up=1))
    assert runs.device_utilisation[0] == pytest.approx([0.1, 0.1], rel=0.05)


def test_waiting_in_a_window_is_latency():
    """Tuples of a tumbling window of 1 s wait half a second in the mean."""
    seen = observe(windowed(size=1, advance=1), [[0, 0, 0]])
    assert seen.latency == pytest.approx([0.55])


def test_a_window_cannot_advance_within_a_slice():
    with pytest.raises(ValueError, match=r"0\.05 s.*iterations"):
        simulate(windowed(size=1, advance=0.05), [[0, 0, 0]])
    assert simulate(windowed(1, 0.05), [[0, 0, 0]], Settings(iterations=2)).relative > 0.9
