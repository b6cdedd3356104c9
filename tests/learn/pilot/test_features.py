"""What pilot sees of a problem: the yardstick, units and pairs, and the order of units."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pilots import tangle, uneven
from problems import PROBLEMS, chain, constrained
from strategies import placements, problems
from streamsim import resource_loads

from streamplace.learn.models.pilot.features import (
    PAIR_FEATURES,
    UNIT_FEATURES,
    features_of,
    for_rollout,
)
from streamplace.model import Cluster, Constraints, Problem

powers = st.integers(-8, 8).map(lambda i: 2.0**i)


def without(name, problem):
    """Features of the units, but for this one."""
    return np.delete(features_of(problem).units, UNIT_FEATURES.index(name), axis=1)


@pytest.mark.parametrize(("ipt", "yardstick"), [(1e4, 1.0), (1e5, 1.0), (3e5, 1.6), (6e5, 3.2)])
def test_on_equal_devices_the_yardstick_is_the_mean_load_or_one(ipt, yardstick):
    """Four operators of ipt · 10⁴ / 2.5·10⁹ share three devices."""
    problem = Problem(chain(4, ipt=ipt), Cluster.uniform(3))
    assert features_of(problem).yardstick == pytest.approx(yardstick)


def test_the_yardstick_is_no_less_than_the_heaviest_operator():
    assert features_of(PROBLEMS["lone"]).yardstick == pytest.approx(2.0)


@settings(max_examples=30)
@given(problems(most=5), st.data())
def test_no_placement_has_a_lower_peak_than_the_yardstick(problem, data):
    """Above 1, it is a bound for every placement that the rules allow."""
    place = problem.repaired(data.draw(placements(problem)))
    loads = resource_loads(problem.instance, place)
    view = features_of(problem)
    assert view.yardstick >= 1
    if view.yardstick > 1:
        assert max(load.max() for load in loads) >= view.yardstick * (1 - 1e-9)


@settings(max_examples=30)
@given(problems(windowed=True))
def test_features_stay_small_on_any_problem(problem):
    """A network that is given large numbers says nothing sensible."""
    view = features_of(problem)
    assert view.units.shape == (view.level.n_units, len(UNIT_FEATURES))
    assert view.pairs.shape == (len(view.level.peer), len(PAIR_FEATURES))
    assert np.abs(np.nan_to_num(view.units, nan=np.inf)).max(initial=0) < 30
    assert np.abs(np.nan_to_num(view.pairs, nan=np.inf)).max(initial=0) < 30


@given(powers)
def test_k_times_the_rate_on_k_times_the_cluster_looks_the_same(k):
    """Speeds and bandwidths are measured by what they have to carry."""
    problem = Problem(tangle(), Cluster.uniform(3))
    cluster = Cluster.uniform(3, mips=2500 * k, bandwidth=1e9 * k)
    faster = Problem(tangle(), cluster).at_rate(k * problem.graph.source_rate)
    view, other = features_of(problem), features_of(faster)
    assert np.allclose(view.units, other.units, rtol=1e-6)
    assert np.allclose(view.pairs, other.pairs, rtol=1e-6)


def test_among_overloaded_problems_only_the_yardstick_tells_the_rate():
    """At twice the rate, twice as much is lost wherever operators go."""
    problem = Problem(tangle(), Cluster.uniform(2))
    slow, fast = problem.at_rate(4e4), problem.at_rate(8e4)
    assert features_of(fast).yardstick == 2 * features_of(slow).yardstick > 2
    assert np.array_equal(without("yardstick", slow), without("yardstick", fast))
    assert np.array_equal(features_of(slow).pairs, features_of(fast).pairs)


def test_rules_that_forbid_nothing_change_nothing():
    everywhere = Constraints(allowed={"v0": {"d0", "d1", "d2"}})
    free, ruled = (Problem(chain(), Cluster.uniform(3), rules) for rules in (None, everywhere))
    view, other = features_of(free), features_of(ruled)
    assert np.array_equal(view.units, other.units)
    assert np.array_equal(view.order, other.order)


def between(problem, view):
    """Bytes/s between any two units, and the most that one entry of the two carries."""
    n = view.level.n_units
    total, single = np.zeros((n, n)), np.zeros(n)
    owner = np.repeat(np.arange(n), np.diff(view.level.start))
    flow = view.level.sent + view.level.taken
    np.add.at(total, (owner, view.level.peer), flow)
    np.maximum.at(single, owner, flow)
    return total, single


def assert_grown(view, problem, first=None):
    """Every unit is the one to which most leads, among those as free as it."""
    total, single = between(problem, view)
    done, left = [], list(range(view.level.n_units))
    if first is not None:
        assert view.order[0] == first
        done.append(first)
        left.remove(first)
    while left:
        pull = {u: (total[u, done].sum(), single[u]) for u in left}
        chosen = view.order[len(done)]
        best = max(pull[u][0] for u in left)
        assert pull[chosen][0] >= best * (1 - 1e-9)
        if sum(pull[u][0] >= best * (1 - 1e-9) for u in left) > 1 and best == 0:
            assert single[chosen] == max(single[u] for u in left)
        done.append(chosen)
        left.remove(chosen)


@settings(max_examples=30)
@given(problems(windowed=True))
def test_every_unit_is_placed_once(problem):
    """Whatever the graph and the rules; without rules, the one to which most leads is next."""
    view = features_of(problem)
    assert sorted(view.order.tolist()) == list(range(view.level.n_units))
    if problem.rules is None:
        assert_grown(view, problem)


@pytest.mark.parametrize("name", [name for name, p in PROBLEMS.items() if p.rules is None])
@pytest.mark.parametrize("rollout", [1, 2, 3])
def test_other_rollouts_begin_at_the_lightest_units(name, rollout):
    """From there on they grow as the first does, and only what depends on the order differs."""
    view = features_of(PROBLEMS[name])
    total, _ = between(PROBLEMS[name], view)
    light = np.argsort(total.sum(axis=1), kind="stable")
    changed = for_rollout(view, rollout)
    assert_grown(changed, PROBLEMS[name], first=light[(rollout - 1) % len(light)])
    position = UNIT_FEATURES.index("position")
    assert np.array_equal(np.argsort(changed.units[:, position]), changed.order)
    others = [np.delete(v.units, position, axis=1) for v in (view, changed)]
    assert np.array_equal(*others)


def test_units_without_a_choice_come_first_and_then_those_with_rivals():
    problem = constrained()
    of = dict(zip(problem.graph.operators.name, features_of(problem).unit_of.tolist(), strict=True))
    order = features_of(problem).order.tolist()
    assert order[0] == of["src"]
    assert set(order[1:4]) == {of["b0s1"], of["b1s1"], of["sink"]}


@pytest.mark.parametrize("cluster", [Cluster.uniform(2), uneven()])
def test_the_cluster_plays_no_part(cluster):
    order = features_of(Problem(tangle(), cluster)).order
    assert np.array_equal(order, features_of(Problem(tangle(), Cluster.uniform(5))).order)
