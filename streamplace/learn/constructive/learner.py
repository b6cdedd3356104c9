"""REINFORCE on placements that a policy builds: the learner of all constructive policies.

With r_s the reward of sample s of a problem, b its baseline and w_s its weight, a step raises

    Σ_s w_s (r_s - b) log π(p_s) / S  +  entropy bonus

over the S samples of every problem, drawn just now or replayed.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from streamsim.canonical import canonical
from torch import Tensor

from streamplace.learn.algorithms.baselines import BASELINES, MovingAverage, advantages
from streamplace.learn.algorithms.memory import BestRewards, PlacementMemory, check_places
from streamplace.learn.constructive.options import ConstructiveConfig, MemoryConfig
from streamplace.learn.constructive.policy import ConstructivePolicy, Placements, PreparedProblems
from streamplace.learn.learner import ALL, Selection, StepReport
from streamplace.learn.policy_learner import PolicyLearner
from streamplace.learn.registry import LearningTask
from streamplace.learn.reward import Reward
from streamplace.model.arrays import Bools, Floats, Ints, Longs
from streamplace.model.problem import Problem, random_placements

LEAST_REWARD = 1e-6
"""Smaller rewards are raised to this, since their inverse has no bound."""


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """Placements [S, N] of one problem to learn from, and their rewards [S]."""

    placements: Placements
    rewards: Floats


class NoReplay(BestRewards):
    """Only the present samples are learned from."""

    def __init__(self, problems: Sequence[Problem], reward: Reward) -> None:
        super().__init__(len(problems))
        self._problems, self._reward = problems, reward

    def samples(
        self, row: int, order: Longs, drawn: Placements, epoch: int, rng: np.random.Generator
    ) -> Sampled:
        """Reward the samples."""
        rewards = rewarded(self._problems[row], self._reward, drawn)[1]
        self.meet(row, rewards.max())
        return Sampled(drawn, rewards)

    def best(self, row: int) -> float:
        """Best reward met."""
        return float(self.rewards[row])


class MemoryReplay(PlacementMemory):
    """A memory of good placements that are replayed, fed by random ones, too (DREAM §3.3)."""

    def __init__(self, problems: Sequence[Problem], reward: Reward, config: MemoryConfig) -> None:
        most = max(problem.n_operators for problem in problems)
        super().__init__(len(problems), config.places, most)
        self._problems, self._reward, self._config = problems, reward, config
        self._devices = np.array([problem.n_devices for problem in problems])

    def samples(
        self, row: int, order: Longs, drawn: Placements, epoch: int, rng: np.random.Generator
    ) -> Sampled:
        """Reward samples, remember them and random ones, and add replayed ones."""
        config = self._config
        rewards = self._remember(row, drawn)
        self._explore(row, order, epoch, rng)
        replayed, again = self.replay(row, config.replayed, config.threshold, len(order))
        placements = canonical_along(self._problems[row], order, replayed)
        return Sampled(np.concatenate([drawn, placements]), np.concatenate([rewards, again]))

    def restore(self, state: Mapping[str, NDArray[Any]], rows: Selection = ALL) -> None:
        """Restore the memories."""
        check_places(state["memory.placements"], self._devices[rows])
        super().restore(state, rows)

    def _explore(self, row: int, order: Longs, epoch: int, rng: np.random.Generator) -> None:
        """Put random samples into a memory, more while no good placement is known."""
        config, problem = self._config, self._problems[row]
        size = exploration(config.exploration, config.exploration_decay, epoch)
        if self.best(row) < config.threshold:
            size = max(size, config.exploration_while_poor)
        near = round(config.near * size)
        if size > near:
            self._remember(row, random_placements(problem, size - near, rng))
        if near:
            remembered = self.placements[row, self.rewards[row] >= 0, : len(order)]
            bases = remembered[rng.integers(len(remembered), size=near)]
            self._remember(row, neighbours(problem, order, bases, rng))

    def _remember(self, row: int, placements: Placements) -> Floats:
        """Rewards [S] of placements [S, N]; the good ones are remembered."""
        problem = self._problems[row]
        legal, rewards = rewarded(problem, self._reward, placements)
        good = rewards > self.rewards[row, -1]
        if good.any():
            self.add(row, problem.canonical(legal[good]), rewards[good])
        return rewards


def rewarded(problem: Problem, reward: Reward, placements: Placements) -> tuple[Ints, Floats]:
    """Placements [S, N] after repair, and their rewards [S]."""
    legal = problem.repaired(placements.astype(np.int32))
    return legal, reward(problem, legal)


def exploration(first: float, decay: float, epoch: int) -> int:
    """Number of random samples in an epoch, first · e^(-decay · epoch).

    >>> [exploration(20, 1.0, epoch) for epoch in range(5)]
    [20, 7, 3, 1, 0]
    """
    return round(first * math.exp(-decay * epoch))


def neighbours(
    problem: Problem, order: NDArray[Any], bases: NDArray[Any], rng: np.random.Generator
) -> Ints:
    """Legal placements that differ from given ones [S, N] in one run of operators.

    A run is contiguous in the order; its length is geometric with mean 2.
    """
    size, n = bases.shape
    start = rng.integers(n, size=(size, 1))
    length = rng.geometric(0.5, size=(size, 1))
    position = np.empty(n, np.int64)
    position[order] = np.arange(n)
    moved = (position >= start) & (position < start + length)
    device = rng.integers(problem.n_devices, size=(size, 1), dtype=np.int32)
    return problem.repaired(np.where(moved, device, bases))


def canonical_along(problem: Problem, order: NDArray[Any], placements: NDArray[Any]) -> Ints:
    """Placements [S, N] with interchangeable devices renumbered by first appearance in an order."""
    rows = np.ascontiguousarray(placements, np.int32)
    return canonical(rows, order.astype(np.int32), np.array(problem.interchangeable))


class ConstructiveLearner(PolicyLearner[ConstructiveConfig]):
    """A policy on its training problems; see `streamplace.learn.policy_learner`."""

    def __init__(
        self, task: LearningTask, config: ConstructiveConfig, policy: ConstructivePolicy
    ) -> None:
        super().__init__(task, config, policy.module)
        self.policy = policy
        self.replay = (
            MemoryReplay(task.training, self.reward, config)
            if isinstance(config, MemoryConfig)
            else NoReplay(task.training, self.reward)
        )
        self._average = MovingAverage(self.n_problems) if config.baseline == "moving" else None
        self.memories = (self.replay,) if self._average is None else (self.replay, self._average)
        self._training = policy.on(task.training)

    @cached_property
    def _validation(self) -> PreparedProblems:
        return self.policy.on(self.task.validation)

    def loss(self, rows: Longs, epoch: int, seed: int) -> tuple[Tensor, StepReport]:
        """Loss of the policy gradient on drawn and on replayed samples, summed over the rows."""
        rng = np.random.default_rng(seed)
        generator = torch.Generator(self.task.device).manual_seed(int(rng.integers(2**62)))
        batch = self._training.encoded(rows, rng)
        drawn = batch.drawn(self.config.on_policy, generator)
        samples = [
            self.replay.samples(row, order, placements, epoch, rng)
            for row, order, placements in zip(rows.tolist(), batch.orders, drawn, strict=True)
        ]
        rewards, valid = stacked(samples)
        weights = self._weights(rows, rewards, valid) * batch.weights(rewards.shape[1])
        likelihood = batch.likelihood([each.placements for each in samples])
        now = len(drawn[0])
        entropy = likelihood.entropy[:, :now].mean(1)
        factors = torch.from_numpy(weights.astype(np.float32)).to(entropy.device)
        gained = (factors * likelihood.log_probability).sum(1)
        loss = -(gained + self.config.entropy * entropy).sum()
        return loss, StepReport(
            problems=len(rows),
            reward=sum(float(each.rewards[:now].mean()) for each in samples),
            best=sum(self.replay.best(row) for row in rows.tolist()),
            entropy=float(entropy.detach().sum()),
        )

    def judged(self, problems: Sequence[Problem], numbers: Sequence[int]) -> list[float]:
        """Reward of the greedy placements."""
        if not numbers:
            return []
        placements = self._validation.greedy(np.array(numbers))
        pairs = zip(problems, placements, strict=True)
        return [float(self.reward(problem, row[None])[0]) for problem, row in pairs]

    def features(self) -> dict[str, Any]:
        """Names of the policy's features, and their scale."""
        return self.policy.features()

    def _weights(self, rows: Longs, rewards: Floats, valid: Bools) -> Floats:
        """Advantages [G, S] over their number."""
        config = self.config
        baseline = BASELINES[config.baseline] if self._average is None else self._average.of(rows)
        signal = SIGNALS[config.signal](rewards)
        return advantages(signal, valid, baseline, normalised=config.normalised)


def _root(rewards: Floats) -> Floats:
    return -1 / np.sqrt(np.maximum(rewards, LEAST_REWARD))


SIGNALS = {"reward": lambda rewards: rewards, "root": _root}


def stacked(samples: Sequence[Sampled]) -> tuple[Floats, Bools]:
    """Rewards [G, S] of several problems, padded, and which of them are no padding."""
    size = len(samples), max(len(each.rewards) for each in samples)
    rewards, valid = np.zeros(size), np.zeros(size, bool)
    for i, each in enumerate(samples):
        rewards[i, : len(each.rewards)] = each.rewards
        valid[i, : len(each.rewards)] = True
    return rewards, valid
