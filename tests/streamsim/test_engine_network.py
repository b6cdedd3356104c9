"""Links, NICs, latency and LogP."""

import numpy as np
import pytest
from engine_cases import chain
from streamsim import build_instance
from streamsim.engine import Settings, observe, simulate, trace
from streamsim.engine.runs import source_equivalents


def pair(**more):
    """A source on one device that feeds a sink on another with 100 tuples/s; CPU is free."""
    return chain(0, 0, **({"devices": 2} | more))


def fan(payloads, devices=2, **more):
    """A source that feeds one sink per payload; each stream has a tuple per source tuple."""
    k = len(payloads)
    return build_instance(
        rate=[100] + [0] * k,
        seconds=np.zeros((k + 1, 1)),
        source=[0] * k,
        target=range(1, k + 1),
        payload=payloads,
        device_type=[0] * devices,
        **({"seconds_per_byte": np.full((devices, devices), 1e-6)} | more),
    )


@pytest.mark.parametrize("delay", [0.0, 0.05, 0.1, 0.25])
def test_a_hop_takes_a_tick_and_its_latency_in_whole_ticks(delay):
    """The first tuples arrive with the first tick that starts after transfer and latency."""
    instance = pair(latency=np.full((2, 2), delay))
    run = trace(instance, [0, 1], Settings(duration=2, warm_up=0))
    ticks = 1 + np.ceil(delay / 0.1 - 1e-9)
    assert np.flatnonzero(run.throughput)[0] == ticks
    assert observe(instance, [[0, 1]]).latency == pytest.approx([ticks * 0.1])


def test_streams_share_a_link_fairly_and_use_all_of_it():
    """Max-min: of 0.1 s, 10 tuples of 2 kB and of 4 kB take 0.06 s; 2 of 20 kB the rest."""
    run = trace(fan([2_000, 4_000, 20_000]), [0, 1, 1, 1], Settings(duration=1, warm_up=0))
    assert run.queued[0] == pytest.approx([10, 10, 2])
    assert run.link_utilisation[:, 0, 1] == pytest.approx(1)
    equal = Settings(duration=1, warm_up=0, capacity=1e9)
    run = trace(fan([20_000] * 3), [0, 1, 1, 1], equal)
    assert run.transit[-1] == pytest.approx([100 - 50 / 3] * 3)


def test_a_nic_leaves_to_one_stream_what_the_other_cannot_use():
    """One link carries a quarter of what the NIC can send; the other gets the rest."""
    slow = np.array([[0, 4e-6, 1e-6], [0, 0, 0], [0, 0, 0]])
    instance = fan([20_000, 20_000], devices=3, seconds_per_byte=slow, egress=[1e-6, 0, 0])
    run = trace(instance, [0, 1, 2], Settings(duration=1, warm_up=0, capacity=1e9))
    sent = 100 - run.transit[-1]
    assert sent == pytest.approx([10, 40], rel=0.3)
    assert sent.sum() == pytest.approx(50)


def test_what_is_in_flight_counts_towards_the_capacity():
    """A capacity of 50 tuples, with 1 s under way and a tick at either end: 50 per 1.2 s."""
    instance = pair(latency=np.full((2, 2), 1.0))
    runs = simulate(instance, [[0, 1]], Settings(duration=84, warm_up=24, capacity=50))
    assert runs.relative == pytest.approx([50 / 1.2 / 100], abs=0.01)


def test_source_equivalents_need_one_pass_however_many_paths():
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
