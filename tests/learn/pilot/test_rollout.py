import itertools
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pilot_reference import look
from pilots import (
    along,
    draw,
    draw_whole,
    explore,
    pilot_network,
    places,
    some_placements,
    tangle,
    torn,
    uneven,
)
from problems import PROBLEMS
from strategies import placements, problems

from streamplace.learn.algorithms.kernels import feature_names
from streamplace.learn.models.pilot.features import DeviceFeature, StepFeature, features_of
from streamplace.learn.models.pilot.rollouts import alternatives, heads_of, rollouts
from streamplace.model import Cluster, Device, Operator, Problem, StreamGraph

NETWORK = pilot_network()
CASES = {
    **PROBLEMS,
    "uneven": Problem(tangle(6), uneven()),
    "uneven, overloaded": Problem(tangle(6, seed=1), uneven((3, 1, 2))),
    "torn": torn(),
    "busy network": Problem(tangle(7), Cluster.uniform(3)),
}
VIEWS = {name: features_of(problem) for name, problem in CASES.items()}
TRAPS = ("torn", "constrained", "little memory", "little memory and rules")
"""Problems where some choices leave a unit without a device."""
MOST_WAYS = 7000
FEW_WAYS = [
    (name, sweeps)
    for name, view in VIEWS.items()
    for sweeps in (1, 2)
    if len(view.group) ** (sweeps * len(view.order)) <= MOST_WAYS
]
FEW = [name for name, sweeps in FEW_WAYS if sweeps == 1]


@cache
def every_way(name, sweeps=1):
    """All sequences of decisions [S, T], and their log-probabilities."""
    view = VIEWS[name]
    steps = itertools.product(range(len(view.group)), repeat=sweeps * len(view.order))
    ways, likelihood, _ = explore(view, NETWORK, list(steps))
    whole = ways[:, 0] >= 0
    return ways[whole], likelihood[whole]


def assert_seen_as_defined(problem, rows):
    """Compare what is recorded from these placements on, and in a second sweep, with the reference.

    What "last" means in a second sweep has a test of its own.
    """
    view = features_of(problem)
    first, u = along(view, rows), len(view.order)
    fixed = np.concatenate([first, np.full_like(first, -1)], axis=1)
    chosen, _, record = explore(view, NETWORK, fixed, seed=3)
    members = [np.flatnonzero(view.unit_of == unit).tolist() for unit in view.order]
    for s in range(len(rows)):
        place, last = {}, -1
        for t, to in enumerate(chosen[s].tolist()):
            place = {v: a for v, a in place.items() if v not in members[t % u]}
            reference = look(problem, view, place, t, last)
            for i, name in enumerate(feature_names(StepFeature)):
                recorded = record.steps[s, t, i]
                assert recorded == pytest.approx(reference.step[name], rel=1e-4, abs=1e-5), name
            for i, name in enumerate(feature_names(DeviceFeature)):
                expected = [device[name] for device in reference.devices]
                recorded = record.devices[s, t, :, i]
                if name != "last" or t < u:
                    assert recorded == pytest.approx(expected, rel=1e-4, abs=1e-5), name
            assert record.open[s, t].tolist() == reference.open
            place |= dict.fromkeys(members[t % u], to)
            last = to


@pytest.mark.parametrize("name", CASES)
def test_devices_look_as_they_are_defined_to_look(name):
    """Every feature and every open device, decision by decision, against plain Python."""
    assert_seen_as_defined(CASES[name], some_placements(CASES[name], 6))


@given(problems(most=5, windowed=True), st.data())
def test_devices_of_any_problem_look_as_they_are_defined_to_look(problem, data):
    """With rules, caps, cores, windows and parallel streams."""
    row = problem.repaired(data.draw(placements(problem)))
    assert_seen_as_defined(problem, row[None])


@pytest.mark.parametrize("name", ["diamond", "uneven", "busy network", "tagged"])
def test_devices_are_preferred_by_what_is_on_them(name):
    """By the equations of the network, where a unit that is placed again has left its device."""
    view, heads = VIEWS[name], heads_of(NETWORK, VIEWS[name])
    net, n_units, n_devices = heads.network, len(view.order), len(view.group)
    chosen, likelihood, record = explore(view, NETWORK, np.full((3, 3 * n_units), -1), seed=2)
    for s, row in enumerate(chosen):
        place, total = dict[int, int](), 0.0
        for t, to in enumerate(row.tolist()):
            unit = int(view.order[t % n_units])
            place.pop(unit, None)
            contents = np.zeros((n_devices, len(net.own_bias)))
            for other, device in place.items():
                contents[device] += heads.content[other]
            inputs = record.devices[s, t] @ net.device + record.steps[s, t] @ net.step
            first = np.maximum(heads.unit[unit] + inputs + contents, 0)
            common = net.own_bias + first[record.open[s, t]].mean(axis=0) @ net.mean
            scores = np.maximum(first @ net.own + common, 0) @ net.out
            total += scores[to] - np.log(np.exp(scores[record.open[s, t]]).sum())
            place[unit] = to
        assert likelihood[s] == pytest.approx(total, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("sweeps", [2, 3])
def test_the_last_device_is_that_of_the_decision_before(sweeps):
    view = VIEWS["uneven"]
    chosen, record = draw(view, NETWORK, 20, sweeps=sweeps)
    last = record.devices[:, 1:, :, DeviceFeature.LAST]
    assert np.array_equal(last.argmax(axis=2), chosen[:, :-1])


@pytest.mark.parametrize(("name", "sweeps"), FEW_WAYS)
def test_the_probabilities_of_all_ways_add_up_to_one(name, sweeps):
    """Those that cannot be gone have none; dead ends have the rest."""
    total = np.exp(every_way(name, sweeps)[1]).sum()
    assert total == pytest.approx(1, abs=1e-4) if name not in TRAPS else 0 < total < 1


@pytest.mark.parametrize("name", FEW)
def test_of_equal_placements_one_can_be_chosen(name):
    """Every legal placement, but for the numbers of interchangeable devices, in one way."""
    problem, (ways, likelihood) = CASES[name], every_way(name)
    every = places(VIEWS[name], ways)
    possible = every[likelihood > -np.inf]
    legal = {tuple(row) for row in problem.canonical(every[problem.legal(every)]).tolist()}
    assert problem.legal(possible).all()
    assert len(possible) == len(legal)
    assert {tuple(row) for row in problem.canonical(possible).tolist()} == legal


@pytest.mark.parametrize(("name", "sweeps"), [("diamond", 2), ("cost matrix", 2), ("uneven", 1)])
def test_draws_follow_the_probabilities(name, sweeps):
    view, n_draws = VIEWS[name], 8_000
    ways, likelihood = every_way(name, sweeps)
    chosen, _ = draw(view, NETWORK, n_draws, seed=5, sweeps=sweeps)
    digits = len(view.group) ** np.arange(ways.shape[1])
    counts = np.bincount(chosen @ digits, minlength=digits[-1] * len(view.group))[ways @ digits]
    expected = n_draws * np.exp(likelihood)
    assert counts.sum() == n_draws
    assert (np.abs(counts - expected) <= 5 * np.sqrt(expected) + 3).all()


@pytest.mark.parametrize("name", CASES)
def test_given_devices_are_followed_and_the_rest_is_chosen(name):
    """Half of the devices of a placement lead to a whole one."""
    problem, view = CASES[name], VIEWS[name]
    fixed = along(view, some_placements(problem, 20), sweeps=2)
    fixed[:, len(view.order) // 2 :] = -1
    chosen, _, _ = explore(view, NETWORK, fixed, seed=1)
    whole = chosen[:, 0] >= 0
    assert whole.all() or name in TRAPS
    assert ((chosen == fixed) | (fixed < 0))[whole].all()
    assert problem.legal(places(view, chosen[whole])).all()


@pytest.mark.parametrize(("name", "sweeps"), [way for way in FEW_WAYS if way[0] not in TRAPS])
def test_the_greedy_way_takes_the_likeliest_device_at_every_step(name, sweeps):
    """All ways that leave it there are together no likelier."""
    ways, likelihood = every_way(name, sweeps)
    view = VIEWS[name]
    free = np.full((1, sweeps * len(view.order)), -1)
    best, n_devices = explore(view, NETWORK, free)[0][0], len(view.group)
    for t, to in enumerate(best):
        on = (ways[:, :t] == best[:t]).all(axis=1)
        shares = np.bincount(ways[on, t], np.exp(likelihood[on]), n_devices)
        assert shares[to] >= shares.max() * (1 - 1e-4)


def test_where_no_device_is_left_there_is_no_placement():
    """Two of three rivals may take what the third needs; then all devices are -1."""
    chosen, _ = draw(VIEWS["torn"], NETWORK, 500, sweeps=2)
    stuck = (chosen == -1).any(axis=1)
    assert 0 < stuck.sum() < 500
    assert (chosen[stuck] == -1).all()


@pytest.mark.parametrize("name", CASES)
def test_watching_changes_nothing(name):
    """With or without a record, the same numbers give the same devices."""
    view = VIEWS[name]
    fixed = np.full((20, 2 * len(view.order)), -1, np.int32)
    uniform = np.random.default_rng(0).random(fixed.shape, dtype=np.float32)
    unwatched = rollouts(view, heads_of(NETWORK, view), fixed, uniform)
    assert np.array_equal(unwatched, draw(view, NETWORK, 20, sweeps=2)[0])


def test_memory_may_be_used_up_but_for_the_rounding():
    """0.1 and 0.2 are more than 0.3 by a digit that the rules overlook."""
    sizes = {"a": 0.1, "b": 0.2, "c": 0.3}
    graph = StreamGraph.of(
        "g", [Operator(name, memory=size, rate=1.0) for name, size in sizes.items()]
    )
    problem = Problem(graph, Cluster.of([Device(name, memory=0.3) for name in ("d0", "d1")]))
    chosen, _ = draw(features_of(problem), NETWORK, 50)
    whole = chosen[chosen[:, 0] >= 0]
    assert len(whole)
    assert problem.legal(places(features_of(problem), whole)).all()


@pytest.mark.parametrize("forks", [1, 3, 1000])
@pytest.mark.parametrize("name", ["uneven", "fork-join", "constrained", "long chain on one device"])
def test_every_open_device_is_tried_at_some_decisions(name, forks):
    """After the same decisions before, and nothing is decided after them.

    Where a decision is none, nothing is tried; else every rollout forks as often as asked.
    """
    chosen, record = draw_whole(VIEWS[name], NETWORK, 8)
    tried = alternatives(record, chosen, forks, np.random.default_rng(0))
    rows = zip(tried.fixed, tried.rollout, tried.step, tried.device, strict=True)
    for prefix, rollout, step, device in rows:
        assert prefix[:step].tolist() == chosen[rollout, :step].tolist()
        assert prefix[step] == device
        assert (prefix[step + 1 :] == -1).all()
    forked = set(zip(tried.rollout.tolist(), tried.step.tolist(), strict=True))
    for rollout, step in forked:
        devices = tried.device[(tried.rollout == rollout) & (tried.step == step)]
        assert devices.tolist() == np.flatnonzero(record.open[rollout, step]).tolist()
    choices = {(s, t) for s, t in np.argwhere(record.open.sum(axis=2) > 1).tolist()}
    assert forked <= choices
    for s in range(len(chosen)):
        count = sum(rollout == s for rollout, _ in forked)
        assert count <= forks
        if name == "uneven":
            assert count == min(forks, chosen.shape[1])
    assert forks < 1000 or forked == choices
