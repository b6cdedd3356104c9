"""REINFORCE on tiny graphs."""

import numpy as np
import pytest
import streamsim
import torch
from adam import train
from dream_cases import FIVE, MODELS, options
from problems import chain, constrained, diamond, fork_join

from streamplace.learn.models.dream import policy
from streamplace.learn.registry import LearningTask
from streamplace.learn.tensors.memory import EMPTY
from streamplace.model import Problem
from streamplace.model.problem import random_placements

GRAPHS = [fork_join(2), fork_join(3), diamond(), chain(4, payload=6e4), chain(6, ipt=2e5)]
PROBLEMS = tuple(Problem(graph, FIVE) for graph in GRAPHS)


def learner_of(model="dream", problems=PROBLEMS, **changes):
    torch.manual_seed(0)
    task = LearningTask(problems, problems, seed=0)
    return policy.learner_of(model, task, options(model, **{"width": 16, **changes}))


@pytest.mark.parametrize(
    ("model", "described"),
    [("dream", True), *(pytest.param(name, False, marks=pytest.mark.slow) for name in MODELS)],
)
def test_training_beats_chance(model, described):
    learner = learner_of(model, exploration=20.0, device_state=described)
    rng = np.random.default_rng(0)
    train(learner, 50, rate=0.02)
    chance = [learner.reward(p, random_placements(p, 500, rng)).mean() for p in PROBLEMS]
    assert learner.validate().mean() > np.mean(chance) + 0.1


def test_the_memory_begins_with_what_others_found():
    """With its reward, legal, and ready to be replayed; with nothing where nothing was found."""
    problems = (constrained(), *PROBLEMS[:2])
    targets = (*(np.arange(p.n_operators, dtype=np.int32) % 3 for p in problems[:2]), None)
    task = LearningTask(problems, (), seed=0, targets=targets)
    memory = policy.learner_of("dream", task, options("dream")).memory
    assert (memory.rewards[2] == EMPTY).all()
    for row, (problem, target) in enumerate(zip(problems[:2], targets, strict=False)):
        legal = problem.repaired(target)
        assert memory.placements[row, 0, : problem.n_operators].tolist() == legal.tolist()
        assert memory.rewards[row, 0] == streamsim.throughput(problem.instance, legal[None])[0]


def test_what_a_problem_teaches_does_not_depend_on_its_batch():
    """Nor does padding: draws and losses are those of the problem alone."""
    together, alone = learner_of(device_state=True), learner_of(device_state=True)
    rows = np.arange(len(PROBLEMS))
    loss = together.loss(rows, 0, 0)[0].item()
    assert sum(alone.loss(rows[i : i + 1], 0, 0)[0].item() for i in rows) == pytest.approx(
        loss, abs=1e-4
    )
    assert torch.equal(together.memory.placements, alone.memory.placements)


def test_random_samples_fill_the_memory_of_hard_problems():
    hard = Problem(fork_join(4), FIVE)
    options = {"exploration": 0.0, "places": 64, "threshold": 1.0}
    plain = learner_of(problems=(hard,), **options)
    eager = learner_of(problems=(hard,), **options, exploration_while_poor=500)
    for learner in (plain, eager):
        learner.loss(np.array([0]), 0, 0)
    assert (plain.memory.rewards >= 0).sum() <= 8
    assert (eager.memory.rewards >= 0).sum() == 64


def test_constrained_problems_are_learnt_from_legal_samples():
    problem = constrained()
    learner = learner_of(problems=(problem,), places=16)
    for step in range(3):
        loss, _ = learner.loss(np.array([0]), step, step)
        assert torch.isfinite(loss)
    known = learner.memory.placements[0, learner.memory.rewards[0] >= 0, : problem.n_operators]
    assert len(known)
    assert problem.legal(known.numpy()).all()
