"""REINFORCE on tiny graphs."""

from typing import Any

import numpy as np
import pytest
import torch
from dream_cases import FIVE, MODELS, options
from numpy.typing import NDArray
from problems import chain, constrained, diamond, fork_join

from streamplace.learn.algorithms.memory import PlacementMemory
from streamplace.learn.constructive.learner import ConstructiveLearner, MemoryReplay
from streamplace.learn.models.dream.graphs import FeatureScale
from streamplace.learn.models.dream.module import built_module
from streamplace.learn.models.dream.options import UPSTREAM
from streamplace.learn.models.dream.policy import DreamPolicy
from streamplace.learn.registry import LearningTask
from streamplace.model import Problem
from streamplace.model.problem import random_placements

GRAPHS = [fork_join(2), fork_join(3), diamond(), chain(4, payload=6e4), chain(6, ipt=2e5)]
PROBLEMS = tuple(Problem(graph, FIVE) for graph in GRAPHS)


def learner_of(
    model: str = "dream",
    seed: int = 0,
    problems: tuple[Problem, ...] = PROBLEMS,
    reward: str = "steady",
    **changes: object,
) -> ConstructiveLearner:
    config = options(model, **{"width": 16, **changes})
    torch.manual_seed(seed)
    task = LearningTask(problems, problems, seed, reward=reward)
    policy = DreamPolicy(
        built_module(config, upstream=model in UPSTREAM), config, FeatureScale.of(problems)
    )
    return ConstructiveLearner(task, config, policy)


def memory_of(learner: ConstructiveLearner) -> PlacementMemory:
    """What it remembers."""
    assert isinstance(learner.replay, MemoryReplay)
    return learner.replay


def trained(learner: ConstructiveLearner, steps: int, rate: float = 0.01) -> ConstructiveLearner:
    adam = torch.optim.Adam(learner.module.parameters(), lr=rate)
    rows = np.arange(learner.n_problems)
    for step in range(steps):
        adam.zero_grad()
        loss, _ = learner.loss(rows, epoch=step, seed=step)
        (loss / len(rows)).backward()
        adam.step()
    return learner


def by_chance(problems: tuple[Problem, ...] = PROBLEMS) -> float:
    """Mean relative throughput of random placements."""
    rng = np.random.default_rng(0)
    learner = learner_of(problems=problems)
    return float(
        np.mean([learner.reward(p, random_placements(p, 500, rng)).mean() for p in problems])
    )


@pytest.mark.parametrize(
    "model", ["dream", *(pytest.param(name, marks=pytest.mark.slow) for name in MODELS[1:])]
)
def test_training_beats_chance(model: str) -> None:
    learner = trained(learner_of(model, exploration=20.0), steps=50, rate=0.02)
    assert learner.validate().mean() > by_chance() + 0.1


def test_samples_get_better_without_replay() -> None:
    learner = learner_of(replayed=0, exploration=0.0)
    rows = np.arange(len(PROBLEMS))
    before = learner.loss(rows, 0, 0)[1].reward
    after = trained(learner, 50, rate=0.02).loss(rows, 50, 50)[1].reward
    assert after > before + 0.1 * len(rows)


def test_reports_are_sums_over_problems() -> None:
    learner = learner_of(random_ties=False, exploration=0.0, replayed=0)
    rows = np.arange(len(PROBLEMS))
    report = learner.loss(rows, 0, 0)[1]
    assert report.problems == len(rows)
    assert 0 < report.reward <= report.best <= len(rows)
    assert 0 < report.entropy < len(rows) * np.log(5)


def test_the_gradient_is_that_of_equation_4() -> None:
    """Of one problem: Σ (r - b) ∇ log π / N over what was sampled and replayed."""
    learner = learner_of(problems=PROBLEMS[:1], normalised=False, entropy=0.0)
    seen: list[tuple[torch.Tensor, torch.Tensor]] = []
    module: Any = learner.module
    likelihood = module.likelihood

    def spied(*arguments: Any) -> Any:
        seen.append((arguments[2], likelihood(*arguments).log_probability))
        return likelihood(*arguments)

    module.likelihood = spied
    loss = learner.loss(np.array([0]), 0, 0)[0]
    placements, log_probability = seen[0]
    row = placements[0].numpy()
    assert row.shape[0] > 8
    by_operator = np.empty_like(row)
    by_operator[:, _order_of(learner, 0)] = row
    rewards = learner.reward(PROBLEMS[0], by_operator.astype(np.int32))
    expected = -((rewards - rewards.mean()) * log_probability[0].detach().numpy()).mean()
    assert loss.item() == pytest.approx(expected, abs=1e-5)


def _order_of(learner: ConstructiveLearner, seed: int) -> NDArray[np.int64]:
    """Order of the first problem in the loss of a seed."""
    rng = np.random.default_rng(seed)
    rng.integers(2**62)
    prepared = learner.policy.on(PROBLEMS[:1])
    return prepared.encoded(np.array([0]), rng).orders[0]


def test_random_samples_fill_the_memory_of_hard_problems() -> None:
    """More of them while nothing good is known."""
    hard = Problem(fork_join(4), FIVE)
    options = {"exploration": 0.0, "places": 64, "threshold": 1.0}
    plain = learner_of(problems=(hard,), **options)
    eager = learner_of(problems=(hard,), **options, exploration_while_poor=500)
    for learner in (plain, eager):
        learner.loss(np.array([0]), 0, 0)
    assert (memory_of(plain).rewards >= 0).sum() <= 8
    assert (memory_of(eager).rewards >= 0).sum() == 64


def test_neighbours_of_remembered_ones_explore() -> None:
    """They are better than any random ones."""
    hard = Problem(fork_join(4), FIVE)
    best = []
    for near in (0.0, 1.0):
        learner = learner_of(problems=(hard,), exploration=300.0, exploration_decay=0.0, near=near)
        for epoch in range(5):
            learner.loss(np.array([0]), epoch, epoch)
        best.append(memory_of(learner).best(0))
    assert best[1] >= best[0]


@pytest.mark.slow
def test_rewards_may_come_from_the_engine() -> None:
    problems = PROBLEMS[:2]
    steady, engine = (learner_of(problems=problems, reward=name) for name in ("steady", "engine"))
    rows = np.arange(2)
    reports = [learner.loss(rows, 9, 0)[1] for learner in (steady, engine)]
    assert reports[1].reward == pytest.approx(reports[0].reward, abs=0.05)


def test_constrained_problems_are_learnt_from_legal_samples() -> None:
    problem = constrained()
    learner = learner_of(problems=(problem,), places=16)
    for step in range(3):
        loss, _ = learner.loss(np.array([0]), step, step)
        assert torch.isfinite(loss)
    known = memory_of(learner).placements[
        0, memory_of(learner).rewards[0] >= 0, : problem.n_operators
    ]
    assert len(known)
    assert problem.legal(known).all()
