"""Plans: they carry their rate, cost no less than the bound, and on small problems the least."""

import json
from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from placer_cases import make_busy
from planning_cases import (
    MOST_MACHINES,
    all_contents,
    carried,
    chain,
    cheapest_by_brute_force,
    small_questions,
)

from streamplace.errors import ProblemError, StreamplaceError
from streamplace.model import Operator, Stream, StreamGraph
from streamplace.model.devices import SLACK
from streamplace.model.subtasks import with_parallelism
from streamplace.placers.meter import ENDLESS, Remaining
from streamplace.placers.registry import Budget
from streamplace.planning import planner
from streamplace.planning.demand import demand_of
from streamplace.planning.deployment import deployment_of
from streamplace.planning.offers import Catalogue, Offer
from streamplace.planning.packing import PackedMachines, anneal, deal, first_fit, packing_of, uses
from streamplace.planning.planner import planned, planned_most
from streamplace.planning.problem import PlannerSettings, PlanProblem
from streamplace.planning.rates import MACHINES_PER_SECOND
from streamplace.planning.search import PlanSearch
from streamplace.report.pages import document_of

ASKED = PlannerSettings(budget=Budget(None, 10**6))
TEN = Offer("a", 1.0, mips=10.0)


def plan_on(graph, *offers, **options):
    """Plan on offers, with changed settings."""
    return planned(graph, Catalogue.of(offers), replace(ASKED, **options))


@given(small_questions())
def test_a_plan_of_a_small_problem_is_the_cheapest(question):
    """No plan of up to three machines costs less, also if all operators or one are kept."""
    graph, offers, keeps = question
    best = cheapest_by_brute_force(demand_of(graph, fixed=keeps), offers, MOST_MACHINES, finest=4)
    try:
        result = planned(graph, offers, replace(ASKED, keep_parallelism=keeps))
    except ProblemError:
        assert best == float("inf")
        return
    for one in graph.operators:
        assert one.name not in question.kept or result.parallelism[one.name] == one.parallelism
    assert result.cost <= best * (1 + 1e-9)
    assert float(result.bound) <= result.cost * (1 + 1e-9)
    assert float(result.bound) <= best * (1 + 1e-9)
    assert carried(result) >= 1 - 1e-8


def test_what_a_forward_stream_joins_to_a_kept_operator_keeps_its_parallelism():
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
    kept = frozenset({"detect"})
    three = {"src": 1, "parse": 3, "detect": 3}
    assert plan_on(graph, TEN, keep_parallelism=kept).parallelism == three
    assert plan_on(graph, TEN).parallelism == {"src": 1, "parse": 1, "detect": 1}
    alone = with_parallelism(graph, np.array([1, 1, 3], np.int32))
    assert plan_on(alone, TEN, keep_parallelism=kept).parallelism == three


FORWARD = Operator("u", ipt=1000, rate=1000, parallelism=3), Operator("v", parallelism=2)


@pytest.mark.parametrize(
    ("ends", "kept", "message"),
    [
        (FORWARD, {"u", "v"}, "'u' and 'v' .*3 and 2"),
        ((FORWARD[0], replace(FORWARD[1], max_parallelism=2)), {"u"}, "'u' .*3, .*'v' .*2"),
        # the source has fewer splits than the receiver has subtasks
        (
            (replace(FORWARD[0], parallelism=1, max_parallelism=1), FORWARD[1]),
            {"u", "v"},
            "'u' and 'v' .*1",
        ),
        (FORWARD, {"map"}, "'map'"),
    ],
)
def test_bad_numbers_are_named(ends, kept, message):
    with pytest.raises(StreamplaceError, match=message):
        plan_on(chain(*ends, kind="forward"), TEN, keep_parallelism=frozenset(kept))


def test_a_graph_may_say_whose_parallelism_is_kept():
    """As that of an operator to which every tuple is copied once for each subtask."""
    operators = [
        Operator("src", ipt=1000, rate=1000),
        Operator("all", ipt=1000, parallelism=3),
        Operator("out", ipt=1000, parallelism=3),
    ]
    streams = [Stream("src", "all", 3.0, partitioning="rebalance"), Stream("all", "out", 0.1)]
    graph = StreamGraph.of("copies", operators, streams, {"keeps parallelism of all": "copies"})
    assert plan_on(graph, TEN).parallelism == {"src": 1, "all": 3, "out": 1}


def test_a_plan_of_state_that_fits_on_no_single_machine_has_a_report_of_its_subtasks():
    graph = StreamGraph.of("state", [Operator("v", ipt=1, rate=1, memory=10)])
    result = plan_on(graph, Offer("m", 1.0, memory=4.0))
    assert result.machines == {"m": 3}
    (problem,) = document_of(result.report())["problems"]
    assert problem["operators"]["name"] == ["v#0", "v#1", "v#2"]


@pytest.mark.parametrize(
    ("operators", "memory", "machines"),
    [
        # three times 0.7 is less than 2.1 by rounding
        ([Operator("v", ipt=1, rate=1.0, memory=2.1, parallelism=3)], 0.7, 3),
        (  # each of twelve holds one subtask of 5 bytes and two of 3
            [
                Operator("a", ipt=1, rate=1, memory=60, parallelism=12),
                Operator("b", ipt=1, memory=72, parallelism=24),
            ],
            11.0,
            12,
        ),
    ],
)
def test_memory_fills_machines(operators, memory, machines):
    result = plan_on(chain(*operators), Offer("m", 1.0, memory=memory), keep_parallelism=True)
    assert result.cost == result.bound == machines


@given(small_questions(), st.data())
def test_contents_that_fit_carry_the_rate(question, data):
    """What a machine's contents take is no less than what the simulator says, in any order."""
    graph, offers, keeps = question
    demand = demand_of(graph, fixed=keeps)
    numbers = []
    for v in np.unique(demand.tied, return_index=True)[1].tolist():
        limit = int(demand.parallelism_limit[v])
        numbers.append(data.draw(st.integers(limit if demand.keeps[v] else 1, limit or 3)))
    p = np.array(numbers, np.int32)[demand.tied]
    kinds = np.zeros(data.draw(st.integers(1, 2)), np.int32)
    contents = list(all_contents(p, len(kinds)))
    rows = contents[data.draw(st.integers(0, len(contents) - 1))]
    packing = packing_of(demand, offers, p)
    if uses(packing, kinds, rows).max() <= 1:
        assert deployment_of(demand, offers, PackedMachines(kinds, p, rows)).carries


def widest(question, offers):
    """The operators of a question at their largest parallelism, or 3."""
    demand = demand_of(question.graph, fixed=question.keeps)
    most = np.where(demand.parallelism_limit > 0, demand.parallelism_limit, 3)
    each = [most[demand.tied == tied].min() for tied in demand.tied]
    return packing_of(demand, offers, np.array(each, np.int32))


@given(small_questions(), st.booleans())
def test_first_fit_overfills_no_machine(question, is_sharing):
    """What an operator adds to a machine is what the machine then uses more, slots included."""
    offers = replace(question.catalogue, slot_sharing=is_sharing)
    packing = widest(question, offers)
    kinds = np.repeat(np.arange(len(offers.offers), dtype=np.int32), 3)
    rows, left = first_fit(packing, kinds)
    assert uses(packing, kinds, rows).max() <= 1 + SLACK
    assert (rows.sum(axis=0) + left == packing.parallelism).all()


@given(small_questions(), st.integers(0, 2**64 - 1))
def test_a_seed_moves_the_same_subtasks_of_a_copy(question, seed):
    packing = widest(question, question.catalogue)
    kinds = np.repeat(np.arange(len(packing.capacity), dtype=np.int32), 2)
    start = deal(packing, kinds)
    before = start.copy()
    ends = [anneal(packing, kinds, start, seed, 50, ENDLESS) for _ in range(2)]
    assert (ends[0][0] == ends[1][0]).all()
    assert ends[0][1] == ends[1][1]
    assert (ends[0][0].sum(axis=0) == start.sum(axis=0)).all()
    assert (start == before).all()


def test_moves_end_when_they_are_told_to():
    """They look at the clock about every tenth of a millisecond."""
    operators = [Operator(f"v{i}", ipt=1000, rate=1e6, max_parallelism=2) for i in range(2)]
    demand = demand_of(StreamGraph.of("two", operators))
    packing = packing_of(demand, Catalogue.of([TEN]), np.array([2, 2], np.int32))
    kinds, clock = np.zeros(2, np.int32), count()
    remaining = Remaining(1.5, None, lambda: float(next(clock)))
    anneal(packing, kinds, deal(packing, kinds), 0, 10**9, remaining)
    assert next(clock) == 3


def test_a_machine_is_left_out_where_the_others_carry_the_rate_up_to_rounding():
    """First fit puts parts of 40 % together, which takes five machines. Four are full exactly."""
    unit = 19 / 3
    operators = [
        Operator(f"v{i}", ipt=1000, rate=part * unit, max_parallelism=1)
        for i, part in enumerate([4] * 4 + [3] * 8)
    ]
    offers = Catalogue.of([Offer("small", 1.0, mips=10 * unit * 1000 / 1e6)])
    hasty = PlannerSettings(budget=Budget(None, 5000))
    result = planned(StreamGraph.of("parts", operators), offers, hasty)
    assert result.cost == result.bound == 4
    assert result.carries < result.rate  # by the last bit


def test_offers_that_no_operator_fits_on_at_a_rate_are_not_used():
    """Small machines are the cheapest at low rates; the highest rate is that of large ones."""
    graph = StreamGraph.of("g", [Operator("v", ipt=1e6, rate=10, max_parallelism=1)])
    offers = Catalogue.of([Offer("small", 0.1, mips=1000), Offer("large", 0.5, mips=4000)])
    low, high = (planned(graph.at_rate(rate), offers, ASKED) for rate in (500, 3500))
    assert (low.machines, high.machines) == ({"small": 1}, {"large": 1})
    assert planned_most(graph, offers, ASKED).rate == 4000
    with pytest.raises(ProblemError, match="up to 4000 tuples/s"):
        planned(graph.at_rate(5000), offers, ASKED)
    required = Catalogue.of([replace(offers.offers[0], at_least=1), offers.offers[1]])
    assert planned(graph.at_rate(3500), required, ASKED).machines == {"small": 1, "large": 1}


def test_the_highest_rate_is_sought_within_the_budget(monkeypatch):
    """On a busy machine first fit names a rate, on as many machines as a second can fill."""
    make_busy(monkeypatch)
    monkeypatch.setattr(planner, "LARGE", 10)
    graph = StreamGraph.of("g", [Operator("v", ipt=1e6, rate=10, max_parallelism=5000)])
    small = Catalogue.of([Offer("small", 0.1, mips=1000)])
    result = planned_most(graph, small, PlannerSettings(budget=Budget(1.0)))
    assert 1000 * MACHINES_PER_SECOND / 4 <= result.rate <= 1000 * (MACHINES_PER_SECOND + 1)
    assert "The budget ended the search for the highest rate" in str(result)
    assert "instead of 1 s" in str(result)  # not of what was left for the plan
    assert carried(result) >= 1 - 1e-8


def test_the_machines_of_the_highest_rate_are_packed_once(monkeypatch):
    """The machines that the search for the rate packs are the plan if no time is left."""
    make_busy(monkeypatch)
    packed, pack = [], PlanSearch.pack
    monkeypatch.setattr(PlanSearch, "pack", lambda *a: packed.append(pack(*a)) or packed[-1])
    operators = [Operator("a", ipt=1e5, payload=200, rate=10), Operator("b", ipt=3e5)]
    graph = StreamGraph.of("g", operators, [Stream("a", "b")])
    offers = Offer("small", 0.1, egress=1e8), Offer("large", 0.9, cores=32, egress=1e10)
    result = planned_most(graph, Catalogue.of(offers), PlannerSettings(budget=Budget(1.0)))
    assert sum(machines is not None for machines in packed) == 1
    assert carried(result) >= 1 - 1e-8


def test_a_graph_that_uses_nothing_takes_the_cheapest_machine():
    """No plan has fewer machines than one; it carries any rate, which JSON tells as null."""
    graph = StreamGraph.of("free", [Operator("src", rate=1.0)])
    result = plan_on(graph, Offer("a", 2.0), Offer("b", 1.0))
    assert (result.cost, result.bound, result.gap) == (1, 1, 0)
    assert result.is_cheapest
    document = result.to_json()
    assert document["carries"] is None
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert "The placement carries any rate." in str(result)
    assert "report.html" in result.files()


def test_an_operator_may_have_as_many_subtasks_as_its_rate_needs():
    """12.5 million MIPS are 5,000 cores, on machines of 64."""
    graph = StreamGraph.of("wide", [Operator("a", ipt=1e6, rate=1.25e7)])
    result = plan_on(graph, Offer("large", 1.0, cores=64))
    assert result.machines == {"large": 79}
    assert result.parallelism == {"a": 5000}


def test_parallelism_suits_the_fast_cores_where_slots_are_few():
    """The operator that the slow core cannot run takes one slot of the fast machine, not two."""
    operators = [Operator("a", ipt=2e6, rate=1000), Operator("b", ipt=5e5)]
    graph = StreamGraph.of("pair", operators, [Stream("a", "b")])
    slow = Offer("slow", 1.0, mips=1000, slots=1, at_most=1)
    fast = Offer("fast", 2.0, mips=2500, slots=1, at_most=1)
    assert plan_on(graph, slow, fast).machines == {"slow": 1, "fast": 1}


def test_a_plan_of_equal_cost_takes_the_place_of_none():
    """So that a search ends, and the first of equal plans stays."""
    graph = StreamGraph.of("one", [Operator("src", ipt=1e3, rate=100.0)])
    problem = PlanProblem.of(graph, Catalogue.of([Offer("small", 0.1)]))
    search = PlanSearch(problem, lambda: ENDLESS, None)
    packed = search.pack([1], 10)
    assert [search.offer(packed), search.offer(packed)] == [True, False]
