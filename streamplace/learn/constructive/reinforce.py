"""REINFORCE on placements that a policy builds: the learner of all constructive policies.

With r_s the reward of sample s of a problem, b its baseline and w_s its weight, a step raises

    Σ_s w_s (r_s - b) log π(p_s) / S  +  entropy bonus

over the S samples of every problem, drawn just now or replayed.
"""

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from streamplace.errors import SettingError
from streamplace.learn.algorithms.baselines import BASELINES, MovingAverage, advantages
from streamplace.learn.config import ConstructiveConfig, MemoryConfig
from streamplace.learn.constructive.policy import (
    ConstructivePolicy,
    EncodedBatch,
    FreshProblems,
    PreparedProblems,
)
from streamplace.learn.learner import StepReport
from streamplace.learn.learner_base import PolicyLearner, RowMemory
from streamplace.learn.registry import LearningTask
from streamplace.learn.tensors.cuda_graphs import CapturedSteps
from streamplace.learn.tensors.draws import child, children
from streamplace.learn.tensors.memory import (
    EMPTY,
    Outlines,
    PlacementMemory,
    canonical,
    neighbours,
    random_placements,
)
from streamplace.learn.tensors.rewards import batch_judge, can_compute, throughput
from streamplace.model.arrays import Longs
from streamplace.model.problem import Problem

LEAST_REWARD = 1e-6
"""Smaller rewards are raised to this, since their inverse has no bound."""
Replayed = tuple[Tensor, StepReport, tuple[Tensor, ...]]
"""Loss, report and gradient."""
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
        self,
        task: LearningTask,
        config: ConstructiveConfig,
        policy: ConstructivePolicy,
        fresh: FreshProblems | None = None,
    ) -> None:
        super().__init__(task, config, policy.module)
        self.policy = policy
        self._replay = config if isinstance(config, MemoryConfig) else BEST_ONLY
        self._computes = can_compute(self.reward, task.training)
        if fresh is not None and not self._computes:
            raise SettingError(
                "fresh graphs are judged by their throughput in the steady state, without "
                "constraints; set fresh to 0 for anything else"
            )
        self._fresh = fresh is not None
        self._training = fresh or policy.on(task.training)
        self._outlines = fresh.outlines if fresh else Outlines.of(task.training, task.device)
        self._sizes = self._outlines.operators.cpu().numpy()
        most = int(self._sizes.max())
        self.memory = PlacementMemory(self._outlines, self._replay.places, most)
        self._average = (
            MovingAverage(self.n_problems, task.device) if config.baseline == "moving" else None
        )
        self.memories: tuple[RowMemory, ...] = () if self._fresh else (self.memory,)
        if self._average is not None:
            self.memories += (self._average,)
        self.judge = batch_judge(self.reward, task.training, task.device)

    @property
    def n_problems(self) -> int:
        """Number of training problems of an epoch."""
        return len(self._sizes)

    @property
    def sizes(self) -> Longs:
        """Operators of each training problem."""
        return self._sizes

    @cached_property
    def _validation(self) -> PreparedProblems:
        return self.policy.on(self.task.validation)

    def loss(self, rows: Longs, epoch: int, seed: int) -> tuple[Tensor, StepReport]:
        """Loss of the policy gradient on drawn and on replayed samples, summed over the rows."""
        explored, n, most = self._shape(rows, epoch)
        loss, sums = self.step(
            torch.from_numpy(rows).to(self.task.device),
            torch.tensor(seed, device=self.task.device),
            torch.tensor(explored, device=self.task.device),
            n=n,
            most=most if self._replay.exploration_while_poor else explored,
        )
        return loss, StepReport(len(rows), *sums.tolist())

    @cached_property
    def captured(self) -> Callable[[Longs, int, int], Replayed] | None:
        """What a GPU replays for rows in an epoch by a seed; or None.

        On a CPU, and where a step needs values on the host, nothing can be replayed.
        """
        if self.task.device == "cpu" or not self._computes:
            return None
        parameters = [p for p in self.module.parameters() if p.requires_grad]
        steps = CapturedSteps(self.step, parameters, [t for m in self.memories for t in m.tensors])

        def replayed(rows: Longs, epoch: int, seed: int) -> Replayed:
            explored, n, most = self._shape(rows, epoch)
            loss, sums, gradient = steps(torch.from_numpy(rows), seed, explored, n=n, most=most)
            report: Any = sums.unbind()  # which is read at the end of the epoch
            return loss.double(), StepReport(len(rows), *report), gradient

        return replayed

    def _shape(self, rows: Longs, epoch: int) -> tuple[int, int, int]:
        """Random samples in this epoch, operators of the largest problem, most random samples."""
        replay = self._replay
        explored = exploration(replay.exploration, replay.exploration_decay, epoch)
        most = max(exploration(replay.exploration, 0.0, 0), replay.exploration_while_poor)
        return explored, int(self._sizes[rows].max()), most

    def step(
        self, rows: Tensor, seed: Tensor, explored: Tensor, *, n: int, most: int
    ) -> tuple[Tensor, Tensor]:
        """Loss on problems of at most n operators; sums of rewards, best rewards and entropies.

        As many random samples as ``explored`` says, at most ``most``, which sets the shapes.
        """
        of_batch, of_samples, of_random = children(child(seed, rows), 3)
        batch = self._training.encoded(rows, n, of_batch)
        drawn = batch.drawn(self.config.on_policy, of_samples)
        if self._fresh:
            self.memory.forget(rows)
        rewards = self._remember(rows, batch, drawn)
        self._explore(rows, of_random, batch, explored, most)
        replay = self._replay
        replayed, again = self.memory.replay(rows, replay.replayed, n)
        good = again >= max(replay.threshold, 0.0)
        if not replay.exploration_while_poor:
            good[:, :1] |= again[:, :1] > EMPTY
        placements = torch.cat([drawn, self._named(replayed, batch.order, rows)], dim=1)
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
        near, (anywhere, nearby) = round(replay.near * most), children(keys, 2)
        near_count = (replay.near * count.double()).round()
        if most > near:
            random = random_placements(anywhere, most - near, n, outlines)
            self._remember(rows, batch, random, count - near_count)
        if near:
            remembered = self.memory.placements[rows, :, :n], self.memory.rewards[rows]
            moved = neighbours(nearby, near, batch.order, outlines, *remembered)
            self._remember(rows, batch, moved, near_count)

    def _remember(
        self, rows: Tensor, batch: EncodedBatch, placements: Tensor, count: Tensor | None = None
    ) -> Tensor:
        """Rewards [G, S] of placements [G, S, N]; the memories keep the best of the first ones."""
        if batch.costs is None:
            legal, rewards = self.judge(rows, placements)
        else:
            legal, rewards = placements, throughput(batch.costs, placements)
        kept, n = rewards, placements.shape[2]
        if count is not None:
            number = torch.arange(rewards.shape[1], device=rewards.device)
            kept = rewards.masked_fill(number >= count[:, None], EMPTY)
        order = torch.arange(n, device=rows.device).expand(len(rows), -1)
        self.memory.add(rows, self._named(legal, order, rows), kept)
        return rewards

    def _named(self, placements: Tensor, order: Tensor, rows: Tensor) -> Tensor:
        """Placements [G, S, N], interchangeable devices by first use in the orders if so wished."""
        if not self._replay.canonical:
            return placements
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
