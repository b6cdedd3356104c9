"""Scheduling policies against the published example and their closed forms."""

import numpy as np
import pytest
from engine_cases import chain, golden, random_dag, random_placements
from streamsim.engine import Settings, simulate, trace

PER_SINK_TUPLE = 20  # source tuples that one sink tuple of the published example stands for
LONG = {"duration": 200.0, "warm_up": 100.0, "capacity": 100.0}


def published(policy):
    """Ticks of 10 ms and queues of 1000."""
    return Settings(duration=0.05, dt=0.01, capacity=1000, policy=policy, warm_up=0)


def cpu_bound(seed):
    """A random graph whose streams are free, and random placements of it."""
    rng = np.random.default_rng(seed)
    instance = random_dag(rng, n=8, seconds_per_byte=np.zeros((3, 3)))
    return instance, random_placements(rng, instance, 5)


def test_uniform_shares_reproduce_the_published_queues_and_backlog():
    """31.25 sink tuples a tick pass, and the queues fill from the end."""
    run = trace(golden(), [0, 0, 0, 0], published("uniform"))
    arrived = (run.throughput * 0.01).cumsum()
    assert arrived / PER_SINK_TUPLE == pytest.approx([31.25, 62.5, 93.75, 125, 156.25])
    assert run.queued[:, 0] == pytest.approx([0, 0, 0, 125, 375])
    assert run.queued[:, 1] == pytest.approx([187.5, 375, 562.5, 687.5, 687.5])
    assert run.backlog == pytest.approx([0, 0, 0, 0, 125], abs=1e-6)


def test_dynamic_shares_pass_everything_of_the_published_example_with_empty_queues():
    run = trace(golden(), [0, 0, 0, 0], published("dynamic"))
    assert run.throughput * 0.01 / PER_SINK_TUPLE == pytest.approx([50] * 5)
    assert run.queued.max() == 0
    assert run.backlog.max() == 0


@pytest.mark.parametrize("seed", range(8))
def test_uniform_shares_give_the_smallest_of_one_nth_over_load(seed):
    """R = min(1, min over v of (1 / n_device(v)) / load_v)."""
    instance, placements = cpu_bound(seed)
    relative = simulate(instance, placements, Settings(policy="uniform", **LONG)).relative
    expected = [min(1, (1 / np.bincount(p)[p] / instance.load[:, 0]).min()) for p in placements]
    assert relative == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("seed", range(8))
def test_weighted_shares_give_the_smallest_of_share_over_need(seed):
    """R = min(1, min over v of w_v · cap / (Σ over the device of w · cost · λ_v))."""
    instance, placements = cpu_bound(seed)
    weights = np.random.default_rng(seed).uniform(0.5, 2, instance.n_operators)
    settings = Settings(policy="weighted", weights=tuple(weights), **LONG)
    relative = simulate(instance, placements, settings).relative
    cost = weights * instance.seconds[:, 0]
    expected = [
        min(1, (weights / np.bincount(p, cost)[p] / instance.input_rate).min()) for p in placements
    ]
    assert relative == pytest.approx(expected, abs=1e-3)


def test_weighted_shares_count_what_sending_and_receiving_cost():
    """Source and sink cost nothing else; each needs 5 ms per tuple, and half of its device."""
    instance = chain(0, 0, rate=100, devices=2, overhead=5e-3)
    runs = simulate(instance, [[0, 1]], Settings(policy="weighted"))
    assert runs.relative == pytest.approx([1])


def test_slices_change_nothing_in_the_steady_state():
    instance, placements = cpu_bound(3)
    coarse = simulate(instance, placements, Settings(**LONG))
    fine = simulate(instance, placements, Settings(iterations=4, **LONG))
    assert fine.relative == pytest.approx(coarse.relative, abs=2e-3)
