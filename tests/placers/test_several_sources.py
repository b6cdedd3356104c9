"""Several sources: one share for all, levels beside stuck ones; better machines lower nothing."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from placer_cases import all_legal, best_of_all, small_problems
from streamsim import throughput
from streamsim.sources import at_shares

from streamplace.errors import ProblemError
from streamplace.families.branched import Branched, branched
from streamplace.model import Cluster, Constraints, Operator, Problem, Stream, StreamGraph
from streamplace.model.arrays import Ints
from streamplace.model.source_levels import source_levels
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.exact.enumeration import are_few, judge_all
from streamplace.placers.exact.units import units_of
from streamplace.placers.meter import Meter
from streamplace.placers.registry import PLACERS, Budget

limited = partial(small_problems, is_limited=True)


def proven(problem, budget):
    """Place by exact."""
    return PLACERS["exact"].place(problem, OBJECTIVES["throughput"], budget=budget)


def shares_of(problem, place):
    """Share of each source by the levels of a placement, [S]."""
    levels = source_levels(problem, place)
    share = {v: level.share for level in levels for v in level.sources.tolist()}
    return np.array([share[v] for v in problem.instance.sources.tolist()])


def best_shares(problem):
    """Shares of the best placement of all, compared from the least share on."""
    every = [shares_of(problem, place) for place in all_legal(problem)]
    return max(every, key=lambda shares: np.sort(shares).round(9).tolist())


@pytest.mark.parametrize(
    ("sources", "is_limited"),
    [(1, False), (2, False), (3, False), (1, True), (2, True), (3, True), (5, True)],
)
@given(data=st.data())
def test_nothing_beats_the_proven_optimum(sources, is_limited, data):
    """Not the least share, nor the shares beside stuck sources."""
    problem = data.draw(small_problems(sources, sources + 3, is_limited))
    result = proven(problem, Budget(seconds=20))
    assert result.value == pytest.approx(best_of_all(problem), abs=1e-8)
    assert result.bound == pytest.approx(result.value, abs=2e-7)
    found = np.sort(shares_of(problem, result.placement.index))
    assert found == pytest.approx(np.sort(best_shares(problem)), abs=1e-6)


@given(data=st.data())
def test_levels_are_carried_and_no_higher_ones(data):
    """All at once; no more of the last level; and no placement carries more of what is stuck."""
    problem = data.draw(limited(data.draw(st.integers(2, 4)), 6))
    every = all_legal(problem)
    place = every[data.draw(st.integers(0, len(every) - 1))]
    levels, shares = source_levels(problem, place), shares_of(problem, place)
    assume(shares.min() > 0)
    assert [level.share for level in levels] == sorted(level.share for level in levels)
    assert throughput(at_shares(problem.instance, shares), place[None])[0] >= 1 - 1e-7
    for level in levels:
        more = np.isin(problem.instance.sources, level.sources) & (level.share < 1 - 1e-3)
        raised = at_shares(problem.instance, shares * np.where(more, 1.001, 1.0))
        alone = shares * np.where(more, 1.001, shares <= level.share)
        anywhere = every if len(level.stuck) else place[None]
        if more.any():
            assert throughput(raised, place[None])[0] < 1
            assert throughput(at_shares(problem.instance, alone), anywhere).max() < 1


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


def changed(problem, **parts):
    """A problem with some of its parts changed, if the change is allowed."""
    names = ("graph", "cluster", "constraints", "seconds")
    given_parts = {name: getattr(problem, name) for name in names} | parts
    try:
        return Problem(**given_parts)
    except ProblemError:
        assume(False)


def faster(problem, d):
    """One device is faster."""
    mips = problem.cluster.devices.mips.copy()
    mips[d % len(mips)] *= 1.7
    devices = replace(problem.cluster.devices, mips=mips)
    seconds = problem.seconds
    if seconds is not None:
        seconds = np.array(seconds)
        seconds[:, d % len(mips)] /= 1.7
    return changed(problem, cluster=replace(problem.cluster, devices=devices), seconds=seconds)


def wider(problem, d):
    """All links into one device are wider."""
    bandwidth = problem.cluster.bandwidth_bps.copy()
    bandwidth[:, d % problem.n_devices] *= 10
    return changed(problem, cluster=replace(problem.cluster, bandwidth_bps=bandwidth))


def lighter(problem, v):
    """One operator is lighter."""
    operators, v = problem.graph.operators, v % problem.n_operators
    ipt, constant = operators.ipt.copy(), operators.constant.copy()
    ipt[v], constant[v] = ipt[v] * 0.6, constant[v] * 0.6
    seconds = problem.seconds
    if seconds is not None:
        seconds = np.array(seconds)
        seconds[v] *= 0.6
    graph = problem.graph.with_operators(replace(operators, ipt=ipt, constant=constant))
    return changed(problem, graph=graph, seconds=seconds)


def freer(problem, which):
    """One kind of rule is dropped."""
    kinds = ("colocate", "exlocate", "allowed", "pin")
    rules = problem.constraints
    kept = {k: getattr(rules, k) for i, k in enumerate(kinds) if i != which % len(kinds)}
    return changed(problem, constraints=Constraints(**kept))


IMPROVEMENTS = (faster, wider, lighter, freer)


@pytest.mark.parametrize("improve", IMPROVEMENTS, ids=lambda f: f.__name__)
@given(data=st.data())
def test_better_machines_never_lower_a_placement_or_the_best_one(improve, data):
    problem = data.draw(limited(data.draw(st.integers(1, 4)), 6))
    better = improve(problem, data.draw(st.integers(0, 9)))
    legal = all_legal(problem)
    before, after = (throughput(each.instance, legal) for each in (problem, better))
    assert (after >= before * (1 - 1e-12)).all()
    assert best_of_all(better) >= best_of_all(problem) * (1 - 1e-12)


@given(data=st.data())
def test_a_further_device_lowers_nothing(data):
    problem = data.draw(limited(data.draw(st.integers(1, 4)), 5))
    cluster, n = problem.cluster, problem.n_devices
    rows = [*cluster.devices, replace(cluster.devices["d0"], name="more")]
    wide = np.full((n + 1, n + 1), 1e3)
    wide[:n, :n] = cluster.bandwidth_bps
    costs = (cluster.overhead_s, cluster.gap_s, cluster.overhead_s_per_byte)
    overhead, gap, per_byte = costs
    more = Cluster.of(rows, bandwidth=wide, overhead=overhead, gap=gap, overhead_per_byte=per_byte)
    seconds = problem.seconds
    if seconds is not None:
        seconds = np.hstack([seconds, np.array(seconds)[:, :1]])
    better = changed(problem, cluster=more, seconds=seconds)
    legal = all_legal(problem)
    assert throughput(better.instance, legal).tolist() == pytest.approx(
        throughput(problem.instance, legal).tolist(), rel=1e-12
    )
    assert best_of_all(better) >= best_of_all(problem) * (1 - 1e-12)


def pipelines(*costs, rates=None):
    """Sources, each with an operator of its own."""
    rates = rates or [1.0] * len(costs)
    operators = [Operator(f"s{i}", rate=rate) for i, rate in enumerate(rates)]
    operators += [Operator(f"o{i}", ipt=1e6 * cost) for i, cost in enumerate(costs)]
    streams = [Stream(f"s{i}", f"o{i}") for i in range(len(costs))]
    return StreamGraph.of("pipelines", operators, streams)


def test_equal_sources_have_equal_shares():
    problem = Problem(pipelines(0.9, 0.9, 0.9), Cluster.uniform(2, mips=1))
    result = proven(problem, Budget(seconds=20))
    assert result.explain().sources == dict.fromkeys(("s0", "s1", "s2"), 1 / 1.8)


def test_sources_beside_stuck_ones_are_raised_level_by_level():
    """One needs two devices; of the others one could have .8, if the share of all were less."""
    problem = Problem(pipelines(2, 1.25, 0.8, 0.8), Cluster.uniform(3, mips=1))
    result = proven(problem, Budget(seconds=20))
    explained = result.explain()
    expected = {"s0": 0.5, "s1": 0.625, "s2": 0.625, "s3": 0.625}
    assert explained.sources == pytest.approx(expected, abs=1e-6)
    assert explained.limits[0].stuck == ("o0",)
    assert result.value == result.bound == 0.5
    assert result.levels == pytest.approx([0.625], abs=1e-6)


def test_a_source_that_cannot_run_is_named_and_the_others_run():
    operators = [
        Operator("dead", rate=1.0),
        Operator("full", ipt=1.0, constant=2.0),
        Operator("alive", ipt=1e6, rate=1.0),
    ]
    graph = StreamGraph.of("dead", operators, [Stream("dead", "full")])
    result = proven(Problem(graph, Cluster.uniform(2, mips=1)), Budget(seconds=20))
    assert result.value == 0
    assert result.explain().sources == {"dead": 0.0, "alive": 1.0}
    assert result.explain().limits[0].stuck == ("full",)


def test_sources_that_meet_in_a_join_are_held_together():
    operators = [
        Operator("a", rate=1.0),
        Operator("b", rate=1.0),
        Operator("heavy", ipt=2e6),
        Operator("both", fires="all"),
        Operator("c", ipt=1e5, rate=1.0),
    ]
    streams = [Stream("a", "heavy"), Stream("heavy", "both"), Stream("b", "both")]
    graph = StreamGraph.of("join", operators, streams)
    result = proven(Problem(graph, Cluster.uniform(2, mips=1)), Budget(seconds=20))
    assert result.explain().sources == {"a": 0.5, "b": 0.5, "c": 1.0}


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


@given(limited(2, 5))
def test_all_placements_are_listed_once_but_for_equal_devices(problem):
    units, unit = units_of(problem), problem.unit
    batches = list[Ints]()
    assert judge_all(units, Meter(Budget()), batches.append)
    listed = np.vstack(batches)[:, unit]
    expected = np.unique(problem.canonical(all_legal(problem)), axis=0)
    assert len(listed) == len(expected)
    assert np.array_equal(np.unique(problem.canonical(listed), axis=0), expected)
    assert are_few(units, len(expected))
    assert not are_few(units, len(expected) - 1)
