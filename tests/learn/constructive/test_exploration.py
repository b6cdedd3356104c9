"""Random placements for the memory."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from problems import constrained, fork_join
from strategies import problems

from streamplace.learn.algorithms.orders import decision_order
from streamplace.learn.constructive.learner import canonical_along, neighbours
from streamplace.model import Cluster, Problem
from streamplace.model.problem import random_placements

FORK = Problem(fork_join(3), Cluster.uniform(4))


@given(problems(), st.integers(0, 99))
def test_random_placements_are_legal(problem: Problem, seed: int) -> None:
    """Whatever the rules."""
    found = random_placements(problem, 20, np.random.default_rng(seed))
    assert found.shape == (20, problem.n_operators)
    assert problem.legal(found).all()


def test_random_placements_use_any_number_of_devices() -> None:
    found = random_placements(FORK, 500, np.random.default_rng(0))
    assert {len(set(row)) for row in found.tolist()} == {1, 2, 3, 4}
    assert set(found.ravel().tolist()) == {0, 1, 2, 3}


def test_neighbours_move_one_run_of_operators_to_one_device() -> None:
    """Contiguous in the order of decision; two on average."""
    order = decision_order(FORK, "bfs")
    base = np.tile(np.arange(8) % 4, (400, 1))
    found = neighbours(FORK, order, base, np.random.default_rng(1))
    for row in found:
        moved = np.flatnonzero((row != base[0])[order])
        assert len(set(row[order][moved].tolist())) <= 1
        span = range(moved[0], moved[-1] + 1) if len(moved) else ()
        assert len(set(row[order][list(span)].tolist())) <= 1
    assert 0.8 < (found != base).sum(axis=1).mean() < 2.2


def test_neighbours_are_legal() -> None:
    problem = constrained()
    rng = np.random.default_rng(2)
    bases = random_placements(problem, 50, rng)
    order = decision_order(problem, "topological")
    assert problem.legal(neighbours(problem, order, bases, rng)).all()


@given(problems(), st.integers(0, 99))
def test_canonical_placements_are_worth_the_same(problem: Problem, seed: int) -> None:
    """They only rename devices that are alike, by first appearance in the order."""
    order = decision_order(problem, "lexicographic")
    given_rows = random_placements(problem, 10, np.random.default_rng(seed))
    found = canonical_along(problem, order, given_rows)
    assert (problem.canonical(found) == problem.canonical(given_rows)).all()
    assert (canonical_along(problem, order, found) == found).all()
