"""The share that survives the loss of a device, beside all places that its operators have."""

from itertools import product

import numpy as np
import pytest
from ruled_problems import drawn

from streamplace import (
    Cluster,
    Constraints,
    Operator,
    Problem,
    Stream,
    StreamGraph,
    place,
    simulate,
)
from streamplace.errors import PlacementError, StreamplaceError
from streamplace.model import Device
from streamplace.objectives.registry import OBJECTIVES
from streamplace.objectives.survives import loss_of

SURVIVES, THROUGHPUT = OBJECTIVES["survives"], OBJECTIVES["throughput"]


def solvable(n=5, most_devices=4, seeds=range(150)):
    """Problems with their legal placements."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        d = int(rng.integers(2, most_devices, endpoint=True))
        try:
            problem = drawn(rng, n, d)
        except StreamplaceError:
            continue
        every = every_placement(problem)
        places = every[problem.legal(every)]
        if len(places):
            yield problem, places, rng


def after_loss(problem, place, lost):
    """Highest throughput of all placements that differ in the lost operators alone, without pins.

    So the page on the models defines it.
    """
    rules = problem.constraints
    bare = Constraints(None, rules.colocate, rules.exlocate, rules.allowed)
    every = every_placement(problem)
    differs = ((every == place) | (place == lost)).all(axis=1) & (every != lost).all(axis=1)
    legal = Problem(problem.graph, problem.cluster, bare).legal(every)
    return max(THROUGHPUT.values(problem, every[differs & legal]), default=0.0)


def every_placement(problem):
    """All placements, also those that the rules forbid."""
    return np.array([*product(range(problem.n_devices), repeat=problem.n_operators)], np.int32)


def test_what_survives_is_the_best_of_all_places_of_the_lost_operators():
    """For every lost device, and in the least of them with the throughput before."""
    found = 0
    for problem, places, rng in solvable():
        for place_ in places[rng.choice(len(places), min(3, len(places)), replace=False)]:
            placement, names = problem.placement(place_), problem.cluster.devices.name
            shares = [THROUGHPUT.value(problem, placement)]
            for lost in np.unique(place_):
                shares.append(after_loss(problem, place_, lost))
                told = loss_of(problem, placement, names[lost])
                assert told.exact
                assert told.relative_throughput == pytest.approx(shares[-1], rel=1e-12)
            assert SURVIVES.value(problem, placement) == pytest.approx(min(shares), rel=1e-12)
            assert SURVIVES.explained(problem, placement).value == pytest.approx(min(shares))
            found += 0 < min(shares) < shares[0]
    assert found > 20


def test_no_placement_survives_more_than_the_bound():
    """Of all legal placements, the best one has at most the bound."""
    for problem, places, _ in solvable():
        best = SURVIVES.values(problem, places).max()
        assert best <= SURVIVES.bound(problem) * (1 + 1e-9)


def test_few_placements_are_all_tried():
    """The answer for a small problem is the best of all placements."""
    for problem, places, _ in solvable(seeds=range(12)):
        best = SURVIVES.values(problem, places).max()
        result = place(problem, objective="survives", budget="200 ms")
        assert result.value == pytest.approx(best, rel=1e-9)


def pipe(n=4, **facts):
    """Pipeline whose operators each take four tenths of a device."""
    operators = [Operator(f"v{i}", ipt=1e5, rate=0.0 if i else 1e4, **facts) for i in range(n)]
    return StreamGraph.of("pipe", operators, [Stream(f"v{i}", f"v{i + 1}") for i in range(n - 1)])


def test_others_stay_and_only_the_operators_of_the_lost_device_move():
    """Of four operators on two devices, two move to a third one."""
    problem = Problem(pipe(), Cluster.uniform(3))
    told = SURVIVES.explained(problem, problem.placement([0, 0, 1, 1]))
    assert told.value == 1.0
    assert {loss.device: dict(loss.moved) for loss in told.losses} == {
        "d0": {"v0": "d2", "v1": "d2"},
        "d1": {"v2": "d2", "v3": "d2"},
    }


def test_a_placement_on_one_device_survives_no_more_than_it_carries():
    """After the loss it would carry more."""
    problem = Problem(pipe(), Cluster.uniform(3))
    together = problem.placement([0, 0, 0, 0])
    assert loss_of(problem, together, "d0").relative_throughput == 1.0
    assert SURVIVES.value(problem, together) == THROUGHPUT.value(problem, together) == 0.625


def test_the_last_device_has_nothing_to_survive_on():
    """Nor has an operator whose tag no other device has."""
    problem = Problem(pipe(), Cluster.uniform(1))
    assert SURVIVES.value(problem, problem.placement([0] * 4)) == SURVIVES.bound(problem) == 0
    devices = [Device("a", tags=["gpu"]), Device("b")]
    problem = Problem(pipe(requires=["gpu"]), Cluster.of(devices))
    told = SURVIVES.explained(problem, problem.placement([0] * 4))
    assert told.verdict == "nothing survives the loss of a: no other devices carry its operators"


def test_a_condition_finds_a_placement_that_survives():
    """The throughput alone uses any devices; a condition that nothing meets is refused."""
    case = pipe(8), Cluster.uniform(5)
    result = place(*case, require="survives>=0.8", budget="300 ms")
    assert SURVIVES.value(result.problem, result.placement) >= 0.8
    with pytest.raises(PlacementError, match=r"survives is 100.0 % at best|survives is \d\d"):
        place(*case, require="survives>=1.1")


def test_a_search_survives_clearly_more_than_the_throughput_does():
    """Twenty operators on six devices, in a thousand evaluations."""
    rng = np.random.default_rng(1)
    operators = [
        Operator(f"v{i}", ipt=float(rng.uniform(2e4, 2e5)), payload=1e3, rate=0 if i else 8e3)
        for i in range(20)
    ]
    streams = [Stream(f"v{rng.integers(0, v)}", f"v{v}", 0.9) for v in range(1, 20)]
    problem = Problem(StreamGraph.of("graph", operators, streams), Cluster.uniform(6))
    budget = {"budget": "500 ms"}
    fast, safe = place(problem, **budget), place(problem, objective="survives", **budget)
    assert safe.value > 1.1 * SURVIVES.value(problem, fast.placement)
    assert simulate(problem, safe.placement, objective="survives").value == safe.value


def test_what_is_too_large_to_be_tried_is_a_lower_bound():
    """The explanation then says "at least"."""
    operators = [Operator(f"v{i}", ipt=4e5, rate=800) for i in range(52)]
    problem = Problem(StreamGraph.of("many", operators, []), Cluster.uniform(4))
    told = SURVIVES.explained(problem, problem.placement(np.arange(52) % 4))
    assert not told.exact
    assert "at least" in told.verdict
    assert told.value == pytest.approx(2500 / (18 * 320))
    assert told.value <= SURVIVES.bound(problem)


def test_of_placements_that_survive_equally_the_faster_one_is_the_answer():
    """The strongest device limits what survives, and need not stay idle."""
    devices = [*(Device(f"edge{i}", mips=1200) for i in range(3)), Device("hub", mips=3600)]
    result = place(pipe(6), Cluster.of(devices), objective="survives", budget="500 ms")
    assert result.proven
    assert THROUGHPUT.value(result.problem, result.placement) > 1.2 * result.value
