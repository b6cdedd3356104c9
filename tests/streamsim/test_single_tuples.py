"""Times of single tuples against closed forms: an empty system, M/D/1, M/M/1, M/M/c, and chains."""

import numpy as np
import pytest
from engine_cases import chain
from streamsim import WindowedOperator, build_instance
from streamsim.engine import Settings, mean_service, tuple_times
from streamsim.latency import latencies

LOADS = (0.5, 0.8, 0.95)


def in_a_row(*seconds, rate=1.0, **more):
    """A source that costs nothing, and operators with these seconds, each on its own device."""
    return chain(0, *seconds, rate=rate, devices=len(seconds) + 1, **more)


def mean(instance, placement=None, **how):
    """Mean seconds since generation."""
    place = np.arange(instance.n_operators) if placement is None else np.array(placement)
    policy = how.pop("policy", "dynamic")
    found = tuple_times(instance, place.astype(np.int32), Settings(policy=policy), **how)
    return float(np.average(found[0], weights=found[2]))


def test_alone_a_tuple_takes_the_seconds_of_the_latency():
    """Processing, links, network cards, latency, and handling at both ends."""
    instance = build_instance(
        rate=[0.1, 0, 0, 0], seconds=[[0.1], [0.5], [0.2], [0.3]], source=[0, 1, 2],
        target=[1, 2, 3], payload=[1e3, 2e3, 5e2], device_type=[0, 0, 0],
        seconds_per_byte=1e-4 * (1 - np.eye(3)), latency=0.02 * (1 - np.eye(3)),
        egress=[2e-4, 0, 0], ingress=[0, 0, 3e-4], overhead=0.01, overhead_per_byte=1e-5, gap=0.003,
    )  # fmt: skip
    for placement in ([0, 0, 0, 0], [0, 1, 1, 1], [0, 1, 2, 0]):
        alone = latencies(instance, [placement])[0]
        assert mean(instance, placement) == pytest.approx(alone, rel=1e-9)
        assert mean_service(instance, np.array(placement)) == pytest.approx(1.1)


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("random", ["nothing", "arrivals", "all"])
def test_a_queue_and_a_chain_take_the_seconds_of_their_closed_forms(load, random):
    """D/D/1, M/D/1 and M/M/1; a chain of two takes the sum, by Burke's theorem.

    With equal constant times of service, tuples leave the first queue as far apart as the second
    takes for each, and wait there for none.
    """
    alone = {
        "nothing": load,
        "arrivals": load + load**2 / (2 * (1 - load)),
        "all": load / (1 - load),
    }[random]
    second = alone if random == "all" else load
    assert mean(in_a_row(load), random=random) == pytest.approx(alone, rel=0.05)
    chain = mean(in_a_row(load, load), random=random)
    assert chain == pytest.approx(alone + second, rel=0.05)


@pytest.mark.parametrize("load", LOADS)
def test_operators_of_one_device_wait_for_one_another(load):
    """M/M/1 of both visits in one queue: 2 s / (1 - ρ)."""
    instance = in_a_row(load / 2, load / 2)
    found = mean(instance, [0, 0, 0], random="all")
    assert found == pytest.approx(load / (1 - load), rel=0.05)


def test_cores_are_a_queue_of_several_servers():
    """M/M/2: s / (1 - ρ²). A subtask alone stays M/M/1, and so does a fixed share of one core."""
    two = in_a_row(1.6, cores=[2, 2], parallelism=[1, 2])
    assert mean(two, random="all") == pytest.approx(1.6 / (1 - 0.8**2), rel=0.05)
    one = in_a_row(0.8, cores=[4, 4], parallelism=[1, 1])
    assert mean(one, random="all") == pytest.approx(0.8 / 0.2, rel=0.05)
    shared = in_a_row(0.8, cores=[2, 2])
    assert mean(shared, [0, 0], policy="uniform", random="all") == pytest.approx(4, rel=0.05)


def test_a_link_is_a_queue_of_constant_times():
    link = in_a_row(0, payload=[0.8], seconds_per_byte=1 - np.eye(2))
    assert mean(link, random="arrivals") == pytest.approx(0.8 + 0.64 / 0.4, rel=0.05)


def test_selectivity_thins_out_tuples_and_multiplies_them():
    """Every fourth tuple costs a second; of four at once, the last waits for three."""
    assert mean(in_a_row(1, selectivity=[0.25])) == pytest.approx(1)
    assert mean(in_a_row(0.1, selectivity=[4])) == pytest.approx(0.1 * (1 + 2 + 3 + 4) / 4)


def test_a_join_waits_for_its_last_input():
    instance = build_instance(
        rate=[1, 0, 0, 0], seconds=[[0], [0.1], [0.7], [0]], source=[0, 0, 1, 2],
        target=[1, 2, 3, 3], joins=[0, 0, 0, 1], device_type=[0] * 4,
        seconds_per_byte=np.zeros((4, 4)),
    )  # fmt: skip
    assert mean(instance) == pytest.approx(0.7)


def test_a_window_holds_a_tuple_for_half_of_its_size():
    window = WindowedOperator(1, 8.0, 2.0, 0.0, 1.0, np.inf)
    instance = in_a_row(0, 0, rate=100.0, windows=(window,))
    assert mean(instance) == pytest.approx(4, rel=0.05)


def test_nothing_is_told_where_queues_grow():
    place = np.array([0, 1], np.int32)
    assert tuple_times(in_a_row(1.2), place, Settings()) is None


def test_equal_seeds_give_equal_times():
    instance, place = in_a_row(0.5), np.array([0, 1], np.int32)
    one, two, other = (
        tuple_times(instance, place, Settings(), "all", seed=seed, duration=1e4)[0]
        for seed in (1, 1, 2)
    )
    assert np.array_equal(one, two)
    assert not np.array_equal(one[:9], other[:9])
