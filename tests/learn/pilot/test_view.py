from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pilots import tangle, torn, uneven
from problems import PROBLEMS, chain
from strategies import placements, problems
from streamsim import resource_loads

from streamplace.learn.models.pilot.features import PAIR_FEATURES, UNIT_FEATURES, features_of
from streamplace.model import Cluster, Constraints, Operator, Problem, Stream, StreamGraph

powers = st.integers(-8, 8).map(lambda i: 2.0**i)


def scaled(problem: Problem, rate: float, cost: float, size: float) -> Problem:
    """The same problem with other rates, instructions per tuple and bytes per tuple."""
    operators, streams = problem.graph.operators, problem.graph.streams
    graph = StreamGraph.of(
        "scaled",
        [
            Operator(o.name, o.ipt * cost, o.payload * size, o.rate * rate)
            for o in (operators[i] for i in range(len(operators)))
        ],
        [
            Stream(
                s.source, s.target, s.selectivity, None if s.payload is None else s.payload * size
            )
            for s in (streams[i] for i in range(len(streams)))
        ],
    )
    return Problem(graph, problem.cluster)


def without(name: str, problem: Problem) -> np.ndarray:
    """Features of the units, but for this one."""
    return np.delete(features_of(problem).units, UNIT_FEATURES.index(name), axis=1)


@pytest.mark.parametrize(("ipt", "yardstick"), [(1e4, 1.0), (1e5, 1.0), (3e5, 1.6), (6e5, 3.2)])
def test_on_equal_devices_the_yardstick_is_the_mean_load_or_one(ipt: Any, yardstick: Any) -> None:
    """Four operators of ipt · 10⁴ / 2.5·10⁹ share three devices."""
    problem = Problem(chain(4, ipt=ipt), Cluster.uniform(3))
    assert features_of(problem).yardstick == pytest.approx(yardstick)


def test_the_yardstick_is_no_less_than_the_heaviest_operator() -> None:
    """It cannot be split."""
    assert features_of(PROBLEMS["lone"]).yardstick == pytest.approx(2.0)


@settings(max_examples=30)
@given(problems(most=5), st.data())
def test_no_placement_has_a_lower_peak_than_the_yardstick(problem: Any, data: Any) -> None:
    """Above 1, it is a bound for every placement that the rules allow."""
    place = problem.repaired(data.draw(placements(problem)))
    loads = resource_loads(problem.instance, place)
    view = features_of(problem)
    assert view.yardstick >= 1
    if view.yardstick > 1:
        assert max(load.max() for load in loads) >= view.yardstick * (1 - 1e-9)


@pytest.mark.parametrize("name", PROBLEMS)
def test_operators_that_stay_together_are_one_unit(name: str) -> None:
    """All others are units of their own."""
    problem = PROBLEMS[name]
    alone = np.arange(problem.n_operators)
    expected = alone if problem.rules is None else problem.rules.unit
    assert np.array_equal(features_of(problem).unit_of, expected)


def test_features_are_named_and_finite() -> None:
    """One column for every name, on any problem."""
    for problem in PROBLEMS.values():
        view = features_of(problem)
        assert view.units.shape == (view.level.n_units, len(UNIT_FEATURES))
        assert view.pairs.shape == (len(view.level.peer), len(PAIR_FEATURES))
        assert np.isfinite(view.units).all()
        assert np.isfinite(view.pairs).all()


@settings(max_examples=30)
@given(problems(windowed=True))
def test_features_stay_small_on_any_problem(problem: Problem) -> None:
    """A network that is given large numbers says nothing sensible."""
    view = features_of(problem)
    assert np.abs(np.nan_to_num(view.units, nan=np.inf)).max(initial=0) < 30
    assert np.abs(np.nan_to_num(view.pairs, nan=np.inf)).max(initial=0) < 30


@given(powers)
def test_fewer_tuples_of_more_work_and_more_bytes_look_the_same(k: float) -> None:
    """Loads are what counts."""
    problem = Problem(tangle(), uneven())
    view, other = (features_of(p) for p in (problem, scaled(problem, k, 1 / k, 1 / k)))
    assert np.array_equal(view.units, other.units)
    assert np.array_equal(view.pairs, other.pairs)


@given(powers)
def test_k_times_the_rate_on_k_times_the_cluster_looks_the_same(k: float) -> None:
    """Speeds and bandwidths are measured by what they have to carry."""
    problem = Problem(tangle(), Cluster.uniform(3))
    faster = Problem(
        scaled(problem, k, 1, 1).graph, Cluster.uniform(3, mips=2500 * k, bandwidth=1e9 * k)
    )
    view, other = features_of(problem), features_of(faster)
    assert np.allclose(view.units, other.units, rtol=1e-6)
    assert np.allclose(view.pairs, other.pairs, rtol=1e-6)


def test_among_overloaded_problems_only_the_yardstick_tells_the_rate() -> None:
    """At twice the rate, twice as much is lost wherever operators go."""
    problem = Problem(tangle(), Cluster.uniform(2))
    slow, fast = scaled(problem, 4, 1, 1), scaled(problem, 8, 1, 1)
    assert features_of(fast).yardstick == 2 * features_of(slow).yardstick > 2
    assert np.array_equal(without("yardstick", slow), without("yardstick", fast))
    assert np.array_equal(features_of(slow).pairs, features_of(fast).pairs)


def test_problems_are_left_as_they_were() -> None:
    """A problem is shared between placers."""
    for problem in (PROBLEMS["heterogeneous"], PROBLEMS["constrained"], torn()):
        before = [np.array(column, copy=True) for column in problem.instance]
        features_of(problem)
        assert all(np.array_equal(a, b) for a, b in zip(before, problem.instance, strict=True))


def test_rules_that_forbid_nothing_change_nothing() -> None:
    """An operator allowed everywhere looks like one without a rule."""
    everywhere = Constraints(allowed={"v0": {"d0", "d1", "d2"}})
    free, ruled = (Problem(chain(), Cluster.uniform(3), rules) for rules in (None, everywhere))
    view, other = features_of(free), features_of(ruled)
    assert np.array_equal(view.units, other.units)
    assert np.array_equal(view.order, other.order)
