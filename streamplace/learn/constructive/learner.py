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
from streamplace.learn.constructive.options import ConstructiveConfig, MemoryConfig
from streamplace.learn.constructive.policy import (
    ConstructivePolicy,
    EncodedBatch,
    PreparedProblems,
)
from streamplace.learn.learner import StepReport
from streamplace.learn.policy_learner import PolicyLearner
from streamplace.learn.registry import LearningTask
from streamplace.learn.tensors.draws import child
from streamplace.learn.tensors.memory import (
    EMPTY,
    Outlines,
    PlacementMemory,
    canonical,
    neighbours,
    random_placements,
)
from streamplace.learn.tensors.rewards import judge_of
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
    """A policy on its training problems; see `streamplace.learn.policy_learner`."""

    def __init__(
        self, task: LearningTask, config: ConstructiveConfig, policy: ConstructivePolicy
    ) -> None:
        super().__init__(task, config, policy.module)
        self.policy = policy
        self._replay = config if isinstance(config, MemoryConfig) else BEST_ONLY
        self._outlines = Outlines.of(task.training, task.device)
        self._sizes = super().sizes
        self.memory = PlacementMemory(self._outlines, self._replay.places, self._sizes.max())
        self._average = (
            MovingAverage(self.n_problems, task.device) if config.baseline == "moving" else None
        )
        self.memories = (self.memory,) if self._average is None else (self.memory, self._average)
        self.judge = judge_of(self.reward, task.training, task.device)
        self._training = policy.on(task.training)

    @property
    def sizes(self) -> Longs:
        """Operators of each training problem."""
        return self._sizes

    @cached_property
    def _validation(self) -> PreparedProblems:
        return self.policy.on(self.task.validation)

    def loss(self, rows: Longs, epoch: int, seed: int) -> tuple[Tensor, StepReport]:
        """Loss of the policy gradient on drawn and on replayed samples, summed over the rows."""
        replay, device = self._replay, self.task.device
        explored = exploration(replay.exploration, replay.exploration_decay, epoch)
        loss, sums = self.step(
            torch.from_numpy(rows).to(device),
            torch.tensor(seed, device=device),
            torch.tensor(explored, device=device),
            n=int(self._sizes[rows].max()),
            most=max(explored, replay.exploration_while_poor),
        )
        reward, best, entropy = sums.tolist()
        return loss, StepReport(len(rows), reward, best, entropy)

    def step(
        self, rows: Tensor, seed: Tensor, explored: Tensor, *, n: int, most: int
    ) -> tuple[Tensor, Tensor]:
        """Loss on problems of at most n operators; sums of rewards, best rewards and entropies.

        As many random samples as ``explored`` says, at most ``most``, which sets the shapes.
        """
        keys = child(seed, rows)
        batch = self._training.encoded(rows, n, child(keys, 0))
        drawn = batch.drawn(self.config.on_policy, child(keys, 1))
        rewards = self._remember(rows, drawn)
        self._explore(rows, child(keys, 2), batch, explored, most)
        replayed, again, good = self.memory.replay(
            rows, self._replay.replayed, self._replay.threshold, n
        )
        outlines = self._outlines.of_rows(rows)
        placements = torch.cat([drawn, canonical(replayed, batch.order, outlines)], dim=1)
        valid = torch.cat([torch.ones_like(rewards, dtype=torch.bool), good], dim=1)
        weights = self._weights(rows, torch.cat([rewards, again], dim=1), valid)
        weights = weights * batch.weights(weights.shape[1])
        likelihood = batch.likelihood(placements)
        entropy = likelihood.entropy[:, : drawn.shape[1]].mean(1)
        gained = (weights.float() * likelihood.log_probability).sum(1)
        loss = -(gained + self.config.entropy * entropy).sum()
        parts = rewards.mean(1), self.memory.best(rows), entropy.detach().double()
        return loss, torch.stack(parts).sum(1)

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

    def _explore(
        self, rows: Tensor, keys: Tensor, batch: EncodedBatch, explored: Tensor, most: int
    ) -> None:
        """Put random samples into the memories, more of them where no good placement is known."""
        replay, n, outlines = self._replay, batch.order.shape[1], self._outlines.of_rows(rows)
        poor = self.memory.best(rows) < replay.threshold
        count = torch.where(poor, explored.clamp(min=replay.exploration_while_poor), explored)
        near = round(replay.near * most)
        if most > near:
            random = random_placements(child(keys, 0), most - near, n, outlines)
            self._remember(rows, random, (count * (1 - replay.near)).ceil())
        if near:
            known = self.memory.placements[rows, :, :n], self.memory.rewards[rows]
            moved = neighbours(child(keys, 1), near, batch.order, outlines, *known)
            self._remember(rows, moved, (count * replay.near).round())

    def _remember(self, rows: Tensor, placements: Tensor, count: Tensor | None = None) -> Tensor:
        """Rewards [G, S] of placements [G, S, N]; the memories keep the best of the first ones."""
        legal, rewards = self.judge(rows, placements)
        kept, n = rewards, placements.shape[2]
        if count is not None:
            number = torch.arange(rewards.shape[1], device=rewards.device)
            kept = rewards.masked_fill(number >= count[:, None], EMPTY)
        outlines = self._outlines.of_rows(rows)
        order = torch.arange(n, device=rows.device).expand(len(rows), -1)
        self.memory.add(rows, canonical(legal, order, outlines), kept)
        return rewards

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
