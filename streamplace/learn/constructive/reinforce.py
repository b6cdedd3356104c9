"""REINFORCE on placements that a policy builds: the learner of all constructive policies.

With r_s the reward of sample s of a problem, b its baseline and w_s its weight, a step raises

    Σ_s w_s (r_s - b) log π(p_s) / S  +  entropy bonus

over the S samples of every problem, drawn just now or replayed.
"""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from streamplace.learn.algorithms.baselines import BASELINES, MovingAverage, advantages
from streamplace.learn.config import ConstructiveConfig, MemoryConfig
from streamplace.learn.constructive.policy import ConstructivePolicy, EncodedBatch, PreparedProblems
from streamplace.learn.learner import StepReport
from streamplace.learn.learner_base import PolicyLearner, RowMemory
from streamplace.learn.registry import LearningTask
from streamplace.learn.tensors.draws import child, children
from streamplace.learn.tensors.memory import (
    EMPTY,
    Outlines,
    PlacementMemory,
    canonical,
    random_placements,
)
from streamplace.model.arrays import Longs
from streamplace.model.problem import Problem

LEAST_REWARD = 1e-6
"""Smaller rewards are raised to this, since their inverse has no bound."""
BEST_ONLY = MemoryConfig(replayed=0, places=1, exploration=0.0)
"""The memory of a policy that replays nothing."""


def exploration(first: float, decay: float, epoch: int) -> int:
    """Number of random samples in an epoch, first · e^(-decay · epoch).

    >>> [exploration(20, 1.0, epoch) for epoch in range(5)]
    [20, 7, 3, 1, 0]
    """
    return round(first * math.exp(-decay * epoch))


class ConstructiveLearner(PolicyLearner[ConstructiveConfig]):
    """A policy on its training problems; see `streamplace.learn.learner_base`."""

    def __init__(
        self, task: LearningTask, config: ConstructiveConfig, policy: ConstructivePolicy
    ) -> None:
        super().__init__(task, config, policy.module)
        self.policy = policy
        self._replay = config if isinstance(config, MemoryConfig) else BEST_ONLY
        self._training = policy.on(task.training)
        self._outlines = Outlines.of(task.training)
        most = int(self.sizes.max())
        self.memory = PlacementMemory(self._outlines, self._replay.places, most)
        moving = config.baseline == "moving"
        self._average = MovingAverage(self.n_problems) if moving else None
        self.memories: tuple[RowMemory, ...] = (self.memory,)
        if self._average is not None:
            self.memories += (self._average,)
        for row, target in enumerate(task.targets):
            if target is not None:
                placement = torch.from_numpy(target).long()[None, None]
                self.memory.add(torch.tensor([row]), *self.judge(torch.tensor([row]), placement))

    @cached_property
    def _validation(self) -> PreparedProblems:
        return self.policy.on(self.task.validation)

    def loss(self, rows: Longs, epoch: int, seed: int) -> tuple[Tensor, StepReport]:
        """Loss of the policy gradient on drawn and on replayed samples, summed over the rows."""
        replay, numbers, n = self._replay, torch.from_numpy(rows), int(self.sizes[rows].max())
        of_batch, of_samples, of_random = children(child(torch.tensor(seed), numbers), 3)
        batch = self._training.encoded(numbers, n, of_batch)
        drawn = batch.drawn(self.config.on_policy, of_samples)
        rewards = self._remember(numbers, batch, drawn)
        explored = exploration(replay.exploration, replay.exploration_decay, epoch)
        self._explore(numbers, of_random, batch, explored)
        replayed, again = self.memory.replay(numbers, replay.replayed, n)
        good = again >= max(replay.threshold, 0.0)
        if not replay.exploration_while_poor:
            good[:, :1] |= again[:, :1] > EMPTY
        placements = torch.cat([drawn, self._named(replayed, batch.order, numbers)], dim=1)
        valid = torch.cat([torch.ones_like(rewards, dtype=torch.bool), good], dim=1)
        weights = self._weights(numbers, torch.cat([rewards, again], dim=1), valid)
        weights = weights * batch.weights(weights.shape[1])
        likelihood = batch.likelihood(placements)
        entropy = likelihood.entropy[:, : drawn.shape[1]].mean(1)
        gained = (weights.float() * likelihood.log_probability).sum(1)
        loss = -(gained + self.config.entropy * entropy).sum()
        parts = rewards.mean(1), self.memory.best(numbers), entropy.detach().double()
        return loss, StepReport(len(rows), *torch.stack(parts).sum(1).tolist())

    def judge(self, rows: Tensor, placements: Tensor) -> tuple[Tensor, Tensor]:
        """Placements [G, S, N] of training problems [G] after repair, and their rewards [G, S]."""
        legal = placements.to(torch.int32).numpy()
        rewards = np.zeros(legal.shape[:2])
        for i, row in enumerate(rows.tolist()):
            problem = self.task.training[row]
            own = legal[i, :, : problem.n_operators]
            own[:] = problem.repaired(np.ascontiguousarray(own))
            rewards[i] = self.reward(problem, np.ascontiguousarray(own))
        return torch.from_numpy(legal).long(), torch.from_numpy(rewards)

    def judged(self, problems: Sequence[Problem], numbers: Sequence[int]) -> list[float]:
        """Reward of the greedy placements."""
        if not numbers:
            return []
        placements = self._validation.greedy(np.array(numbers))
        pairs = zip(problems, placements, strict=True)
        return [float(self.reward(problem, row[None])[0]) for problem, row in pairs]

    def features(self) -> dict[str, Any]:
        """Names of the policy's features, and their scale."""
        return self.policy.scale.document()

    def _explore(self, rows: Tensor, keys: Tensor, batch: EncodedBatch, explored: int) -> None:
        """Put random samples into the memories, more of them where no good placement is known."""
        replay, n, outlines = self._replay, batch.order.shape[1], self._outlines.of_rows(rows)
        poor = self.memory.best(rows) < replay.threshold
        count = torch.where(poor, max(explored, replay.exploration_while_poor), explored)
        if most := max(explored, replay.exploration_while_poor):
            (of_random,) = children(keys, 1)
            random = random_placements(of_random, most, n, outlines)
            self._remember(rows, batch, random, count)

    def _remember(
        self, rows: Tensor, batch: EncodedBatch, placements: Tensor, count: Tensor | None = None
    ) -> Tensor:
        """Rewards [G, S] of placements [G, S, N]; the memories keep the best of the first ones."""
        legal, rewards = self.judge(rows, placements)
        kept, n = rewards, placements.shape[2]
        if count is not None:
            kept = rewards.masked_fill(torch.arange(rewards.shape[1]) >= count[:, None], EMPTY)
        order = torch.arange(n).expand(len(rows), -1)
        self.memory.add(rows, self._named(legal, order, rows), kept)
        return rewards

    def _named(self, placements: Tensor, order: Tensor, rows: Tensor) -> Tensor:
        """Placements [G, S, N], interchangeable devices by first use in the orders."""
        return canonical(placements, order, self._outlines.of_rows(rows))

    def _weights(self, rows: Tensor, rewards: Tensor, valid: Tensor) -> Tensor:
        """Advantages [G, S] over their number."""
        config = self.config
        baseline = BASELINES[config.baseline] if self._average is None else self._average.of(rows)
        signal = SIGNALS[config.signal](rewards)
        return advantages(signal, valid, baseline, normalised=config.normalised)


SIGNALS = {
    "reward": lambda rewards: rewards,
    "root": lambda rewards: -rewards.clamp(min=LEAST_REWARD).rsqrt(),
}
