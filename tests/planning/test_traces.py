"""Traces: reading, levels, hours, and what is refused."""

import math

import numpy as np
import pytest
from planning_cases import pipeline
from refusals import refusal_of

from streamplace import Offer, plan, plan_schedule
from streamplace.errors import GraphError, ProblemError, SettingError
from streamplace.model import Operator, Stream, StreamGraph
from streamplace.placers.registry import Budget
from streamplace.planning.traces import RateTrace, parse_trace

TWO = (
    b"time,left,right\n"
    b"2026-03-01T00:00,100,3 k/s\n2026-03-01T00:30,200,0\n\n2026-03-01T02:00:00+01:00,50,10\n"
)


def joined(fires="each"):
    """Two sources and what joins them."""
    operators = [Operator(name, ipt=1e3, rate=1) for name in ("left", "right")]
    streams = [Stream("left", "join"), Stream("right", "join")]
    return StreamGraph.of("joined", [*operators, Operator("join", ipt=1e3, fires=fires)], streams)


def test_a_trace_has_times_rates_and_hours():
    """Dates without a zone are UTC; each hour has the largest rate of each source."""
    trace = parse_trace(TWO, "rates.csv")
    assert trace.sources == ("left", "right")
    assert (trace.time - trace.time[0]).tolist() == [0, 1800, 3600]
    assert [rates.tolist() for _, rates in trace.hours()] == [[200, 3000], [50, 10]]


@pytest.mark.parametrize(
    ("rows", "highest"), [("0,100\n5400,10", [100, 100]), ("0,100\n7200,200", [100, 100, 200])]
)
def test_an_hour_begins_with_the_rate_of_the_row_before(rows, highest):
    trace = parse_trace(f"time,rate\n{rows}".encode(), "rates.csv")
    assert [rates.tolist() for _, rates in trace.hours()] == [[rate] for rate in highest]


def test_a_quantile_is_a_rate_of_the_trace():
    """So large a share of the rows is not above it; 1 is the peak."""
    trace = parse_trace(b"time,rate\n0,10\n1,40\n2,20\n3,30\n", "rates.csv")
    assert [float(trace.level(q)[0]) for q in (0.25, 0.5, 0.9, 1)] == [10, 20, 40, 40]
    hundred = RateTrace(np.arange(100.0), ("rate",), np.arange(1.0, 101.0)[:, None])
    assert [float(hundred.level(q)[0]) for q in (0.55, 0.56, 0.57)] == [55, 56, 57]


def test_rates_are_those_of_the_sources_or_of_all_together():
    trace = parse_trace(TWO, "rates.csv")
    graph = trace.graph(joined(), trace.level(1))
    assert graph.operators.rate.tolist() == [200, 3000, 0]
    whole = parse_trace(b"time,rate\n0,10\n", "rates.csv")
    assert whole.graph(joined(), whole.level(1)).operators.rate.tolist() == [5, 5, 0]
    with pytest.raises(SettingError, match="'source'"):
        trace.graph(pipeline(), trace.level(1))


def test_every_hour_is_planned_alone():
    """The plan for the peaks of all sources carries every hour; that of a quantile does not."""
    offers, trace = [Offer("small", 0.1, mips=1.0)], parse_trace(TWO, "rates.csv")
    budget = Budget(None, 1000)
    result = plan(joined(), trace=trace, offers=offers, budget=budget)
    alone = [plan(trace.graph(joined(), r), offers=offers, budget=budget) for _, r in trace.hours()]
    assert [hour.cost for hour in result.hours] == [each.cost for each in alone]
    assert result.cost == result.hours[0].cost
    assert [hour.carried for hour in result.hours] == [True, True]
    assert result.to_json()["hours"][1]["bound"] == float(alone[1].bound)
    median = plan(joined(), trace=trace, quantile=0.5, offers=offers, budget=budget)
    assert [hour.carried for hour in median.hours] == [False, True]


def test_hours_are_judged_without_the_chains_that_the_plan_divides():
    """A chain would not pay for the stream, which takes two thirds of the CPU."""
    ends = [Operator(name, ipt=1e5, rate=float(name == "a"), max_parallelism=1) for name in "ab"]
    graph = StreamGraph.of("two", ends, [Stream("a", "b", partitioning="chained", ipt=2e5)])
    rates = np.array([[1000.0], [1000.0], [1000.0], [2000.0]])
    trace, offers = RateTrace(3600.0 * np.arange(4), ("rate",), rates), [Offer("m", 1.0, 250.0, 4)]
    result = plan(graph, trace=trace, quantile=0.5, offers=offers, budget=Budget(None, 1000))
    assert [hour.carried for hour in result.hours] == [True, True, True, False]


def test_an_hour_without_tuples_has_the_rate_of_the_trace():
    trace = parse_trace(b"time,rate\n0,1000\n3600,0\n", "rates.csv")
    result = plan(pipeline(), trace=trace, offers=[Offer("s", 0.1)], budget=Budget(None, 1000))
    assert [hour.rate for hour in result.hours] == [1000.0, 0.0]


def test_an_hour_that_no_machines_carry_does_not_refuse_the_plan_for_a_quantile():
    """Two machines carry 25,000 tuples/s, and the last of four hours has 90,000."""
    graph = StreamGraph.of("one", [Operator("a", ipt=2e5, rate=1)])
    trace = parse_trace(b"time,rate\n0,10000\n3600,10000\n7200,10000\n10800,90000\n", "rates.csv")
    offers, budget = [Offer("s", 0.1, at_most=2)], Budget(None, 1000)
    result = plan(graph, trace=trace, quantile=0.5, offers=offers, budget=budget)
    assert result.machines == {"s": 1}
    assert [hour.carried for hour in result.hours] == [True, True, True, False]
    assert [hour.cost for hour in result.hours] == [0.1, 0.1, 0.1, None]
    assert result.to_json()["hours"][3] == {
        "start": 10800,
        "rate": 90000,
        "machines": {},
        "cost": None,
        "bound": None,
        "carried": False,
    }
    assert "No plan was found for 1 hour" in str(result)
    assert "plan.svg" in result.files()
    with pytest.raises(ProblemError, match="all machines together have"):
        plan(graph, trace=trace, offers=offers, budget=budget)


def test_an_hour_in_which_a_join_has_unequal_inputs_has_no_plan():
    trace = parse_trace(b"time,left,right\n0,100,100\n3600,50,60\n7200,50,50\n", "rates.csv")
    offers, budget = [Offer("s", 0.1)], Budget(None, 1000)
    result = plan(joined(fires="all"), trace=trace, offers=offers, budget=budget)
    assert [hour.cost for hour in result.hours] == [0.1, None, 0.1]
    assert [hour.carried for hour in result.hours] == [True, False, True]
    assert result.hours[1].rate == 110


def test_a_schedule_names_a_moment_with_rates_that_a_join_cannot_have():
    trace = parse_trace(b"time,left,right\n0,9,9\n3600,9,4\n", "rates.csv")
    with pytest.raises(GraphError, match=r"1:00: operator 'join'"):
        plan_schedule(joined(fires="all"), trace, slot="1 h", offers=[Offer("a", 1.0)])


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "time,rate"),
        ("time,a,a\n0,1,1", "time,rate"),
        ("time,rate\n", ""),
        ("time,rate\n0,1,2", "2: has 3 cells"),
        ("time,rate\n0,1\n0,2", "time[1]"),
        ("time,rate\nnoon,1", "'noon'"),
        ("time,rate\ninf,1", "time[0]"),
        ("time,rate\n20260301,1", "2026-03-01"),
        ('time,rate\n"0\n",-1', "3: rate '-1'"),
        ("time,rate\n0,5 kB", "rate '5 kB'"),
        ("time,a,b\n0,1,0", "'b'"),
        ("time,rate\n0,1\n1e9,1", "2000 hours"),
        ('time,rate\n0,"1', ""),
    ],
)
def test_bad_traces_are_refused_in_one_line(text, place):
    assert place in refusal_of("rates.csv", parse_trace, text.encode(), "rates.csv")


@pytest.mark.parametrize(
    ("time", "rates", "place"),
    [
        ([], [], "time"),
        ([0.0, math.nan], [1.0, 2.0], r"time\[1\]"),
        ([0.0, 60.0], [1.0, -2.0], r"rates\[1, 0\]"),
        ([0.0, 60.0], [math.nan, 2.0], r"rates\[0, 0\]"),
    ],
)
def test_traces_of_python_are_checked(time, rates, place):
    with pytest.raises(SettingError, match=place):
        RateTrace(np.array(time), ("rate",), np.array(rates).reshape(-1, 1))


def test_what_has_no_effect_beside_or_without_a_trace_is_refused():
    with pytest.raises(SettingError, match="quantile"):
        plan(joined(), quantile=0.5, offers=[Offer("a", 1.0)])
    with pytest.raises(SettingError, match="rate and trace"):
        plan(pipeline(), rate=5, trace=parse_trace(b"time,rate\n0,1", "t"), offers=[Offer("a", 1)])
