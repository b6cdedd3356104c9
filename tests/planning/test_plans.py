"""Plans: they carry their rate, cost no less than the bound, and on small problems the least."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planning_cases import (
    all_contents,
    carried,
    catalogues,
    cheapest_by_brute_force,
    pipeline,
    plannable,
)

from streamplace.errors import GraphError, ProblemError
from streamplace.model import Operator, Stream, StreamGraph
from streamplace.model.expansion import with_parallelism
from streamplace.placers.registry import Budget
from streamplace.planning.demand import demand_of
from streamplace.planning.deployment import deployment_of
from streamplace.planning.offers import Catalogue, Offer
from streamplace.planning.packing import PackedMachines, packing_of, uses
from streamplace.planning.planner import planned, planned_most
from streamplace.planning.problem import PlanSettings
from streamplace.planning.result import PlanCurve
from streamplace.report.documents import document_of

ASKED = PlanSettings(budget=Budget(None, 10**6))
SMALL = Offer("small", 0.1, mips=4.0, cores=2)
GPU = frozenset({"gpu"})


@settings(max_examples=30, deadline=None)
@given(plannable(most=2), catalogues(most=2))
def test_a_plan_of_a_small_problem_is_the_cheapest(graph: StreamGraph, offers: Catalogue) -> None:
    """No plan of up to three machines costs less, and every plan carries the rate."""
    best = cheapest_by_brute_force(demand_of(graph), offers, 3)
    try:
        result = planned(graph, offers, ASKED)
    except ProblemError:
        assert best == float("inf")
        return
    assert result.cost <= best * (1 + 1e-9)
    assert float(result.bound) <= result.cost * (1 + 1e-9)
    assert carried(result) >= 1 - 1e-8


@settings(max_examples=25, deadline=None)
@given(plannable(most=2), catalogues(most=2), st.data())
def test_parallelism_is_kept(graph: StreamGraph, offers: Catalogue, data: st.DataObject) -> None:
    """The plan is the cheapest of those in which all operators or one have that of the graph."""
    names, limits = graph.operators.name, graph.operators.max_parallelism.tolist()
    only = data.draw(st.sampled_from([None, *names]))
    kept = True if only is None else frozenset({only})
    p = np.array([data.draw(st.integers(1, limit)) for limit in limits], np.int32)
    given_graph = with_parallelism(graph, p)
    best = cheapest_by_brute_force(demand_of(given_graph, fixed=kept), offers, 3)
    try:
        result = planned(given_graph, offers, replace(ASKED, keep_parallelism=kept))
    except ProblemError:
        assert best == float("inf")
        return
    for name, number in zip(names, p.tolist(), strict=True):
        assert only not in (None, name) or result.parallelism[name] == number
    assert float(result.bound) <= best * (1 + 1e-9)
    assert result.cost <= best * (1 + 1e-9)
    assert carried(result) >= 1 - 1e-8


def test_what_a_forward_stream_joins_to_a_kept_operator_keeps_its_parallelism() -> None:
    operators = [
        Operator("src", ipt=1000, payload=1, rate=1000),
        Operator("parse", ipt=1000, payload=1, parallelism=3),
        Operator("detect", ipt=1000, parallelism=3),
    ]
    streams = [
        Stream("src", "parse", partitioning="rebalance"),
        Stream("parse", "detect", partitioning="forward"),
    ]
    graph = StreamGraph.of("job", operators, streams)
    offers = Catalogue.of([Offer("a", 1.0, mips=10.0)])
    kept = replace(ASKED, keep_parallelism=frozenset({"detect"}))
    assert planned(graph, offers, kept).parallelism == {"src": 1, "parse": 3, "detect": 3}
    assert planned(graph, offers, ASKED).parallelism == {"src": 1, "parse": 1, "detect": 1}
    alone = with_parallelism(graph, np.array([1, 1, 3], np.int32))
    assert planned(alone, offers, kept).parallelism == {"src": 1, "parse": 3, "detect": 3}


@pytest.mark.parametrize(
    ("parse", "detect", "kept", "message"),
    [
        (
            {"parallelism": 3},
            {},
            frozenset({"parse", "detect"}),
            "'parse' and 'detect' are to keep their parallelisms 3 and 2, but",
        ),
        (
            {"parallelism": 3},
            {"max_parallelism": 2},
            frozenset({"parse"}),
            "'parse' is to keep its parallelism 3, but .* 'detect' with max_parallelism 2",
        ),
        (
            {"max_parallelism": 1},  # the source has fewer splits than the receiver has subtasks
            {},
            True,
            "'parse' and 'detect' are to keep their parallelisms 1",
        ),
    ],
)
def test_kept_parallelisms_that_forward_streams_exclude_are_named(
    parse: dict[str, int], detect: dict[str, int], kept: bool | frozenset[str], message: str
) -> None:
    operators = [
        Operator("parse", ipt=1000, rate=1000, **parse),
        Operator("detect", ipt=1000, parallelism=2, **detect),
    ]
    graph = StreamGraph.of("job", operators, [Stream("parse", "detect", partitioning="forward")])
    asked = replace(ASKED, keep_parallelism=kept)
    with pytest.raises(GraphError, match=message):
        planned(graph, Catalogue.of([Offer("a", 1.0, mips=10.0)]), asked)


def test_an_operator_to_keep_must_be_there() -> None:
    graph = StreamGraph.of("job", [Operator("src", rate=1.0)])
    with pytest.raises(ProblemError, match="graph 'job' has no operator 'map'"):
        demand_of(graph, fixed={"map"})


def test_a_graph_may_say_whose_parallelism_is_kept() -> None:
    """As that of an operator to which every tuple is copied once for each subtask."""
    operators = [
        Operator("src", ipt=1000, rate=1000),
        Operator("all", ipt=1000, parallelism=3),
        Operator("out", ipt=1000, parallelism=3),
    ]
    streams = [Stream("src", "all", 3.0, partitioning="rebalance"), Stream("all", "out", 0.1)]
    graph = StreamGraph.of("copies", operators, streams, {"keeps parallelism of all": "copies"})
    result = planned(graph, Catalogue.of([Offer("a", 1.0, mips=10.0)]), ASKED)
    assert result.parallelism == {"src": 1, "all": 3, "out": 1}


def test_a_plan_of_state_that_fits_on_no_single_machine_has_a_report_of_its_subtasks() -> None:
    """Ten bytes are divided among three machines of four."""
    graph = StreamGraph.of("state", [Operator("v", ipt=1, rate=1, memory=10)])
    result = planned(graph, Catalogue.of([Offer("m", 1.0, memory=4.0)]), ASKED)
    assert result.machines == {"m": 3}
    (problem,) = document_of(result.report())["problems"]
    assert problem["operators"]["name"] == ["v#0", "v#1", "v#2"]


def test_machines_that_a_subtask_fills_with_memory_are_used() -> None:
    """Three times 0.7 is less than 2.1 by rounding."""
    only = Operator("v", ipt=1, rate=1.0, memory=2.1, parallelism=3)
    offers = Catalogue.of([Offer("small", 1.0, memory=0.7)])
    kept = replace(ASKED, keep_parallelism=True)
    result = planned(StreamGraph.of("one", [only]), offers, kept)
    assert result.cost == result.bound == 3


def test_machines_that_are_full_of_memory_are_packed() -> None:
    """Each of twelve holds one subtask of 5 bytes and two of 3."""
    operators = [
        Operator("a", ipt=1, rate=1, memory=60, parallelism=12),
        Operator("b", ipt=1, memory=72, parallelism=24),
    ]
    graph = StreamGraph.of("full", operators, [Stream("a", "b")])
    offers = Catalogue.of([Offer("m", 1.0, memory=11.0)])
    result = planned(graph, offers, replace(ASKED, keep_parallelism=True))
    assert result.machines == {"m": 12}
    assert result.is_cheapest


@given(plannable(), catalogues(), st.data())
def test_contents_that_fit_carry_the_rate(
    graph: StreamGraph, offers: Catalogue, data: st.DataObject
) -> None:
    """What a machine's contents take is no less than what the simulator says, in any order."""
    demand = demand_of(graph)
    p = np.array([data.draw(st.integers(1, int(most))) for most in demand.most], np.int32)
    kinds = np.zeros(data.draw(st.integers(1, 2)), np.int32)
    contents = list(all_contents(p, len(kinds)))
    rows = contents[data.draw(st.integers(0, len(contents) - 1))]
    packing = packing_of(demand, offers, p)
    if uses(packing, kinds, rows).max() <= 1:
        assert deployment_of(demand, offers, PackedMachines(kinds, p, rows)).carries


def test_a_machine_is_left_out_where_the_others_carry_the_rate_up_to_rounding() -> None:
    """First fit puts parts of 40 % together, which takes five machines. Four are full exactly."""
    unit = 19 / 3
    operators = [
        Operator(f"v{i}", ipt=1000, rate=part * unit, max_parallelism=1)
        for i, part in enumerate([4] * 4 + [3] * 8)
    ]
    offers = Catalogue.of([Offer("small", 1.0, mips=10 * unit * 1000 / 1e6)])
    hasty = PlanSettings(budget=Budget(None, 1))
    result = planned(StreamGraph.of("parts", operators), offers, hasty)
    assert result.cost == result.bound == 4
    assert result.carries < result.rate  # by the last bit


def test_offers_that_no_operator_fits_on_at_a_rate_are_not_used() -> None:
    """Small machines are the cheapest at low rates; the highest rate is that of large ones."""
    graph = StreamGraph.of("g", [Operator("v", ipt=1e6, rate=10, max_parallelism=1)])
    offers = Catalogue.of([Offer("small", 0.1, mips=1000), Offer("large", 0.5, mips=4000)])
    low, high = (planned(graph.at_rate(rate), offers, ASKED) for rate in (500, 3500))
    assert (low.machines, high.machines) == ({"small": 1}, {"large": 1})
    assert planned_most(graph, offers, ASKED).rate == 4000
    with pytest.raises(ProblemError, match="a plan was found for up to 4000 tuples/s"):
        planned(graph.at_rate(5000), offers, ASKED)
    required = Catalogue.of([replace(offers.offers[0], at_least=1), offers.offers[1]])
    assert planned(graph.at_rate(3500), required, ASKED).machines == {"small": 1, "large": 1}


def test_a_graph_that_uses_nothing_takes_the_cheapest_machine() -> None:
    """No plan has fewer machines than one; it carries any rate, which JSON tells as null."""
    graph = StreamGraph.of("free", [Operator("src", rate=1.0)])
    result = planned(graph, Catalogue.of([Offer("a", 2.0), Offer("b", 1.0)]), ASKED)
    assert (result.cost, result.bound, result.gap) == (1, 1, 0)
    assert result.is_cheapest
    document = result.to_json()
    assert document["carries"] is None
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert "The placement carries any rate." in str(result)
    assert "report.html" in result.files()


def test_bounds_are_told_rounded_down_and_gaps_rounded_up() -> None:
    result = planned(pipeline(), Catalogue.of([SMALL]), ASKED)

    def told(share: Fraction) -> str:
        bounded = replace(result, bound=share * result.bound)
        curve = PlanCurve((bounded.rate,), (bounded,))
        return " ".join(f"{bounded} {curve.report()}".split())

    assert f"No plan costs less than {0.666666 * result.cost:.6g};" in told(Fraction(2, 3))
    assert "at most 50.0 % above the cheapest" in told(Fraction(2, 3))
    nearly = told(Fraction(9999, 10000))
    assert "at most 0.1 % above the cheapest" in nearly
    assert " 0.1 % " in nearly.partition("above the bound")[2]


def test_an_operator_may_have_as_many_subtasks_as_its_rate_needs() -> None:
    """12.5 million MIPS are 5,000 cores, on machines of 64."""
    graph = StreamGraph.of("wide", [Operator("a", ipt=1e6, rate=1.25e7)])
    result = planned(graph, Catalogue.of([Offer("large", 1.0, cores=64)]), ASKED)
    assert result.machines == {"large": 79}
    assert result.parallelism == {"a": 5000}


def test_parallelism_suits_the_fast_cores_where_slots_are_few() -> None:
    """The operator that the slow core cannot run takes one slot of the fast machine, not two."""
    operators = [Operator("a", ipt=2e6, rate=1000), Operator("b", ipt=5e5)]
    graph = StreamGraph.of("pair", operators, [Stream("a", "b")])
    offers = [
        Offer("slow", 1.0, mips=1000, slots=1, at_most=1),
        Offer("fast", 2.0, mips=2500, slots=1, at_most=1),
    ]
    assert planned(graph, Catalogue.of(offers), ASKED).machines == {"slow": 1, "fast": 1}
