"""REINFORCE on placements that a policy builds: the learner of all constructive policies.

With r_s the reward of sample s of a problem, b its baseline and w_s its weight, a step raises

    Σ_s w_s (r_s - b) log π(p_s) / S  +  entropy bonus

over the S samples of every problem, newly drawn or replayed. In the first epochs it may imitate
the best placement known instead, and it may go on with graphs that are made anew in every step.
"""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from streamplace.errors import SettingError
from streamplace.learn.algorithms.baselines import (
    BASELINES,
    Baseline,
    MovingAverage,
    advantages,
    favouring_gains,
    mean,
)
from streamplace.learn.config import ConstructiveConfig, MemoryConfig
from streamplace.learn.constructive.memory import (
    EMPTY,
    PlacementMemory,
    random_placements,
    repeated,
)
from streamplace.learn.constructive.policy import ConstructivePolicy, Decisions, Prepared
from streamplace.learn.env import Environment, ProblemTensors
from streamplace.learn.env.fresh import FreshProblems
from streamplace.learn.learner import StepReport
from streamplace.learn.learner_base import PolicyLearner, RowMemory
from streamplace.learn.registry import LearningTask
from streamplace.learn.reward import steady
from streamplace.model.arrays import Longs
from streamplace.model.problem import Problem
from streamplace.model.random_numbers import torch_generator

MIN_REWARD = 1e-6
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
    """A policy on its training problems, prepared for it; see `streamplace.learn.learner_base`."""

    def __init__(
        self,
        task: LearningTask,
        config: ConstructiveConfig,
        policy: ConstructivePolicy,
        training: Prepared,
    ) -> None:
        super().__init__(task, config, policy.module)
        self.policy, self._training = policy, training
        self._replay = config if isinstance(config, MemoryConfig) else BEST_ONLY
        self._imitated = self._replay.imitation if self._replay.searched else 0
        self._tensors = (
            training
            if isinstance(training, ProblemTensors)
            else ProblemTensors(task.training, policy.device)
        )
        self._fresh = self._fresh_problems() if self._replay.fresh else None
        self.memory = PlacementMemory(self._training.sizes, self._replay.places, policy.device)
        moving = config.baseline == "moving"
        self._average = MovingAverage(len(task.training), policy.device) if moving else None
        self.memories: tuple[RowMemory, ...] = (self.memory,)
        if self._average is not None:
            self.memories += (self._average,)
        for row, target in enumerate(task.targets):
            if target is not None:
                numbers = torch.tensor([row], device=policy.device)
                placement = torch.from_numpy(target).long().to(policy.device)[None, None]
                self._remember(numbers, self._environment(numbers), placement)

    def _fresh_problems(self) -> FreshProblems:
        if self.reward is not steady:
            raise SettingError(
                "problems that are made anew are rewarded by their throughput in the steady state "
                "alone; leave fresh out"
            )
        replay, device = self._replay, self.policy.device
        return FreshProblems(self.task.training, replay.fresh, replay.fresh_branched, device)

    def sizes(self, epoch: int) -> Longs:
        """Operators of each given problem, or after imitation, of each new problem."""
        if self._fresh is None or epoch < self._imitated:
            return self._training.sizes
        return self._fresh.sizes

    @cached_property
    def _validation(self) -> Prepared:
        return self.policy.on(self.task.validation)

    def loss(self, rows: Longs, epoch: int, seed: int) -> tuple[Tensor, StepReport]:
        """Loss of the policy gradient on drawn and on replayed samples, summed over the rows."""
        generator = torch_generator(seed, self.policy.device)
        if self._fresh is not None and epoch >= self._imitated:
            return self._loss_on_fresh(self._fresh, rows, generator)
        numbers = torch.from_numpy(rows).to(self.policy.device)
        batch = self._training.batch(numbers, generator)
        env = self._environment(numbers)
        if epoch < self._imitated:
            return self._loss_of_imitation(numbers, env, batch)
        explored = self._explore(numbers, env, generator, epoch)
        n = int(self._training.sizes[rows].max())
        samples, n_replayed = self.config.on_policy, self._replay.replayed
        if self._replay.renumbered:
            with torch.no_grad():
                drawn = self.policy.module(batch, samples, None, generator).placements
            drawn = env.batch.canonical(drawn)
            rewards = self._remember(numbers, env, drawn)
            once = ~repeated(drawn, torch.ones_like(rewards, dtype=torch.bool))
            replayed, again = self.memory.replay(numbers, n_replayed, n)
            both = torch.cat([drawn, replayed], dim=1)
            decisions = self.policy.module(batch, 0, both, generator)
        else:
            replayed, again = self.memory.replay(numbers, n_replayed, n)
            decisions = self.policy.module(batch, samples, replayed, generator)
            rewards = self._remember(numbers, env, decisions.placements[:, :samples])
            once = torch.ones_like(rewards, dtype=torch.bool)
        good = again >= max(self._replay.threshold, 0.0)
        if self._replay.replay_best:
            good[:, :1] |= again[:, :1] > EMPTY
        valid, every = torch.cat([once, good], dim=1), torch.cat([rewards, again], dim=1)
        weights = self._weights(every, valid, decisions, self._baseline(numbers, good, epoch))
        return self._loss(decisions, weights, rewards, self.memory.best(numbers), explored)

    def _loss_on_fresh(
        self, fresh: FreshProblems, rows: Longs, generator: torch.Generator
    ) -> tuple[Tensor, StepReport]:
        """Loss on problems that are made anew, which have no memory."""
        batch = fresh.batch(rows, generator)
        decisions = self.policy.module(batch, self.config.on_policy, None, generator)
        rewards = self._judged(Environment(batch), decisions.placements)[1]
        every = torch.ones_like(rewards, dtype=torch.bool)
        baseline = BASELINES["none" if self.config.baseline == "none" else "mean"]
        weights = self._weights(rewards, every, decisions, baseline)
        return self._loss(decisions, weights, rewards, rewards.amax(1))

    def _loss_of_imitation(
        self, numbers: Tensor, env: Environment, batch: Any
    ) -> tuple[Tensor, StepReport]:
        """Loss that raises the likelihood of the best known placements."""
        best, rewards = self.memory.replay(numbers, 1, env.batch.present.shape[1])
        decisions = self.policy.module(batch, 1, best)
        known = (rewards > EMPTY).double() / env.batch.present.sum(1, keepdim=True)
        drawn = self._judged(env, decisions.placements[:, :1])[1]
        weights = torch.cat([torch.zeros_like(drawn), known], dim=1)
        return self._loss(decisions, weights, drawn, self.memory.best(numbers))

    def _loss(
        self,
        decisions: Decisions,
        weights: Tensor,
        rewards: Tensor,
        best: Tensor,
        explored: int = 0,
    ) -> tuple[Tensor, StepReport]:
        if decisions.weights is not None:
            weights = weights * decisions.weights
        entropy = decisions.entropy[:, : rewards.shape[1]].mean(1)
        gained = (weights.float() * decisions.log_probability).sum(1)
        loss = -(gained + self.config.entropy * entropy).sum()
        parts = rewards.mean(1), best, entropy.detach().double()
        reward, known, spread = torch.stack(parts).sum(1).tolist()
        evaluations = rewards.numel() + explored
        return loss, StepReport(len(rewards), reward, known, spread, evaluations)

    def judged(self, problems: Sequence[Problem], numbers: Sequence[int]) -> list[float]:
        """Reward of the greedy placements."""
        if not numbers:
            return []
        placements = self.policy.greedy(self.task.validation, self._validation, np.array(numbers))
        pairs = zip(problems, placements, strict=True)
        return [float(self.reward(problem, row[None])[0]) for problem, row in pairs]

    def features(self) -> dict[str, Any]:
        """Names of the policy's features, and their scale."""
        return self.policy.scale.document()

    def _environment(self, numbers: Tensor) -> Environment:
        problems = [self.task.training[i] for i in numbers.tolist()]
        return Environment(self._tensors.batch(numbers), problems, self.reward)

    def _explore(
        self, numbers: Tensor, env: Environment, generator: torch.Generator, epoch: int
    ) -> int:
        """Put random samples into the memories, more of them where no good placement is known.

        Returns their number.
        """
        replay = self._replay
        usual = exploration(replay.exploration, replay.exploration_decay, epoch)
        if not (size := max(usual, replay.exploration_while_poor)):
            return 0
        count = torch.where(self.memory.best(numbers) < replay.poor_below, size, usual)
        placements = random_placements(env.batch, size, generator, replay.exploration_over)
        self._remember(numbers, env, placements, count)
        return size * len(numbers)

    def _judged(self, env: Environment, placements: Tensor) -> tuple[Tensor, Tensor]:
        """Legal placements [G, S, N], and their rewards [G, S]."""
        legal, rewards = env.judged(placements)
        if self._replay.per_device:
            used = one_hot(legal, env.batch.exists.shape[1]) * env.batch.present[:, None, :, None]
            rewards = rewards / used.amax(2).sum(2)
        return legal, rewards

    def _remember(
        self, numbers: Tensor, env: Environment, placements: Tensor, count: Tensor | None = None
    ) -> Tensor:
        """Rewards [G, S] of placements; the best of the first ones [G] go into the memories.

        Placements that differ in the names of interchangeable devices alone are kept once.
        """
        legal, rewards = self._judged(env, placements)
        kept = rewards
        if count is not None:
            beyond = torch.arange(rewards.shape[1], device=rewards.device) >= count[:, None]
            kept = rewards.masked_fill(beyond, EMPTY)
        self.memory.add(numbers, env.batch.canonical(legal), kept)
        return rewards

    def _baseline(self, numbers: Tensor, good: Tensor, epoch: int) -> Baseline:
        """Baseline of samples after which good ones [G, R] are replayed."""
        config = self.config
        if self._average is not None:
            return self._average.of(numbers)
        if config.baseline != "memory":
            return BASELINES[config.baseline]
        if epoch == 0:
            drawn = config.on_policy
            return lambda signal, valid: mean(signal[:, :drawn], valid[:, :drawn])
        best = self.memory.rewards[numbers]
        place = torch.arange(best.shape[1], device=best.device)
        counted = (best > EMPTY) & (place < (2 * good.sum(1, keepdim=True) - 1).clamp(min=2))
        level = mean(SIGNALS[config.signal](best), counted)
        return lambda *_: level

    def _weights(
        self, rewards: Tensor, valid: Tensor, decisions: Decisions, baseline: Baseline
    ) -> Tensor:
        """Advantages [G, S] over their number."""
        config = self.config
        signal = SIGNALS[config.signal](rewards)
        weights = advantages(signal, valid, baseline, normalised=config.normalised)
        if config.gain == 1:
            return weights
        return favouring_gains(weights, decisions.log_probability.detach(), config.gain)


SIGNALS = {
    "reward": lambda rewards: rewards,
    "root": lambda rewards: -rewards.clamp(min=MIN_REWARD).rsqrt(),
}
