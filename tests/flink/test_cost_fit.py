"""The fit of costs: truth that is recovered."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamplace.flink.measure.cost_fit import MIN_CPU_ERROR, Observation, averaged, task_cost

FIXED_PARTS = st.floats(1e-3, 0.05)
PER_TUPLE_PARTS = st.floats(5e-7, 1e-4)


def cores_at(cost, rate):
    """Cores of a subtask at a rate."""
    return cost.fixed + cost.per_tuple * rate


@given(FIXED_PARTS, PER_TUPLE_PARTS)
def test_different_rates_give_both_parts(fixed, each):
    """At rates from nearly idle to far above, without noise."""
    rates = fixed / each * np.array([0.05, 0.3, 2.0, 10.0, 60.0])
    cost = task_cost([Observation(rate, fixed + each * rate) for rate in rates.tolist()])
    for rate in rates.tolist():
        assert cores_at(cost, rate) == pytest.approx(fixed + each * rate, 0.1, 2 * MIN_CPU_ERROR)
    assert cost.per_tuple == pytest.approx(each, rel=0.05)


@given(FIXED_PARTS, PER_TUPLE_PARTS, st.floats(10.0, 1e5))
def test_a_task_has_the_measured_cost_at_the_measured_rate(fixed, each, rate):
    """Whatever the prior is; at another rate it costs neither less nor more than is possible."""
    cores = fixed + each * rate
    cost = task_cost([Observation(rate, cores)])
    assert cores_at(cost, rate) == pytest.approx(cores, 0.25, 2 * MIN_CPU_ERROR)
    assert cores_at(cost, rate) <= cores_at(cost, 2 * rate) <= 2 * cores_at(cost, rate)


def test_noise_of_one_rate_is_no_slope():
    """Rates that are counted with an error of some percent, and CPU that does not follow them."""
    random = np.random.default_rng(1)
    rates = 1000 * (1 + 0.03 * random.normal(size=40))
    seen = [Observation(rate, 0.01) for rate in rates.tolist()]
    assert [one[:2] for one in averaged(seen)] == [pytest.approx((rates.mean(), 0.01))]
    alone = task_cost([Observation(1000.0, 0.01)])
    assert task_cost(seen).fixed == pytest.approx(alone.fixed, rel=0.02)


@given(st.floats(5e-3, 0.1), st.floats(50.0, 1e5), st.floats(0.0, 4.0))
def test_a_thread_that_never_sleeps_works_for_its_tuples(cores, rate, wakes):
    """As where sources are held back."""
    assert task_cost([Observation(rate, cores, wakes)]).fixed < 0.15 * cores


@given(st.floats(40e-6, 90e-6), st.floats(20.0, 600.0), st.floats(0.0, 1e-5), st.floats(4.0, 100.0))
def test_wake_ups_for_several_tuples_give_the_fixed_cost(each_wake, wakes, each, batch):
    """So one rate tells the cost at others, up to what is not known of a wake-up."""
    fixed, rate = each_wake * wakes, batch * wakes
    cost = task_cost([Observation(rate, fixed + each * rate, wakes)])
    error = 0.6 * fixed + 0.4 * each * rate + 2 * MIN_CPU_ERROR
    assert cores_at(cost, 4 * rate) == pytest.approx(fixed + 4 * each * rate, abs=3 * error)


def test_wake_ups_of_a_held_back_job_are_no_fixed_load():
    """As of Kafka's source that reads what waits: it wakes up for every fetch."""
    cost = task_cost([Observation(3700.0, 0.012, 300.0, held_back=1.0)])
    assert cost == task_cost([Observation(3700.0, 0.012)])
    assert cost.fixed < task_cost([Observation(3700.0, 0.012, 300.0)]).fixed


def test_a_thread_that_wakes_up_for_every_tuple_adds_nothing_to_the_prior():
    """As of sources that Flink's own limiter of rates holds back."""
    each = task_cost([Observation(1000.0, 0.02, 1000.0)])
    assert each == task_cost([Observation(1000.0, 0.02)])


def test_the_fixed_cost_is_at_most_that_of_wake_ups():
    """As of a join on a slow TaskManager: 15 µs per tuple where it runs fast (big diamond)."""
    cost = task_cost([Observation(182.0, 0.0067, 22.0)])
    assert cost.fixed <= 22 * 100e-6
    assert cores_at(cost, 182.0) == pytest.approx(0.0067, rel=0.05)


def test_an_expensive_operator_is_no_fixed_load():
    """Hundreds of microseconds per tuple at a low rate, as of a model that is asked for each."""
    cost = task_cost([Observation(100.0, 0.063)])
    assert cost.per_tuple > 4e-4
