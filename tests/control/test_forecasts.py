"""Forecasts of needs: noise, days, and what a wrong forecast may cost at most."""

import itertools
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamplace.control.forecast import NeedForecast
from streamplace.control.policies import work_function
from streamplace.control.policies.work_function import WorkFunctionPolicy
from streamplace.control.policy import PlanChoice, SlotObservation

COST, CAPACITY = np.array([1.0, 2.0, 4.0]), np.array([10.0, 20.0, 40.0])
HOUR = 3600.0


def choice(seconds, price):
    """Three plans, and moves that are worth running the mean of both for so many hours."""
    prices = price * (COST[:, None] + COST[None, :]) / 2
    np.fill_diagonal(prices, 0.0)
    return PlanChoice(COST, prices, seconds, 60.0, 5.0, 60.0)


def levels_of(policy, rates):
    """Plans that a policy chooses one after the other."""
    level, chosen = 0, []
    for slot, rate in enumerate(rates.tolist()):
        level = policy.choose(SlotObservation(float(slot), rate, 0.0, level, CAPACITY))
        chosen.append(level)
    return chosen


def test_noise_around_a_rate_does_not_move_the_job():
    """The highest rates come close to the capacity of the smaller plan; a minute may wait."""
    rates = 8.5 * np.random.default_rng(1).lognormal(0.0, 0.05, 3 * 288)
    assert rates.max() > 9.9
    assert set(levels_of(WorkFunctionPolicy(choice(300.0, 0.5)), rates)) == {0}


def test_the_second_day_is_expected_to_be_like_the_first():
    """Two hours before the rate has trebled yesterday, three times as much is needed."""
    day = np.where(np.arange(288) < 144, 10.0, 30.0)
    forecast = NeedForecast(300.0, 55.0)
    needs = np.array([forecast.after(rate) for rate in [*day, *day, *day]])
    ends = np.cumsum(forecast.lengths)
    ahead = needs[2 * 288 + 120][ends >= 36]
    assert ahead.min() > 20.0
    assert needs[120][ends >= 36].max() < 12.0
    assert needs[2 * 288 + 120][0] < 12.0


def test_the_first_need_follows_a_rate_that_stays():
    """A forecast that has missed a jump does not miss it for good."""
    forecast = NeedForecast(300.0, 55.0)
    needs = [forecast.after(rate)[0] for rate in [10.0] * 50 + [30.0] * 50]
    assert needs[49] == pytest.approx(10.0, rel=0.1)
    assert 28.0 < needs[52] < 60.0
    assert needs[99] == pytest.approx(30.0, rel=0.1)


@pytest.mark.parametrize("seconds", [60.0, HOUR, 86_400.0, 3 * 86_400.0])
def test_a_job_shrinks_after_its_rate_has_fallen_with_slots_of_any_length(seconds):
    rates = np.array([33.0] * 5 + [0.0] * 20 + [3.0] * 100)
    levels = levels_of(WorkFunctionPolicy(choice(seconds, 0.5)), rates)
    assert levels[4] == 2
    assert levels[-1] == 0


def test_a_dear_move_is_worth_a_look_further_ahead():
    """One for six hours of both plans pays within a day and a half; the forecast ends before."""
    rates = np.array([33.0] * 12 + [3.0] * 144)
    assert levels_of(WorkFunctionPolicy(choice(300.0, 6.0)), rates)[-1] == 0


def spent(rates, needs, factor, moves):
    """Cost with a forecast of these needs, all of which may be wrong, within such a budget."""
    plans = choice(HOUR, 1.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(work_function, "FACTOR", factor)
        patch.setattr(work_function, "MOVES", moves)
        policy = WorkFunctionPolicy(plans)
        said = iter(zip(rates, needs, strict=True))

        def after(rate):
            now, later = next(said)
            return np.array([now, *[later] * (len(cast("Any", policy)._forecast.lengths) - 1)])

        cast("Any", policy)._forecast = SimpleNamespace(
            after=after, lengths=cast("Any", policy)._forecast.lengths
        )
        levels = [0, *levels_of(policy, np.array(rates))]
    changes = itertools.pairwise(levels)
    return float(sum(plans.price[a, b] + COST[b] for a, b in changes))


values = st.sampled_from([3.0, 9.0, 15.0, 33.0])


@settings(max_examples=60)
@given(st.lists(st.tuples(values, values), min_size=1, max_size=60))
def test_a_wrong_forecast_costs_no_more_than_its_budget(pairs):
    """Whatever it says; without a budget the job does what the rule does."""
    rates, needs = [a for a, _ in pairs], [b for _, b in pairs]
    rule = spent(rates, needs, 0.0, 0.0)
    dearest = float(choice(HOUR, 1.0).price.max())
    assert spent(rates, needs, 1.2, 1.0) <= 1.2 * rule + dearest + 1e-9
