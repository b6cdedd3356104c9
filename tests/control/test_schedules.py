"""The cheapest schedule of a known day, and the bound of every controller."""

import itertools
import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamplace import Offer, Operator, StreamGraph, plan_schedule
from streamplace.control.policies.work_function import FACTOR, MOVES
from streamplace.control.policy import POLICIES, PlanChoice, SlotObservation
from streamplace.control.problem import (
    UNLIMITED,
    WINDOWS,
    ControlDay,
    MoveTerms,
    TraceSlots,
    due_rates,
)
from streamplace.control.replay import lateness, replay
from streamplace.control.schedule import cheapest_levels, lower_bound
from streamplace.errors import SettingError
from streamplace.model.arrays import Ints
from streamplace.planning.traces import RateTrace

HOUR = 3600.0
COSTS = (1.0, 2.0, 4.0)
CAPACITIES = np.array([10.0, 20.0, 40.0])


def day_of(rates, terms, seconds=HOUR, costs=COSTS):
    """A day of one source, with plans whose cost is usually proportional to what they carry."""
    column = np.asarray(rates, np.float64)[:, None]
    slots = TraceSlots(0.0, seconds, column, column)
    plans = tuple(
        SimpleNamespace(cost=cost, headroom=0.0, carries=carries)
        for cost, carries in zip(costs, CAPACITIES.tolist(), strict=True)
    )
    with np.errstate(divide="ignore"):
        carried = np.minimum(CAPACITIES[None, :] / column, UNLIMITED)
    whole = cast("Any", plans)
    windows = tuple(length for length in WINDOWS if length <= len(column))
    least, moved = (
        due_rates(slots, windows, terms.lag, head)[:, :, 0] / 10 for head in (0.0, terms.delay)
    )
    rate = column[:, 0]
    return ControlDay(slots, whole, rate, rate, carried, least, moved, windows, terms)


class Always:
    """A policy that wants one plan, whatever the rates are."""

    def __init__(self, level):
        self.level = level

    def choose(self, observed):
        """Choose that plan."""
        return self.level


def every_cost(day):
    """Costs of all sequences of plans that carry every slot."""
    sequences = itertools.product(range(len(COSTS)), repeat=len(day.slots))
    carried = [np.array(s, np.int64) for s in sequences if day.carries[range(len(s)), s].all()]
    return [day.total(cast("Ints", levels)) for levels in carried]


rates = st.lists(st.sampled_from([3.0, 9.0, 15.0, 20.0, 33.0, 40.0]), min_size=1, max_size=6)


@given(rates, st.sampled_from([0.0, 600.0, 7200.0, 40_000.0]))
def test_no_sequence_of_plans_costs_less(values, price):
    """Nor is any below the bound, for which plans are as cheap as their rates are high."""
    day = day_of(np.array(values), MoveTerms(price=price, interruption=0.0, lag=0.0))
    least = min(every_cost(day))
    assert day.total(cheapest_levels(day)) == pytest.approx(least)
    assert lower_bound(day) <= least * (1 + 1e-9)


def test_the_lag_counts_once_in_a_long_window():
    """Of a rate that stays, a fifth of a slot may wait in each slot, but not in all of them."""
    day = day_of(np.full(48, 10.0), MoveTerms(lag=60.0), 300.0)
    assert lower_bound(day) == pytest.approx(4.0 * (1 - 60 / 300 / 48))


def test_a_plan_that_has_just_started_also_works_off_what_waited():
    """20 of 20 tuples/s leave nothing for a restart of ten minutes, so it moves an hour before."""
    values = np.array([10.0] * 5 + [20.0] * 2)
    levels = cheapest_levels(day_of(values, MoveTerms(price=0.0, interruption=600.0)))
    assert levels.tolist() == [0] * 4 + [1] * 3


def test_a_move_that_costs_more_than_it_saves_is_not_made():
    """An hour on the small plan saves 1; each move costs 1.5 or 0.25."""
    values = np.array([19.0, 9.0, 19.0])
    assert cheapest_levels(day_of(values, MoveTerms(price=HOUR))).tolist() == [1, 1, 1]
    assert cheapest_levels(day_of(values, MoveTerms(price=600.0))).tolist() == [1, 0, 1]


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_a_policy_carries_a_rate_that_stays_and_follows_one_that_doubles(name):
    """From the second hour on nothing is late, and nothing moves.

    One that stayed down after the rate has grown would be late for good.
    """
    found = replay(day_of(np.full(30, 15.0), MoveTerms(), 600.0), name, POLICIES[name])
    assert found.punctual == 1.0
    assert len(set(found.level[6:].tolist())) == 1
    assert CAPACITIES[found.level[-1]] >= 15.0
    values = np.concatenate((np.full(12, 9.0), np.full(60, 35.0)))
    found = replay(day_of(values, MoveTerms(), 300.0), name, POLICIES[name])
    assert found.level[-1] == 2
    assert found.punctual > 0.8


@pytest.mark.parametrize("name", sorted({*POLICIES} - {"static"}))
def test_a_policy_keeps_the_smallest_plan_while_nothing_arrives(name):
    values = np.concatenate((np.full(12, 5.0), np.zeros(24), np.full(12, 5.0)))
    found = replay(day_of(values, MoveTerms(), 300.0), name, POLICIES[name])
    assert set(found.level.tolist()) == {0}
    assert found.punctual == 1.0


@pytest.mark.parametrize("name", ["hpa", "threshold"])
@pytest.mark.parametrize(("rate", "level"), [(0.0, 0), (5.0, 1)])
def test_a_plan_that_carries_nothing_is_left_at_once(name, rate, level):
    plans = PlanChoice(np.arange(1.0, 3.0), np.zeros((2, 2)), 60.0, 60.0, 5.0, 60.0)
    observed = SlotObservation(0.0, rate, 0.0, 0, np.array([0.0, 10.0]))
    assert POLICIES[name](plans).choose(observed) == level


def autoscaled(rates, capacities, level, slot):
    """Plans that Flink's rule runs, slot by slot, where nothing ever waits."""
    plans = PlanChoice(np.arange(1.0, 4.0), np.zeros((3, 3)), slot, 60.0, 5.0, 60.0)
    chooser, levels = POLICIES["autoscaler"](plans), []
    for number, rate in enumerate(rates, 1):
        observed = SlotObservation(number * slot, rate, 0.0, level, np.array(capacities))
        level = chooser.choose(observed)
        levels.append(level)
    return levels


def test_flinks_rule_divides_the_rate_alone_by_the_utilization():
    """It needs 900 / 0.7 + 900 * 5 / 30 = 1435.7, after a stable start and metrics of 15 min."""
    levels = autoscaled([900.0] * 20, [800.0, 1450.0, 1600.0], 0, 300.0)
    assert levels == [0] * 4 + [1] * 16


@pytest.mark.parametrize(("capacity", "level"), [(259.0, 1), (275.0, 0)])
def test_flinks_rule_goes_down_where_it_can_also_catch_up(capacity, level):
    """Above 100 / 0.4 + 100 * 5 / 30 = 266.7."""
    assert autoscaled([100.0] * 40, [200.0, capacity, 300.0], 1, 300.0)[-1] == level


def test_costs_and_lateness_of_a_replay_are_those_of_a_queue():
    """A move after the first slot: a minute of both plans, then half a minute of standstill."""
    terms = MoveTerms(price=HOUR, delay=60.0, interruption=30.0, lag=10.0)
    found = replay(day_of(np.full(4, 10.0), terms, 300.0), "up", lambda _: Always(1))
    assert found.moves == 1
    assert found.machine_cost == pytest.approx((390 * 1.0 + 900 * 2.0) / HOUR)
    assert found.move_cost == pytest.approx(1.5)
    # 300 tuples wait after 30 s, and 10 more tuples/s are processed than arrive: late for 29 s
    assert found.latest == pytest.approx(30.0, abs=1.0)
    assert found.punctual == pytest.approx(1 - 40 / 1200, abs=2 / 1200)


def test_a_move_after_the_last_slot_is_none():
    """It would not happen before the trace ends, so it has no price."""
    found = replay(day_of(np.full(1, 10.0), MoveTerms()), "up", lambda _: Always(1))
    assert (found.moves, found.move_cost) == (0, 0.0)
    assert found.cost == 1.0


@pytest.mark.parametrize("chosen", [None, 99, -1, 0.5])
def test_a_policy_that_chooses_no_plan_is_named(chosen):
    with pytest.raises(SettingError, match="'mine'"):
        replay(day_of(np.full(4, 10.0), MoveTerms()), "mine", lambda _: Always(chosen))


def test_a_policy_cannot_change_what_plans_cost_and_carry():
    def choose(observed):
        with pytest.raises(ValueError, match="read-only"):
            observed.capacity[:] = 0.0
        return 1

    def cheat(plans):
        for prices in (plans.cost, plans.price):
            with pytest.raises(ValueError, match="read-only"):
                prices[:] = 0.0
        return SimpleNamespace(choose=choose)

    replay(day_of(np.full(4, 10.0), MoveTerms()), "cheat", cheat)


@pytest.mark.parametrize(
    ("policies", "names"),
    [("ds2", ["ds2"]), (["hpa", "ds2", "hpa"], ["hpa", "ds2"]), (["ds2", "all"], None)],
)
def test_each_policy_is_replayed_once(policies, names):
    """With plans that use no resource, which have no limit in JSON."""
    graph = StreamGraph.of("free", [Operator("one", ipt=0, rate=1)], [])
    trace = RateTrace(300.0 * np.arange(2), ("rate",), np.array([[1.0], [2.0]]))
    found = plan_schedule(graph, trace, policies=policies, offers=[Offer("m", 1.0)], jobs=1)
    named = [one.name for one in found.replays]
    assert named == (names or ["ds2", *(name for name in POLICIES if name != "ds2")])
    document = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert [plan["carries"] for plan in document["plans"]] == [None]
    assert all(policy["punctual"] == 1.0 for policy in document["policies"])


class Told:
    """A policy that knows the next rates, and takes plans that are smaller or larger as told."""

    def __init__(self, day, more):
        needed = day.carries.argmax(axis=1).tolist()
        self.levels = [min(2, max(0, n + m)) for n, m in zip(needed[1:], more, strict=False)]

    def choose(self, observed):
        """Choose the plan whose turn it is."""
        return self.levels.pop(0) if self.levels else observed.level


@given(
    st.lists(st.sampled_from([0.0, 3.0, 9.0, 15.0, 20.0, 33.0, 40.0]), min_size=2, max_size=9),
    st.lists(st.sampled_from([-1, 0, 0, 0, 1]), min_size=8, max_size=8),
    st.sampled_from([30.0, 40.0, 100.0, 300.0]),
    st.sampled_from([20.0, 60.0, 150.0]),
    st.sampled_from([0.0, 60.0, 600.0]),
)
# Until its machines are ready, the plan before works; the bound would be too high without this.
@example([19.0, 12.9, 5.0, 5.0], [-1] * 8, 150.0, 33.0, 0.0)
def test_no_replay_that_keeps_the_lag_costs_less_than_the_bound(values, more, seconds, lag, price):
    """Also where slots are shorter than the minute for which two plans run; plans cost 1, 2 or 4.

    Replays look at the queue once a second.
    """
    day = day_of(np.array(values), MoveTerms(price=price, lag=lag), seconds)
    least, moved = (np.ceil(bound - 1e-9) for bound in (day.least, day.least_moved))
    day = replace(day, least=least, least_moved=moved)
    found = replay(day, "told", lambda _: Told(day, more))
    if found.latest <= lag - 1:
        assert lower_bound(day) <= found.cost * (1 + 1e-9)


def test_the_bound_knows_that_policies_need_no_headroom():
    graph = StreamGraph.of("one", [Operator("one", ipt=1e6, rate=1)], [])
    rates = np.array([*[45.0] * 11, 90.0])[:, None]
    trace = RateTrace(300.0 * np.arange(12), ("rate",), rates)
    offers = [Offer("m", 1.0, mips=100)]
    found = plan_schedule(graph, trace, policies=["ds2"], offers=offers, headroom=0.5, jobs=1)
    assert found.replays[0].punctual == 1.0
    assert found.bound <= found.replays[0].cost


@pytest.mark.parametrize(
    ("arrived", "waiting", "late"),
    [
        # nothing arrives in the third step, so that what waits grows older
        ([10.0, 10.0, 0.0, 0.0], [10.0, 15.0, 10.0, 0.0], [1.0, 1.5, 2.0, 0.0]),
        # half of what arrives after a pause is processed at once
        ([10.0, 0.0, 0.0, 10.0], [0.0, 0.0, 0.0, 5.0], [0.0, 0.0, 0.0, 0.5]),
    ],
)
def test_lateness_is_an_age(arrived, waiting, late):
    assert lateness(np.array(arrived), np.array(waiting)).tolist() == late


@given(
    st.lists(st.sampled_from(["above", "below", "far below"]), min_size=20, max_size=80),
    st.sampled_from([600.0, 3600.0, 20_000.0]),
)
def test_the_work_function_keeps_its_ratio(moods, price):
    """Every rate is just above or below what the present plan, or the next smaller, carries."""
    mood = iter(moods)
    check_ratio(*played(lambda level: beside(level, next(mood)), len(moods), price))


@pytest.mark.parametrize("price", [600.0, 3600.0, 20_000.0])
@pytest.mark.parametrize("costs", [COSTS, (1.0, 30.0, 900.0)])
def test_no_adversary_beats_the_work_function(price, costs):
    """Each rate is too much for the job as it is, or so little that it has too many machines.

    A job that stayed large would cost more than the ratio where plans differ much in cost.
    """

    def cruel(level):
        return beside(level, "above" if level < len(COSTS) - 1 else "far below")

    day, levels = played(cruel, 400, price, costs)
    assert (np.diff(levels) != 0).sum() > 10
    check_ratio(day, levels)


def beside(level, mood):
    """A rate just above or just below what a plan carries, or just below the next smaller one."""
    if mood == "above" and level < len(COSTS) - 1:
        return 1.001 * float(CAPACITIES[level])
    return 0.999 * float(CAPACITIES[max(0, level - 1) if mood == "far below" else level])


def played(adversary, slots, price, costs=COSTS):
    """Rates that an adversary offers who knows the present plan, and the plans of the policy.

    Every rate is known when its slot begins, as the ratio assumes.
    """
    terms = MoveTerms(price=price, delay=0.0, interruption=0.0, lag=0.0)
    plans = day_of(CAPACITIES, terms, costs=costs)
    chooser = cast("Any", POLICIES["work-function"](terms.choice(plans.cost, HOUR)))
    after = chooser._forecast.after
    chooser._forecast.after = lambda rate: np.concatenate(([rate], after(rate)[1:]))
    level, rates, levels = 0, [], []
    for _ in range(slots):
        rates.append(adversary(level))
        level = chooser.choose(SlotObservation(0.0, rates[-1], 0.0, level, CAPACITIES))
        levels.append(level)
    return day_of(np.array(rates), terms, costs=costs), np.array(levels, np.int32)


def check_ratio(day, levels):
    """Check the cost: FACTOR (2K - 1) times the best schedule, and a constant."""
    best, most = day.total(cheapest_levels(day)), FACTOR * (2 * len(COSTS) - 1)
    assert day.carries[range(len(levels)), levels].all()
    assert day.total(levels) <= most * best + (most + MOVES) * day.price.max()


def test_a_trace_is_cut_into_slots():
    """Rates hold until the next row; peaks are those of rows that reach into a slot.

    The last slot may be longer than the trace.
    """
    trace = RateTrace(np.array([0.0, 30.0, 90.0]), ("rate",), np.array([[10.0], [40.0], [20.0]]))
    slots = TraceSlots.of(trace, 60.0)
    assert slots.mean[:, 0].tolist() == pytest.approx([25.0, 30.0, 20.0])
    assert slots.peak[:, 0].tolist() == [40.0, 40.0, 20.0]
    longer = TraceSlots.of(trace, 110.0)
    assert longer.peak[:, 0].tolist() == [40.0, 20.0]
    assert longer.mean[1, 0] == pytest.approx(20.0)


def test_slots_of_which_there_would_be_too_many_are_refused():
    """However many: their number may be more than a float holds."""
    trace = RateTrace(np.array([0.0, 3600.0]), ("rate",), np.array([[1.0], [2.0]]))
    for seconds in (0.01, 1e-310):
        with pytest.raises(SettingError, match="20000"):
            TraceSlots.of(trace, seconds)
