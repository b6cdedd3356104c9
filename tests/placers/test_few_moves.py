"""Few moves: what each number of moves from the present placement reaches."""

import numpy as np
import pytest
from placer_cases import all_legal
from problems import layered
from streamsim import throughput

from streamplace import Relocation, place, simulate
from streamplace.errors import PlacementError, SettingError
from streamplace.families.random_dag import RandomDag, random_dag
from streamplace.model import Cluster, Problem
from streamplace.placers.registry import Budget

FEW = Budget(evaluations=3000)


def small():
    """A problem of which all placements can be tried."""
    parameters = RandomDag(operators=8, streams=7, devices=3.0, network=300.0)
    return Problem(next(random_dag(parameters, 4)), Cluster.uniform(3))


def best_by_moves(problem, home):
    """Highest throughput with at most so many moves, by trying everything."""
    every = all_legal(problem)
    values = throughput(problem.instance, every)
    moves = (every != np.array(home)).sum(axis=1)
    return {k: float(values[moves <= k].max()) for k in range(problem.n_operators + 1)}


def at(problem, home):
    """Relocation from these devices."""
    return Relocation(problem.placement(np.array(home, np.int32)).as_dict())


@pytest.mark.parametrize("home", [[0] * 6, [0, 1, 2, 0, 1, 2]])
def test_every_number_of_moves_reaches_what_trying_everything_does(home):
    problem = small()
    home = (home * 2)[: problem.n_operators]
    result = place(problem, relocation=at(problem, home), budget=Budget(evaluations=10**6))
    best = best_by_moves(problem, home)
    assert all(step.proven for step in result.steps)
    for step in result.steps:
        assert step.value == pytest.approx(best[step.moves], rel=1e-9)
        assert len(step.moved) == step.moves
        assert step.moves == 0 or best[step.moves - 1] < step.value
    assert result.value == pytest.approx(max(best.values()), rel=1e-9)
    assert result.steps[-1].moves == (result.placement.index != np.array(home)).sum()


def test_on_one_device_nothing_can_move():
    problem = Problem(small().graph, Cluster.uniform(1))
    result = place(problem, relocation=at(problem, [0] * problem.n_operators), budget=FEW)
    assert [(step.moves, step.proven) for step in result.steps] == [(0, True)]


def test_what_moves_reach_is_drawn(tmp_path):
    problem = small()
    result = place(problem, relocation=at(problem, [0] * problem.n_operators), budget=FEW)
    result.save(tmp_path / "moves.svg")
    assert "operators that move" in (tmp_path / "moves.svg").read_text()


@pytest.mark.parametrize("most", [0, 1, 2])
def test_no_more_operators_move_than_are_allowed(most):
    problem = layered(30)
    before = place(problem, placer="metis").placement.as_dict()
    move = Relocation(before, most_moves=most)
    result = place(problem, relocation=move, budget=FEW)
    moved = [name for name, device in result.placement.as_dict().items() if before[name] != device]
    assert len(moved) <= most
    assert result.value >= simulate(problem, before).value


def test_the_fewest_moves_that_meet_a_condition_are_made():
    problem = small()
    home = [0] * problem.n_operators
    best = best_by_moves(problem, home)
    limit = (best[0] + max(best.values())) / 2
    fewest = min(k for k, value in best.items() if value >= limit)
    result = place(problem, relocation=at(problem, home), require=f"throughput>={limit}", budget=10)
    assert (result.placement.index != 0).sum() == fewest
    gone = Relocation(dict.fromkeys(problem.graph.operators.name, "gone"), most_moves=0)
    with pytest.raises(PlacementError, match="moves<=0"):
        place(problem, relocation=gone, budget=FEW)


def test_the_table_that_one_acts_on_names_all_moves():
    """And a bound of nothing stands beside no proof of a number of moves."""
    problem = small()
    home = at(problem, [0] * problem.n_operators)
    result = place(problem, relocation=home, require="throughput>=0.3", budget=FEW)
    told = str(result)
    for name, device in result.steps[-1].moved.items():
        assert f"{name} → {device}" in told
    if any(step.proven for step in result.steps):
        assert "Bound: none; it is not proven" not in told


def test_a_simulation_tells_what_moves_and_what_staying_reaches():
    problem = small()
    home = [0] * problem.n_operators
    result = place(problem, relocation=at(problem, home), budget=FEW)
    simulated = simulate(problem, result.placement, relocation=at(problem, home)).document()
    stay = simulate(problem, at(problem, home).before).value
    assert simulated["relocation"]["before"] == pytest.approx(stay)
    assert [move["operator"] for move in simulated["relocation"]["moved"]] == [
        name for name, device in result.placement.as_dict().items() if device != "d0"
    ]


@pytest.mark.parametrize(
    ("objective", "options"), [("throughput", {"passes": 3}), ("latency", {"most_moves": 3})]
)
def test_moves_are_limited_by_number_or_by_time(objective, options):
    problem = small()
    before = dict.fromkeys(problem.graph.operators.name, "d0")
    with pytest.raises(SettingError, match="seconds"):
        place(problem, objective=objective, relocation=Relocation(before, **options))
