"""Fronts of two objectives, against all placements one by one."""

import json
from itertools import product

import numpy as np
import pytest
from problems import chain, diamond
from ruled_problems import drawn

from streamplace import Budget, Cluster, Front, place
from streamplace.errors import PlacementError, SettingError, StreamplaceError
from streamplace.evaluate import front
from streamplace.evaluate.front import front_of
from streamplace.model import Problem
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.registry import PLACERS, Placer

PAIRS = [("throughput", "latency"), ("devices", "throughput"), ("latency", "cost")]
UNEQUAL = Problem(diamond(), Cluster.uniform(3, bandwidth="400 Mbps"))


def values_of(problem, *names):
    """Losses of all legal placements by both objectives, [P, 2]."""
    every = np.array([*product(range(problem.n_devices), repeat=problem.n_operators)], np.int32)
    every = every[problem.legal(every)]
    signs = [1 if OBJECTIVES[name].sense == "min" else -1 for name in names]
    columns = [OBJECTIVES[name].values(problem, every) for name in names]
    return np.stack(columns, axis=1) * signs, signs


def undominated(losses):
    """Pairs of which no other is as good by both and better by one, up to rounding."""
    step = 1e-9 * np.abs(losses)
    kept = []
    for i in range(len(losses)):
        no_worse = (losses <= losses[i] + step[i]).all(axis=1)
        if not (no_worse & (losses < losses[i] - step[i]).any(axis=1)).any():
            kept.append(tuple(losses[i]))
    unique = []
    for pair in sorted(kept):
        if not unique or pair != pytest.approx(unique[-1], rel=1e-9):
            unique.append(pair)
    return unique


def small(seed):
    """Problem with rules, where some placement is legal and all that are carry tuples."""
    rng = np.random.default_rng(seed)
    try:
        problem = drawn(rng, int(rng.integers(2, 6)), int(rng.integers(2, 4)))
        losses, _ = values_of(problem, "throughput", "cost")
    except StreamplaceError:
        losses = np.empty(0)
    if not len(losses) or not np.isfinite(losses).all():
        pytest.skip("no placement is legal, or none carries anything")
    return problem


@pytest.mark.parametrize("names", PAIRS)
@pytest.mark.parametrize("seed", range(12))
def test_a_complete_front_has_all_pairs_of_values_that_nothing_dominates(seed, names):
    problem = small(seed)
    found = place(problem, objective=names[0], against=names[1], budget=Budget(None, 10_000))
    losses, signs = values_of(problem, *names)
    assert found.is_complete
    assert all(point.proven for point in found.points)
    pairs = [(signs[0] * p.value, signs[1] * p.against) for p in found.points]
    expected = undominated(losses)
    assert [x for pair in pairs for x in pair] == pytest.approx([x for e in expected for x in e])


@pytest.mark.parametrize("names", PAIRS)
@pytest.mark.parametrize("seed", range(6))
def test_no_placement_is_better_by_both_than_a_proven_point(seed, names, monkeypatch):
    """By searches, of which each proves what it can."""
    problem = small(seed)
    monkeypatch.setattr(front, "is_enumerable", lambda *_: False)
    found = place(problem, objective=names[0], against=names[1], budget=Budget(None, 12_000))
    losses, signs = values_of(problem, *names)
    pairs = np.array([(signs[0] * p.value, signs[1] * p.against) for p in found.points])
    assert len(undominated(pairs)) == len(pairs)
    for pair, point in zip(pairs, found.points, strict=True):
        for judge, value in ((names[0], point.value), (names[1], point.against)):
            assert OBJECTIVES[judge].value(problem, point.placement) == pytest.approx(value)
        if point.proven:
            assert not (losses < pair - 1e-6 * np.abs(pair)).all(axis=1).any()
    if found.is_complete:
        assert len(undominated(losses)) == 1


def test_one_seed_gives_one_front(monkeypatch):
    monkeypatch.setattr(front, "is_enumerable", lambda *_: False)
    fronts = [
        place(UNEQUAL, against="latency", seed=3, budget=Budget(None, 600)).to_json()
        for _ in range(2)
    ]
    for document in fronts:
        document.pop("seconds")
    assert fronts[0] == fronts[1]


def test_the_points_share_the_budget():
    budgets = []

    def counted(problem, objective, *, seed, budget):
        budgets.append(budget.evaluations)
        return PLACERS["anneal"].function(problem, objective, seed=seed, budget=budget)

    judges = OBJECTIVES["throughput"], OBJECTIVES["latency"]
    spy = Placer("counted", "Counts.", counted)
    front_of(UNEQUAL, *judges, spy, seed=0, budget=Budget(None, 240))
    assert len(budgets) >= 4
    assert sum(budgets) <= 240


def test_all_points_meet_the_conditions():
    found = place(UNEQUAL, against="latency", require="devices<=2", budget=Budget(None, 5_000))
    assert {len(point.placement.pes()) for point in found.points} <= {1, 2}
    with pytest.raises(PlacementError, match="no placement"):
        place(UNEQUAL, against="latency", require="latency<=1ns", budget=Budget(None, 100))


def test_a_front_needs_two_objectives_that_suit_the_problem():
    with pytest.raises(SettingError, match="throughput is given twice"):
        place(UNEQUAL, objective="throughput", against="throughput")
    with pytest.raises(SettingError, match="power"):
        place(UNEQUAL, against="energy")


def test_a_front_is_shown_as_a_table_a_picture_and_a_document(run, tmp_path):
    from streamplace import write_graph

    write_graph(chain(3), tmp_path / "graph.json")
    line = ("place", str(tmp_path / "graph.json"), "--against", "latency", "--evaluations", "2000")
    assert "on the front, all there are" in run(*line).out
    for name in ("front.svg", "front.png", "front.pdf", "front.html", "front.json"):
        run(*line, "-o", str(tmp_path / name))
        run(*line, "-o", str(tmp_path / name))  # which replaces its own file
        assert (tmp_path / name).stat().st_size > 400
    document = json.loads((tmp_path / "front.json").read_text())
    assert document["complete"]
    assert {"value", "against", "proven", "assignment"} <= document["points"][0].keys()
    found = place(tmp_path / "graph.json", against="latency", budget=Budget(None, 2000))
    assert isinstance(found, Front)
    assert found._repr_svg_().startswith("<?xml")
