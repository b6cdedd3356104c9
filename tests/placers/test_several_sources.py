"""Exact with several groups of sources: bounds against every placement, regions, enumeration."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from placer_cases import all_legal, best_of_all, small_problems

from streamplace.families.branched import Branched, branched
from streamplace.model import Cluster, Operator, Problem, Stream, StreamGraph
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.exact import several_sources
from streamplace.placers.exact.enumeration import are_few, legal_placements
from streamplace.placers.exact.fair_search import region_within
from streamplace.placers.exact.units import units_of
from streamplace.placers.registry import PLACERS, Budget

limited = partial(small_problems, is_limited=True)


def proven(problem, budget):
    """Place by exact."""
    return PLACERS["exact"].place(problem, OBJECTIVES["throughput"], budget=budget)


@pytest.mark.parametrize("sources", [2, 3, 4, 5])
@given(data=st.data())
def test_nothing_beats_the_optimum_beside_limits(sources, data):
    problem = data.draw(limited(sources, sources + 3))
    result = proven(problem, Budget(seconds=20))
    assert result.value == pytest.approx(best_of_all(problem), abs=1e-8)
    assert result.bound == pytest.approx(result.value, abs=2e-8)


@pytest.mark.parametrize("sources", [1, 2])
@given(data=st.data())
def test_no_placement_that_keeps_up_is_below_the_bound(sources, data):
    """By the load of the bottleneck that users see, also where subtasks have several limits."""
    problem = data.draw(limited(sources, sources + 3))
    result, judge = proven(problem, Budget(seconds=20)), OBJECTIVES["throughput"]
    if result.least_load is None or problem.n_devices**problem.n_operators > 100:
        return
    for place in all_legal(problem):
        explained: Any = judge.explained(problem, problem.placement(place))
        full = explained.bottleneck.load >= result.least_load * (1 - 1e-6)
        assert explained.value < 1 or full


@given(data=st.data(), evaluations=st.integers(1, 2000))
def test_the_bound_of_many_groups_holds(data, evaluations):
    """Linear programmes over the rates of five sources, where placements count as too many."""
    problem = data.draw(limited(5, 8))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(several_sources, "MOST_PLACEMENTS", 0)
        result = proven(problem, Budget(evaluations=evaluations))
    optimum = best_of_all(problem)
    assert result.value <= optimum + 1e-9
    assert result.bound >= optimum - 1e-9


def fed_by(graph, *more):
    """A graph of the benchmark at twice its rate, with further sources that feed an operator."""
    operators, streams = list(graph.at_rate(2e4).operators), list(graph.streams)
    source = operators[0]
    for i, (target, rate) in enumerate(more):
        operators.append(replace(source, name=f"more{i}", rate=rate))
        streams.append(Stream(f"more{i}", target))
    return Problem(StreamGraph.of("fed", operators, streams), Cluster.uniform(5))


@pytest.mark.parametrize(
    "more",
    [
        pytest.param([("b1s1", 1e-6)], id="a tiny one"),
        pytest.param([("b1s2", 1e4)], id="in the middle"),
        pytest.param([("b1s2", 1e4), ("b3s2", 1e4)], id="two"),
    ],
)
def test_a_further_source_does_not_cost_the_proof(more):
    """Without any of them the optimum is 0.41 to 0.9; a budget of evaluations repeats itself."""
    graph = next(branched(Branched(4, 3, 5, copies=1), seed=1))
    result = proven(fed_by(graph, *more), Budget(evaluations=200_000))
    assert result.proven
    assert result.value < 1


def test_the_order_in_which_sources_stop_is_part_of_the_proof():
    """One source is held back alone: its device is full, and the other one has its own."""
    operators = [Operator("a", ipt=2e6, rate=1.0), Operator("b", ipt=1.25e6, rate=1.0)]
    graph = StreamGraph.of("two", operators, [])
    result = proven(Problem(graph, Cluster.uniform(2, mips=1)), Budget(seconds=20))
    assert result.value == pytest.approx((0.5 + 0.8) / 2)
    assert result.proven


@given(
    st.lists(st.lists(st.floats(0, 3), min_size=4, max_size=4), max_size=6),
    st.lists(st.floats(0, 1), min_size=3, max_size=3),
)
def test_the_corners_of_a_region_surround_it(rows, point):
    """Corners keep the rows, and no point that keeps them is beyond every corner, anywhere."""
    table = np.array(rows).reshape(-1, 4)
    region = region_within(table)
    corners = region.corners[0, : region.size[0]]
    assert (corners @ table.T <= 1 + 1e-6).all()
    inside = np.array([1.0, *sorted(point)])
    if (table @ inside <= 1).all():
        for direction in np.vstack((np.eye(4), -np.eye(4), np.ones(4), [0, 1, -1, 1])):
            assert inside @ direction <= (corners @ direction).max() + 1e-7


@given(limited(2, 5))
def test_all_placements_are_listed_once_but_for_equal_devices(problem):
    units, unit = units_of(problem), problem.unit
    listed = np.vstack(list(legal_placements(units)))[:, unit]
    expected = np.unique(problem.canonical(all_legal(problem)), axis=0)
    assert len(listed) == len(expected)
    assert np.array_equal(np.unique(problem.canonical(listed), axis=0), expected)
    assert are_few(units, len(expected))
    assert not are_few(units, len(expected) - 1)
