"""REINFORCE on placements that a policy builds: the learner of all constructive policies.

With r_s the reward of sample s of a problem, b its baseline and w_s its weight, a step raises

    Σ_s w_s (r_s - b) log π(p_s) / S  +  entropy bonus

over the S samples of every problem, drawn just now or replayed.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from streamplace.learn.algorithms.baselines import BASELINES, MovingAverage, advantages
from streamplace.learn.constructive.options import ConstructiveConfig, MemoryConfig
from streamplace.learn.constructive.policy import ConstructivePolicy, PreparedProblems
from streamplace.learn.constructive.replay import MemoryReplay, NoReplay, Sampled
from streamplace.learn.learner import StepReport
from streamplace.learn.policy_learner import PolicyLearner
from streamplace.learn.registry import LearningTask
from streamplace.model.arrays import Bools, Floats, Longs
from streamplace.model.problem import Problem

LEAST_REWARD = 1e-6
"""Smaller rewards are raised to this, since their inverse has no bound."""


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
        """Sample, reward, recall; the policy gradient's loss, summed over the rows."""
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
    """Rewards [G, S] of several problems, padded, and which are there."""
    size = len(samples), max(len(each.rewards) for each in samples)
    rewards, valid = np.zeros(size), np.zeros(size, bool)
    for i, each in enumerate(samples):
        rewards[i, : len(each.rewards)] = each.rewards
        valid[i, : len(each.rewards)] = True
    return rewards, valid
