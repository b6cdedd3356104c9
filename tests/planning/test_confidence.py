"""Plans that hold: at the lower end of what is predicted, with bounds of what they say."""

from dataclasses import replace
from math import log

import numpy as np
import pytest
from planning_cases import pipeline

import streamplace
from streamplace.errors import SettingError
from streamplace.io.ledger import errors_for
from streamplace.model.graph import PROFILE_WINDOWS, StreamGraph
from streamplace.model.operators import Operator, Window
from streamplace.model.prediction_intervals import PredictionErrors
from streamplace.model.streams import Stream
from streamplace.placers.registry import Budget
from streamplace.planning.offers import Catalogue, Offer
from streamplace.planning.planner import planned, planned_most
from streamplace.planning.problem import PlannerSettings, PlanProblem
from streamplace.planning.traces import parse_trace, planned_for_trace
from streamplace.planning.verification import contradictions

OFFERS = Catalogue.of(
    [Offer("small", 0.1, mips=4.0, cores=2), Offer("large", 0.35, mips=4.0, cores=8)]
)
ERRORS = PredictionErrors.of(
    {str(i): [log(0.8)] for i in range(9)}, 0.9, "errors of 9 runs of 9 jobs"
)
"""Every job has carried 80 % of what was predicted."""
ASKED = PlannerSettings(1 - 1 / 1.1, budget=Budget(None, 5_000))
CONFIDENT = replace(ASKED, errors=ERRORS)
MEASURED = replace(pipeline(), attributes={PROFILE_WINDOWS: 4})


TRACE = parse_trace(b"time,rate\n0,1000\n3600,200\n", "rates.csv")


def test_a_confident_plan_carries_the_rate_and_its_headroom_at_the_lower_end():
    result = planned(pipeline(), OFFERS, CONFIDENT)
    assert result.at_least >= 1.1 * result.rate * (1 - 1e-9)
    assert result.headroom == pytest.approx(1 - 0.8 / 1.1)
    assert not [*contradictions(PlanProblem.of(pipeline(), OFFERS, CONFIDENT), result)]


def test_bounds_are_bounds_of_what_they_say():
    """The bound of confident plans may be above the cost of plans of the prediction."""
    for rate in (200.0, 1100.0, 2300.0):
        graph = pipeline().at_rate(rate)
        point, confident = (planned(graph, OFFERS, asked) for asked in (ASKED, CONFIDENT))
        assert float(point.bound) <= point.cost <= confident.cost * (1 + 1e-9)
        assert point.bound <= confident.bound
        assert float(confident.bound) <= confident.cost * (1 + 1e-9)
        again = planned(graph.at_rate(rate / 0.8), OFFERS, ASKED)
        assert again.bound == confident.bound
        told = " ".join(str(confident.report()).split())
        assert "No plan that carries the rate at the lower end of its prediction costs less" in told
        assert "lower end" not in str(point.report())
        assert confident.to_json()["bound_of"] == "the lower end of the prediction"
        assert "bound_of" not in point.to_json()


def test_the_highest_rate_is_one_that_is_carried_at_the_lower_end():
    cluster = streamplace.Cluster.uniform(3, mips=4.0)
    point, confident = (planned_most(pipeline(), cluster, asked) for asked in (ASKED, CONFIDENT))
    assert confident.rate == pytest.approx(0.8 * point.rate, rel=0.05)
    assert ERRORS.at_least(confident.carries) >= 1.1 * confident.rate * (1 - 1e-6)


@pytest.mark.parametrize("spread", [0.0, 0.1])
def test_the_reserve_is_told_part_by_part(spread):
    """For an unsteady profile there is one part more, and the rest is as for a steady one."""
    asked = replace(ASKED, errors=ERRORS.for_spread(spread) if spread else ERRORS)
    result = planned(pipeline(), OFFERS, asked)
    parts = {"the share that stays free": 1.1, "what the profile does not know": 1.25}
    if spread:
        more = 1.25 ** (np.hypot(0.1, spread) / np.hypot(0.1, 0.03) - 1)
        parts["CPU per tuple that varied in the profile"] = more
    assert result.to_json()["reserves"] == pytest.approx(parts)
    assert result.headroom == pytest.approx(1 - 1 / np.prod([*parts.values()]))
    told = ", times ".join(f"{factor:.3g} for {purpose}" for purpose, factor in parts.items())
    whole = f"The plan is for {np.prod([*parts.values()]):.3g} times the rate: {told}."
    assert whole in " ".join(str(result.report()).split())
    assert result.interval.value == result.carries
    assert spread or result.interval.low == pytest.approx(0.8 * result.carries)


def test_measured_graphs_are_planned_with_confidence_and_others_are_not():
    bare = {"rate": 1000.0, "offers": OFFERS, "budget": Budget(None, 5_000)}
    drawn = streamplace.plan(pipeline(), **bare)
    assert drawn.errors is None
    assert drawn.interval is None
    assert "confidence" not in str(drawn.report())
    sure = streamplace.plan(MEASURED, **bare)
    assert sure.errors == errors_for(MEASURED)
    assert sure.at_least >= 1000.0 * (1 - 1e-9)
    itself = streamplace.plan(MEASURED, confidence=0, **bare)
    assert (itself.errors, itself.cost) == (None, drawn.cost)
    half = streamplace.plan(MEASURED, confidence=0.5, **bare)
    assert half.errors.least > sure.errors.least
    with pytest.raises(SettingError):
        streamplace.plan(pipeline(), confidence=0.9, **bare)


def test_a_placement_of_a_measured_graph_has_an_interval():
    """Its sources emit no more than they are offered, whatever the devices would carry."""
    cluster = streamplace.Cluster.uniform(2, mips=4.0)
    for rate, is_full in ((1.0, False), (1000.0, True)):
        graph = MEASURED.at_rate(rate)
        result = streamplace.place(graph, cluster)
        carried = result.value * rate
        assert result.interval.value == pytest.approx(carried)
        assert result.interval.high <= rate
        if is_full:
            assert result.interval == pytest.approx(errors_for(MEASURED).interval(carried))
            assert "Throughput: " in str(result.report())
        bare = streamplace.place(pipeline().at_rate(rate), cluster)
        assert bare.interval is None
        assert "Throughput: " not in str(bare.report())
    assert streamplace.place(MEASURED, cluster, objective="latency").interval is None


def test_a_placement_carries_what_its_constant_loads_leave():
    """The device is 80 % full, of which 50 % is used at any rate."""
    operators = [Operator("source", ipt=1e5, rate=7500.0), Operator("commit", constant=1250.0)]
    streams = [Stream("source", "commit")]
    graph = StreamGraph.of("pipeline", operators, streams, dict(MEASURED.attributes))
    result = streamplace.place(graph, streamplace.Cluster.uniform(1))
    assert result.capacity.value == pytest.approx(12_500.0)


@pytest.mark.slow
def test_hours_and_schedules_of_a_measured_graph_have_intervals():
    """Of what the plan for each hour alone carries, and of each plan of a schedule."""
    bare = {"trace": TRACE, "offers": OFFERS, "budget": Budget(None, 2_000)}
    result = streamplace.plan(MEASURED, **bare)
    for hour in result.hours:
        assert hour.interval.low < hour.interval.value < hour.interval.high
    assert result.hours[0].interval == result.interval
    assert result.to_json()["hours"][1]["interval"] == result.hours[1].interval._asdict()
    assert "carries, tuples/s" in str(result.report())
    schedule = streamplace.plan_schedule(MEASURED, **bare)
    for plan, document in zip(schedule.plans, schedule.to_json()["plans"], strict=True):
        assert document["interval"] == plan.interval._asdict()
    assert "carries, tuples/s" in str(schedule.report())
    curve = streamplace.plan_frontier(MEASURED, [1000], offers=OFFERS, budget=Budget(None, 2_000))
    assert "carries, tuples/s" in str(curve)
    drawn = streamplace.plan(pipeline(), **bare)
    assert [hour.interval for hour in drawn.hours] == [None, None]
    assert "interval" not in drawn.to_json()["hours"][0]
    assert "carries, tuples/s" not in str(drawn.report())


def test_an_hour_is_carried_with_the_confidence_of_the_plan():
    """Three hours of four are; the model alone would say so of the fourth, too."""
    point = planned(pipeline(), OFFERS, ASKED)
    rates = [0.5, 0.5, 0.79, 0.9]
    rows = "".join(f"{3600 * i},{share * point.carries}\n" for i, share in enumerate(rates))
    trace = parse_trace(f"time,rate\n{rows}".encode(), "rates.csv")

    def carried(settings):
        result = planned_for_trace(
            pipeline(), trace, 0.5, lambda _: replace(point, errors=settings.errors), _no_plans
        )
        return [hour.carried for hour in result.hours]

    assert carried(ASKED) == [True] * 4
    assert carried(CONFIDENT) == [True, True, True, False]


def test_an_hour_whose_windows_emit_as_much_at_any_rate_is_carried():
    """The window fills the machine at 125 tuples/s, for which the plan is made, and at 100."""
    operators = [
        Operator("source", rate=100.0, max_parallelism=1),
        Operator("window", window=Window(1.0, 1.0, base=100.0), max_parallelism=1),
        Operator("sink", ipt=1e4, max_parallelism=1),
    ]
    streams = [Stream("source", "window"), Stream("window", "sink")]
    graph = StreamGraph.of("windowed", operators, streams)
    offers = Catalogue.of([Offer("one", 1.0, mips=1.0, at_most=1)])
    asked = PlannerSettings(budget=Budget(None, 1000), errors=ERRORS)
    trace = parse_trace(b"time,rate\n0,100\n", "rates.csv")
    result = planned_for_trace(
        graph, trace, 1.0, lambda peak: planned(peak, offers, asked), _no_plans
    )
    assert [hour.carried for hour in result.hours] == [True]


def _no_plans(graphs):
    return [None] * len(graphs)
