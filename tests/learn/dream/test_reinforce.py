"""REINFORCE on tiny graphs."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import streamsim
import torch
from adam import train
from dream_cases import FIVE, MODELS, batch_of, options
from problems import chain, constrained, diamond, fork_join

from streamplace.learn.constructive.memory import EMPTY
from streamplace.learn.models.dream import policy
from streamplace.learn.registry import LearningTask
from streamplace.learn.shards import ThreadWorkers, shards
from streamplace.model import Problem
from streamplace.model.problem import random_placements

GRAPHS = [fork_join(2), fork_join(3), diamond(), chain(4, payload=6e4), chain(6, ipt=2e5)]
PROBLEMS = tuple(Problem(graph, FIVE) for graph in GRAPHS)


def learner_of(model="dream", problems=PROBLEMS, targets=False, **changes):
    torch.manual_seed(0)
    found = (np.arange(p.n_operators, dtype=np.int32) % 3 for p in problems if targets)
    task = LearningTask(problems, problems, seed=0, targets=tuple(found))
    return policy.learner_of(task, options(model, **{"width": 16, **changes}), model)


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
    memory = policy.learner_of(task, options("dream"), "dream").memory
    assert (memory.rewards[2] == EMPTY).all()
    for row, (problem, target) in enumerate(zip(problems[:2], targets, strict=False)):
        legal = problem.repaired(target)
        named = batch_of([problem], "bfs").canonical(torch.from_numpy(legal).long()[None, None])
        assert memory.placements[row, 0, : problem.n_operators].tolist() == named.flatten().tolist()
        assert memory.rewards[row, 0] == streamsim.throughput(problem.instance, legal[None])[0]


@pytest.mark.parametrize(
    "changes", [{}, {"imitation": 1, "searched": 1}, {"fresh": 5, "devices": 64}]
)
def test_a_seed_fixes_a_step_however_many_threads_work(changes):
    """Gradients and memories have the same bits; another seed has others."""
    parts, results = [shards(np.arange(5), 2, seed, 0, 0) for seed in (0, 0, 1)], []
    with ThreadPoolExecutor(2) as pool:
        for each, some in zip((map, pool.map, map), parts, strict=True):
            learner = learner_of(device_state=True, targets=True, **changes)
            tensors = ThreadWorkers(learner, each).gradient(some).tensors
            results.append([*tensors, learner.memory.placements])
    one, again, other = results
    assert all(map(torch.equal, one, again))
    assert "imitation" in changes or not all(map(torch.equal, one, other))


def test_imitation_raises_the_likelihood_of_what_was_found():
    learner = learner_of(imitation=30, searched=1, targets=True)
    found, rows = learner.memory.placements[:, :1].long(), torch.arange(len(PROBLEMS))

    def likely():
        return learner.module(learner.policy.on(PROBLEMS).batch(rows), 0, found).log_probability

    before = likely()
    train(learner, 30, rate=0.02)
    assert (likely() > before + 1).all()
    assert torch.equal(learner.memory.placements[:, :1].long(), found)


def test_fresh_problems_leave_no_memory_and_are_learnt_from():
    learner = learner_of(device_state=True, devices=64, fresh=80, fresh_branched=1.0)
    assert len(learner.sizes(0)) == 80
    before = learner.validate().mean()
    train(learner, 3, rate=0.01)
    assert learner.validate().mean() > before
    assert (learner.memory.rewards == EMPTY).all()


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
