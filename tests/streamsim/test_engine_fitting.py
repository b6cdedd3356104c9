"""Settings that follow from the problem measure what the closed form says, at any rate."""

import numpy as np
import pytest
from engine_cases import anything, chain
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from streamsim import build_instance, throughput
from streamsim.engine import GivenSettings, Settings, fit, settings_for, simulate
from streamsim.engine.settings import common_ticks, max_ticks, time_step
from streamsim.steady import bottleneck, resource_loads

NEAR = 0.02
PATIENT = settings(deadline=None, suppress_health_check=list(HealthCheck))
SEEDS = st.integers(0, 2**32 - 1)


def check(arguments, placement):
    """Relative throughput of a run that must be valid, and of the steady state."""
    instance = build_instance(**arguments)
    found = fit(instance, placement, GivenSettings())
    assert found.doubt is None
    return float(found.runs.relative[0]), float(throughput(instance, placement[None])[0])


def one_source(seed):
    """A card that limits may lose more: a link beside it can leave it idle in every second tick."""
    arguments, placement = anything(np.random.default_rng(seed))
    measured, steady = check(arguments, placement)
    limit = bottleneck(resource_loads(build_instance(**arguments), placement))
    card = limit.kind in ("egress", "ingress")
    assert steady - (0.1 if card else NEAR) <= measured <= steady + NEAR


def carried(seed, share, sources, windows):
    """At a part of the share at which the closed form lets all sources run, all is carried."""
    arguments, placement = anything(np.random.default_rng(seed), sources, windows)
    (reached,) = throughput(build_instance(**arguments), placement[None])
    arguments["rate"] = arguments["rate"] * reached * share
    measured, steady = check(arguments, placement)
    assert steady == 1
    assert measured == pytest.approx(1, abs=NEAR)


@PATIENT
@given(SEEDS)
@example(72)
@example(477)
@example(99)
@example(2874)
@example(2842)
@example(3016)
@example(529785)
def test_the_engine_and_the_closed_form_agree_on_any_problem_with_one_source(seed):
    """Within 2 %, from 10 to 10⁶ tuples/s, with links, latencies, cards, cores and overheads."""
    one_source(seed)


@PATIENT
@given(SEEDS, st.integers(2, 4))
@example(0, 3)
def test_the_engine_carries_the_share_at_which_all_sources_run(seed, sources):
    carried(seed, 0.98, sources, 0)


@PATIENT
@given(SEEDS, st.integers(1, 2), st.integers(1, 3))
@example(157, 1, 1)
@example(225, 1, 1)
@example(344, 2, 1)
def test_windows_are_carried_at_four_fifths(seed, windows, sources):
    """The closed form spreads results evenly; the engine lets them out at once, which costs."""
    carried(seed, 0.8, sources, windows)


@settings(PATIENT, max_examples=20)
@given(SEEDS)
@example(73)
@example(353)
def test_windows_never_carry_more_than_the_closed_form(seed):
    """Under overload bursts can only cost; and what has not settled is not told."""
    arguments, placement = anything(np.random.default_rng(seed), windows=1)
    instance = build_instance(**arguments)
    found = fit(instance, placement, GivenSettings())
    if found.doubt is None:
        assert found.runs.relative[0] <= throughput(instance, placement[None])[0] + NEAR


@pytest.mark.slow
def test_two_thousand_problems_agree():
    for seed in range(2000):
        one_source(seed)
        carried(seed, 0.98, 2 + seed % 3, 0)


def test_a_windowed_source_settles_though_its_backlog_grows():
    """A pane takes in a bounded part of the backlog, and not all of it at once."""
    window = {"windows": ((0, 5.0, 1.0, 0.0, 0.1, np.inf),)}
    instance = chain(0, 4e-2, rate=100, devices=2, **window)
    found = fit(instance, np.array([0, 1], np.int32), GivenSettings())
    assert found.doubt is None
    assert found.runs.relative[0] == pytest.approx(0.5, abs=0.01)


def test_time_steps_follow_latencies_windows_capacities_and_durations():
    """One of 1, 2 and 5 ms; shorter for short windows, longer for long ones and long runs."""
    place = np.array([0, 1], np.int32)
    near, far = (chain(0, 0, devices=2, latency=np.full((2, 2), x)) for x in (0.002, 0.5))
    assert time_step(near, place, GivenSettings()) == 0.002
    assert time_step(far, place, GivenSettings()) == 0.01
    assert time_step(near, place[:1].repeat(2), GivenSettings()) == 0.01
    for size, advance, dt in ((0.02, 0.02, 0.002), (600, 60, 0.02), (600, 0.01, 0.01)):
        windowed = chain(0, 0, devices=2, windows=((1, size, advance, 0.0, 1.0, np.inf),))
        assert time_step(windowed, place, GivenSettings()) == pytest.approx(dt)
    assert time_step(chain(0, 0, rate=1e5, devices=2), place, GivenSettings(capacity=1000)) == 0.002
    whole = time_step(far, place, GivenSettings(duration=1e9))
    assert 1e9 / whole == pytest.approx(max_ticks(far))
    assert time_step(far, place, GivenSettings(duration=1e-12)) == 1e-12


def test_windows_are_measured_over_a_time_after_which_all_advance_at_once():
    assert common_ticks(np.array([])) == 0
    assert common_ticks(np.array([20.0, 30.0])) == 60
    assert common_ticks(np.array([20.5, 30.0])) == 600
    assert common_ticks(np.array([997.0, 1009.0])) == 20 * 1009
    primes = np.array([503.0, 509.0, 521.0, 523.0, 541.0, 547.0, 557.0, 599.0])
    assert common_ticks(primes) == 20 * 599  # all advance at once after more than 2⁶³ ticks


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"dt": float("nan")}, "dt is nan"),
        ({"duration": 1e300}, "duration"),
        ({"duration": 1, "dt": 0.3}, "duration|dt"),
    ],
)
def test_settings_that_no_run_could_have_are_refused(wrong, complaint):
    with pytest.raises(ValueError, match=complaint):
        GivenSettings(**wrong)


def test_batches_are_not_limited_by_their_capacity():
    """A hop of 10⁶ tuples/s, and a window that advances ten times as fast as the usual tick."""
    fast = chain(0, 0, rate=1e6, devices=2)
    assert settings_for(fast) == Settings(warm_up=10.0)
    assert simulate(fast, [[0, 1]], settings_for(fast)).relative == pytest.approx([1])
    short = chain(0, 0, 0, devices=2, windows=((1, 0.02, 0.01, 0.0, 1.0, np.inf),))
    assert simulate(short, [[0, 0, 1]], settings_for(short)).relative == pytest.approx(
        [1], abs=0.01
    )
