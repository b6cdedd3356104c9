"""Placements in tensors, and the memory of good ones."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from problems import fork_join
from strategies import problems
from streamsim._core import canonical as reference

from streamplace.learn.algorithms.orders import decision_order
from streamplace.learn.constructive.memory import (
    EMPTY,
    PlacementMemory,
    best_distinct,
    random_placements,
)
from streamplace.learn.env import ProblemTensors
from streamplace.model import Cluster, Problem

FORK = Problem(fork_join(3), Cluster.uniform(4))
ROW = torch.tensor([0])


def drawn(several, size, seed=0, order="topological"):
    """A batch of problems, and random placements of each."""
    batch = ProblemTensors(several, order=order).batch(torch.arange(len(several)))
    return batch, random_placements(batch, size, torch.Generator().manual_seed(seed))


@given(problems(), problems(), st.integers(0, 99))
def test_canonical_placements_are_the_simulator_s(one, other, seed):
    batch, placements = drawn((one, other), 10, seed, "lexicographic")
    found = batch.canonical(placements)
    for i, problem in enumerate((one, other)):
        own = np.ascontiguousarray(placements[i, :, : problem.n_operators].int().numpy())
        along = decision_order(problem, "lexicographic").astype(np.int32)
        expected = reference(own, along, np.array(problem.interchangeable))
        assert (found[i, :, : problem.n_operators].numpy() == expected).all()
        assert not found[i, :, problem.n_operators :].any()


@given(problems(), st.integers(0, 99))
def test_random_placements_are_on_devices_that_exist(problem, seed):
    found = drawn([problem, FORK], 20, seed)[1][0]
    assert found.min() >= 0
    assert found.max() < problem.n_devices
    assert not found[:, problem.n_operators :].any()


def test_random_placements_use_any_number_of_devices():
    found = drawn([FORK], 500)[1][0]
    assert {len(set(row)) for row in found.tolist()} == {1, 2, 3, 4}
    assert set(found.flatten().tolist()) == {0, 1, 2, 3}


def literally_best(rows, rewards, most):
    """Numbers of the best distinct rows, of equals the first."""
    best: list[int] = []
    for i in np.argsort(-np.array(rewards), kind="stable").tolist():
        if rewards[i] > EMPTY and all(rows[i] != rows[j] for j in best) and len(best) < most:
            best.append(i)
    return best


worth = st.dictionaries(
    st.tuples(*[st.integers(0, 2)] * 3), st.sampled_from([EMPTY, 0.0, 0.25, 0.5, 0.75]), min_size=1
)


@given(worth, st.data())
def test_the_best_distinct_are_kept(rewards, data):
    """Of equal rewards the first; places without a placement stay empty."""
    rows = data.draw(st.lists(st.sampled_from(sorted(rewards)), min_size=4, max_size=12))  # type: ignore[attr-defined]
    candidates = [list(row) for row in rows]
    values = [rewards[row] for row in rows]
    best = literally_best(candidates, values, 4)
    tensors = torch.tensor([candidates], dtype=torch.int8), torch.tensor([values])
    placements, kept = best_distinct(*tensors, 4)
    assert kept[0].tolist() == [values[i] for i in best] + [EMPTY] * (4 - len(best))
    assert placements[0].tolist() == [candidates[i] for i in best] + [[0] * 3] * (4 - len(best))


def remembering(rewards, places=3):
    """Memory of one problem that saw placement i with reward i."""
    memory = PlacementMemory(np.array([3]), places, torch.device("cpu"))
    rows = torch.tensor([[[0, i, 0] for i in range(len(rewards))]]).view(1, -1, 3)
    memory.add(ROW, rows, torch.tensor([rewards], dtype=torch.float64))
    return memory


def replayed(memory, most=9):
    placements, rewards = memory.replay(ROW, most, 3)
    return placements[0, rewards[0] > EMPTY, 1].tolist()


def test_the_best_are_replayed():
    """As many as wanted; nothing where nothing is remembered."""
    memory = remembering([0.8, 0.95, 0.79])
    assert replayed(memory) == [1, 0, 2]
    assert replayed(memory, most=1) == [1]
    assert replayed(memory, most=0) == []
    assert replayed(remembering([])) == []
    assert remembering([]).best(ROW).item() == 0
