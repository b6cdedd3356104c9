"""What bounds of controllers are made of: rates that are due, and bounds at many of them."""

import math
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamplace import Budget, Offer, Stream, plan_schedule
from streamplace.control import problem as days
from streamplace.control.problem import (
    MAX_BOUNDS,
    MoveTerms,
    TraceSlots,
    control_day,
    due_rates,
    planned_rates,
)
from streamplace.model import Operator, StreamGraph
from streamplace.model.operators import Window
from streamplace.planning.traces import RateTrace

SLOT, FINE = 60.0, 6


def least_capacity(rates, lag):
    """Least capacity of a queue, empty at first, in which nothing is ever late by more than a lag.

    What has arrived by a time must be processed a lag later, by a queue that cannot work ahead.
    """
    step, wait = SLOT / FINE, round(lag / SLOT * FINE)
    arrived = np.concatenate(([0.0], np.cumsum(np.repeat(rates, FINE) * step)))
    needs = [
        (arrived[end - wait] - arrived[begin]) / ((end - begin) * step)
        for end in range(wait, len(arrived))
        for begin in range(end - wait + 1)
        if end > begin
    ]
    return max([0.0, *needs])


def test_what_arrives_after_the_end_of_a_trace_is_not_due():
    trace = RateTrace(np.array([0.0, 60.0]), ("rate",), np.array([[10.0], [10.0]]))
    slots = TraceSlots.of(trace, 80.0)
    assert slots.last == 0.5
    assert due_rates(slots, (1,), 0.0)[:, 0, 0].tolist() == [10.0, 5.0]


@given(
    st.lists(st.sampled_from([0.0, 1.0, 5.0, 20.0]), min_size=1, max_size=7),
    st.sampled_from([0.0, 20.0, 60.0, 90.0, 150.0]),
)
def test_no_queue_does_with_less_than_what_is_due(rates, lag):
    """In every window; so that a plan of less capacity would be late."""
    column = np.array(rates)[:, None]
    lengths = range(1, len(rates) + 1)
    due = due_rates(TraceSlots(0.0, SLOT, column, column), tuple(lengths), lag)[:, :, 0]
    for end in lengths:
        for length in range(1, end + 1):
            least = least_capacity(column[end - length : end, 0], lag)
            assert due[end - 1, length - 1] <= least + 1e-9


def test_what_came_before_the_lag_of_a_window_is_due_in_it():
    """A minute of 20 tuples/s, then none: 80 s for 1,200 tuples that may be 20 s late."""
    column = np.array([[20.0], [0.0]])
    due = due_rates(TraceSlots(0.0, SLOT, column, column), (1, 2), 20.0)
    assert due[1, 1, 0] == pytest.approx(1200 / 80)
    assert least_capacity(column[:, 0], 20.0) == pytest.approx(1200 / 80)


@pytest.mark.parametrize(("low", "most"), [(0.0, 24), (0.5, 13), (0.9, 20), (0.98, 25), (1.0, 1)])
def test_there_are_plans_for_many_rates_however_little_they_vary(low, most):
    """The lowest is not below the lowest rate, the highest is the peak."""
    column = np.array([[1000.0], [1000.0 * low]])
    planned = [float(rates[0]) for rates in planned_rates(TraceSlots(0.0, SLOT, column, column))]
    assert planned == sorted(set(planned))
    assert planned[0] >= 1000 * low
    assert planned[-1] == 1000.0
    assert min(most, 12) <= len(planned) <= most


def test_each_of_several_sources_keeps_to_its_own_rates():
    peak = np.array([[10.0, 7.0], [100.0, 7.0]])
    planned = np.array(planned_rates(TraceSlots(0.0, SLOT, peak, peak)))
    assert set(planned[:, 1].tolist()) == {7.0}
    assert planned[0, 0] >= 10.0
    assert planned[-1].tolist() == [100.0, 7.0]


def day_with(cost_at, rates):
    """A day whose bounds are a function of the rate, and the rates it was asked for.

    Rates are those of the only source, or [T, S] of several.
    """
    asked: list[float] = []

    def bound_of(graph):
        asked.append(graph.source_rate)
        return float(cost_at(graph.source_rate))

    def plan_each(graphs):
        return [
            SimpleNamespace(cost=graph.source_rate, carries=graph.source_rate, headroom=0.0)
            for graph in graphs
        ]

    columns = rates.reshape(len(rates), -1)
    sources = "abcd"[: columns.shape[1]]
    names = ("rate",) if len(sources) == 1 else tuple(sources)
    trace = RateTrace(SLOT * np.arange(len(rates)), names, columns)
    graph = StreamGraph.of("all", [Operator(name, ipt=1e3, rate=1.0) for name in sources])
    day = control_day(graph, trace, SLOT, MoveTerms(lag=0.0), cast("Any", plan_each), bound_of)
    return day, asked


def test_bounds_of_whole_machines_are_found_at_few_rates():
    """Where cost rises in steps, nearly all slots get the bound of their own rate, none more."""
    rates = np.random.default_rng(2).uniform(50.0, 1000.0, 400)
    day, asked = day_with(lambda rate: math.ceil(rate / 100.0), rates)
    exact = np.ceil(rates / 100.0)
    assert (day.least[:, 0] <= exact).all()
    assert (day.least[:, 0] == exact).mean() > 0.98
    assert len(asked) <= MAX_BOUNDS


def planned(graph, trace, offer):
    """Schedule of hours on machines of one kind; few plans are enough to find its bound."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(days, "PLANS", 6)
        budget = Budget(None, 2000)
        return plan_schedule(graph, trace, slot="1 h", offers=[offer], budget=budget, jobs=1)


def windowed(**windows):
    """Sources, a window behind each, and a costly operator behind each window."""
    operators, streams = [], []
    for name, window in windows.items():
        operators += [Operator(name, ipt=1, rate=2000), Operator(f"w{name}", ipt=1, window=window)]
        operators.append(Operator(f"x{name}", ipt=1e6))
        streams += [Stream(name, f"w{name}"), Stream(f"w{name}", f"x{name}")]
    return StreamGraph.of("windowed", operators, streams)


def test_the_mean_of_rates_of_windows_may_cost_more_than_each_of_them():
    """Windows emit at most 1,000 tuples/s: one machine carries one fast source, not two halves."""
    window = Window(1.0, 1.0, base=0.0, factor=1.0, limit=1000.0)
    rates = np.array([[2000.0, 10.0], [10.0, 2000.0]] * 4)
    trace = RateTrace(3600.0 * np.arange(8), ("a", "b"), rates)
    graph = windowed(a=window, b=window)
    found = planned(graph, trace, Offer("m", 1.0, mips=1300))
    assert found.cost == pytest.approx(8)
    assert 4 <= found.bound <= 8 * (1 + 1e-9)


def test_means_of_several_sources_without_windows_count_together():
    """1,500 MIPS of two sources need two machines of 900, though each source alone needs one."""
    operators = [Operator(name, ipt=1e6, rate=1000) for name in "ab"]
    rates = np.array([[1000.0, 500.0], [500.0, 1000.0]] * 6)
    trace = RateTrace(3600.0 * np.arange(12), ("a", "b"), rates)
    graph = StreamGraph.of("two", operators)
    found = planned(graph, trace, Offer("m", 1.0, mips=900))
    assert found.bound == pytest.approx(24)


def test_rounding_does_not_separate_what_a_join_takes_for_equal():
    """One source is a half of its peak, and the other a little more, as a file has few digits."""
    operators = [Operator(name, ipt=1e6, rate=1000) for name in "ab"]
    operators.append(Operator("x", ipt=1e3, fires="all"))
    graph = StreamGraph.of("sets", operators, [Stream("a", "x"), Stream("b", "x")])
    for near in (0.9999995, 1.0000005):
        rates = np.array([[1000.0, 1000.0], [500.0, 500.0 * near]] * 6)
        trace = RateTrace(3600.0 * np.arange(12), ("a", "b"), rates)
        found = planned(graph, trace, Offer("m", 1.0, mips=1100))
        assert 12 <= found.bound <= found.cost


def test_few_bounds_of_several_sources_are_computed_where_they_are_equal():
    """The levels between two of the same bound have that bound."""
    random = np.random.default_rng(3)
    rates = random.uniform(50.0, 900.0, 200)[:, None] * random.uniform(0.9, 1.1, (200, 4))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(days, "_carried", lambda *_: np.ones((200, 1)))
        day, few = day_with(lambda rate: math.ceil(rate / 1000.0), rates)
        _, every = day_with(lambda rate: rate, rates)
    least = day.least[:, 0]
    assert (least <= np.ceil(rates.sum(axis=1) / 1000.0)).all()
    assert 1.0 in least
    assert 4.0 in least
    assert len(few) < len(every) / 2


def test_a_window_that_receives_nothing_emits_nothing():
    """At night one machine is enough, although a window emits 1,000 tuples at any other rate."""
    operators = [
        Operator("s", ipt=1e3, rate=1000),
        Operator("w", ipt=1e3, window=Window(60.0, 1.0, base=1000.0)),
        Operator("x", ipt=4e6),
    ]
    graph = StreamGraph.of("count", operators, [Stream("s", "w"), Stream("w", "x")])
    rates = np.array([[0.0]] * 6 + [[1000.0]] * 6)
    trace = RateTrace(3600.0 * np.arange(12), ("rate",), rates)
    found = planned(graph, trace, Offer("small", 0.1))
    night, day, move = 6 * 0.1, 6 * 0.2, 0.5 * 0.15
    assert 1.2 <= found.bound <= (night + day + move) * (1 + 1e-9)
