"""REINFORCE on placements that a policy builds: the learner of all constructive policies.

With r_s the reward of sample s of a problem, b what it is compared with and w_s what the policy
says that it counts, a step raises

    Σ_s w_s (r_s - b) log π(p_s) / S  +  entropy bonus

over the S samples of every problem, drawn just now or replayed.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from streamplace.learn.algorithms.baselines import BASELINES, MovingAverage, advantages
from streamplace.learn.constructive.options import ConstructiveConfig
from streamplace.learn.constructive.policy import Exercises, Rows, Teachable
from streamplace.learn.constructive.recall import Sampled, recall_of
from streamplace.learn.learner import ALL, StepReport
from streamplace.learn.learner import Rows as Some
from streamplace.learn.reward import reward_of

if TYPE_CHECKING:
    from streamplace.learn.registry import Task

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

LEAST_REWARD = 1e-6
"""Below it a root would be endless."""


class ConstructiveLearner:
    """A policy on its training problems; see `streamplace.learn.learner.Learner`."""

    def __init__(self, task: "Task", config: ConstructiveConfig, policy: Teachable) -> None:
        self.task, self.config, self.policy = task, config, policy
        self.module: torch.nn.Module = policy.module.to(task.device)
        self.reward = reward_of(task.objective, task.reward)
        self.recall = recall_of(task.training, self.reward, config)
        self._average = MovingAverage(len(task.training)) if config.baseline == "moving" else None
        self._exercises = policy.on(task.training)

    @cached_property
    def _judged(self) -> Exercises:
        return self.policy.on(self.task.validation)

    @property
    def n_problems(self) -> int:
        """Number of training problems."""
        return len(self.task.training)

    @property
    def sizes(self) -> Rows:
        """Operators of each training problem."""
        return np.array([problem.n_operators for problem in self.task.training], np.int64)

    def loss(self, rows: Rows, epoch: int, seed: int) -> tuple[Tensor, StepReport]:
        """Sample, reward, recall; the policy gradient's loss, summed over the rows."""
        rng = np.random.default_rng(seed)
        generator = torch.Generator(self.task.device).manual_seed(int(rng.integers(2**62)))
        attempt = self._exercises.attempt(rows, rng)
        drawn = attempt.drawn(self.config.on_policy, generator)
        lessons = [
            self.recall.lesson(row, order, placements, epoch, rng)
            for row, order, placements in zip(rows.tolist(), attempt.orders, drawn, strict=True)
        ]
        rewards, valid = stacked(lessons)
        weights = self._weights(rows, rewards, valid) * attempt.worth(rewards.shape[1])
        found = attempt.likelihood([lesson.placements for lesson in lessons])
        now = len(drawn[0])
        entropy = found.entropy[:, :now].mean(1)
        factors = torch.from_numpy(weights.astype(np.float32)).to(entropy.device)
        gained = (factors * found.log_probability).sum(1)
        loss = -(gained + self.config.entropy * entropy).sum()
        return loss, StepReport(
            problems=len(rows),
            reward=sum(float(lesson.rewards[:now].mean()) for lesson in lessons),
            best=sum(self.recall.best(row) for row in rows.tolist()),
            entropy=float(entropy.detach().sum()),
        )

    def validate(self, rows: Some = ALL) -> Floats:
        """Reward of the greedy placement of validation problems."""
        numbers = np.arange(len(self.task.validation))[rows]
        if not len(numbers):
            return np.empty(0)
        placed = self._judged.greedy(numbers)
        problems = [self.task.validation[i] for i in numbers.tolist()]
        return np.array(
            [self.reward(p, row[None])[0] for p, row in zip(problems, placed, strict=True)]
        )

    def state(self, rows: Some = ALL) -> dict[str, NDArray[Any]]:
        """Whatever is known of problems."""
        average = {} if self._average is None else self._average.state(rows)
        return {**self.recall.state(rows), **average}

    def restore(self, state: Mapping[str, NDArray[Any]], rows: Some = ALL) -> None:
        """Take back what `state` returned."""
        self.recall.restore(state, rows)
        if self._average is not None:
            self._average.restore(state, rows)

    def spec(self) -> dict[str, Any]:
        """Options and features."""
        return {"config": self.config.model_dump(mode="json"), "features": self.policy.features()}

    def _weights(self, rows: Rows, rewards: Floats, valid: Flags) -> Floats:
        """Advantages [G, S] over their number."""
        config = self.config
        baseline = BASELINES[config.baseline] if self._average is None else self._average.of(rows)
        signal = SIGNALS[config.signal](rewards)
        return advantages(signal, valid, baseline, normalised=config.normalised)


def _root(rewards: Floats) -> Floats:
    return -1 / np.sqrt(np.maximum(rewards, LEAST_REWARD))


SIGNALS = {"reward": lambda rewards: rewards, "root": _root}


def stacked(lessons: Sequence[Sampled]) -> tuple[Floats, Flags]:
    """Rewards [G, S] of several problems, padded, and which are there."""
    size = len(lessons), max(len(lesson.rewards) for lesson in lessons)
    rewards, valid = np.zeros(size), np.zeros(size, bool)
    for i, lesson in enumerate(lessons):
        rewards[i, : len(lesson.rewards)] = lesson.rewards
        valid[i, : len(lesson.rewards)] = True
    return rewards, valid
