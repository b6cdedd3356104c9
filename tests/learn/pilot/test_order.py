from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray
from pilots import tangle, torn, uneven
from problems import PROBLEMS, constrained
from strategies import problems

from streamplace.learn.models.pilot.features import (
    UNIT_FEATURES,
    PilotFeatures,
    features_of,
    on_walk,
)
from streamplace.model import Cluster, Operator, Problem, Stream, StreamGraph


def between(problem: Problem, view: PilotFeatures) -> tuple[NDArray[Any], NDArray[Any]]:
    """Bytes/s between any two units, and the most that one entry of the two carries."""
    n = view.level.n_units
    total, single = np.zeros((n, n)), np.zeros(n)
    owner = np.repeat(np.arange(n), np.diff(view.level.start))
    flow = view.level.sent + view.level.taken
    np.add.at(total, (owner, view.level.peer), flow)
    np.maximum.at(single, owner, flow)
    return total, single


def assert_grown(view: PilotFeatures, problem: Problem, first: int | None = None) -> None:
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


@pytest.mark.parametrize("name", [name for name, p in PROBLEMS.items() if p.rules is None])
def test_the_unit_to_which_most_leads_is_next(name: str) -> None:
    """From the heaviest pair on; where nothing leads anywhere, from the next heaviest."""
    assert_grown(features_of(PROBLEMS[name]), PROBLEMS[name])


@settings(max_examples=30)
@given(problems(windowed=True))
def test_every_unit_is_placed_once(problem: Any) -> None:
    """Whatever the graph and the rules."""
    view = features_of(problem)
    assert sorted(view.order.tolist()) == list(range(view.level.n_units))
    if problem.rules is None:
        assert_grown(view, problem)


@pytest.mark.parametrize("name", [name for name, p in PROBLEMS.items() if p.rules is None])
@pytest.mark.parametrize("walk", [1, 2, 3])
def test_other_walks_begin_at_the_lightest_units(name: str, walk: int) -> None:
    """From there on they grow as the first does, and only what depends on the order differs."""
    view = features_of(PROBLEMS[name])
    total, _ = between(PROBLEMS[name], view)
    light = np.argsort(total.sum(axis=1), kind="stable")
    seen = on_walk(view, walk)
    assert_grown(seen, PROBLEMS[name], first=light[(walk - 1) % len(light)])
    position = UNIT_FEATURES.index("position")
    assert np.array_equal(np.argsort(seen.units[:, position]), seen.order)
    others = [np.delete(v.units, position, axis=1) for v in (view, seen)]
    assert np.array_equal(*others)


def test_heavy_pairs_are_decided_together() -> None:
    """What leads across a light stream comes afterwards."""
    operators = [Operator(name, ipt=1e5, rate=1e3 * (name == "a")) for name in "abcd"]
    payloads = {"ab": 1e4, "bc": 10.0, "cd": 5e3}
    streams = [Stream(*ends, payload=payload) for ends, payload in payloads.items()]
    graph = StreamGraph.of("pairs", operators, streams)
    order = features_of(Problem(graph, Cluster.uniform(2))).order
    assert order.tolist() == [0, 1, 2, 3]
    graph = StreamGraph.of(
        "pairs", operators, [streams[2], streams[1], Stream("a", "b", payload=1)]
    )
    assert features_of(Problem(graph, Cluster.uniform(2))).order.tolist() == [2, 3, 1, 0]


def test_units_without_a_choice_come_first_and_then_those_with_rivals() -> None:
    """So that the free ones see where the others are."""
    problem = constrained()
    of = dict(zip(problem.graph.operators.name, features_of(problem).unit_of.tolist(), strict=True))
    order = features_of(problem).order.tolist()
    assert order[0] == of["src"]
    assert set(order[1:4]) == {of["b0s1"], of["b1s1"], of["sink"]}


@pytest.mark.parametrize("cluster", [Cluster.uniform(2), uneven()])
def test_the_cluster_plays_no_part(cluster: Any) -> None:
    """The order is that of the graph."""
    order = features_of(Problem(tangle(), cluster)).order
    assert np.array_equal(order, features_of(Problem(tangle(), Cluster.uniform(5))).order)


def test_rivals_that_must_not_meet_come_before_the_free() -> None:
    """All three of them."""
    assert set(features_of(torn()).order[:3].tolist()) == {0, 1, 2}
