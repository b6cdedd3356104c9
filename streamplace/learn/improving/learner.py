"""REINFORCE on walks through placements: the learner of all policies that improve them.

With c_t the cost of the placement after step t, by the objective and in multiples of a yardstick of
the problem, the reward of a step is c_(t-1) - c_t and its return G_t the discounted sum of what
comes from there on. A walk raises the log-probability of its choices by their advantages,

    ∇ Σ_t (G_t - b_t) log π(a_t | s_t)

where b_t is the mean of the rewards before t, or the mean return at t of other walks: of those from
the same placement, or of all earlier ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from streamplace.errors import FormatError
from streamplace.learn.algorithms.baselines import SPREAD
from streamplace.learn.algorithms.returns import discounted, running_mean
from streamplace.learn.improving.options import ImprovingConfig
from streamplace.learn.improving.past import Past
from streamplace.learn.improving.policy import (
    STEPS_PER_OPERATOR,
    Improver,
    Teachable,
    Walked,
    Walker,
    walks,
)
from streamplace.learn.learner import ALL, StepReport
from streamplace.learn.learner import Rows as Some
from streamplace.learn.reward import Reward, costs_of, reward_of
from streamplace.model.arrays import Ints
from streamplace.model.problem import Problem
from streamplace.model.sampling import random_placements

if TYPE_CHECKING:
    from streamplace.learn.registry import Task

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

LEAST = 1e-12
"""Reward of a placement of no worth, so that it has a logarithm."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """Walks [S] of one problem from one placement, and the weights [S, T] of their choices."""

    walked: tuple[tuple[Walker, Walked], ...]
    weights: Floats
    rewards: Floats  # [S] of the best placement of each walk


class ImprovingLearner:
    """A policy on its training problems; see `streamplace.learn.learner.Learner`."""

    def __init__(self, task: "Task", config: ImprovingConfig, policy: Teachable) -> None:
        self._task, self._config, self._policy = task, config, policy
        self._reward: Reward = reward_of(task.objective, task.reward)
        self._costs: Reward = costs_of(task.objective, task.reward)
        largest = int(self.sizes.max(initial=0))
        self._past = Past(len(task.training), largest, STEPS_PER_OPERATOR * largest)
        self.module: torch.nn.Module = policy.module.to(task.device)

    @property
    def n_problems(self) -> int:
        """Number of training problems."""
        return len(self._task.training)

    @property
    def sizes(self) -> Rows:
        """Operators of each training problem."""
        return np.array([problem.n_operators for problem in self._task.training], np.int64)

    def loss(self, rows: Rows, epoch: int, seed: int) -> tuple[Tensor, StepReport]:
        """Walk on these problems, and weigh what was chosen."""
        rng, improver = np.random.default_rng(seed), self._policy.improver()
        lessons = [self._lesson(row, improver, rng) for row in rows.tolist()]
        chosen, entropy = self._policy.choices([one for part in lessons for one in part.walked])
        weights = np.concatenate([part.weights.ravel() for part in lessons])
        gained = chosen * torch.from_numpy(weights.astype(np.float32)).to(chosen.device)
        bonus = self._config.entropy * entropy.sum() / self._config.walks
        owner = np.repeat(np.arange(len(rows)), [part.weights.size for part in lessons])
        mean = np.bincount(owner, entropy.detach().cpu().double().numpy()) / np.bincount(owner)
        return -(gained.sum() + bonus), StepReport(
            len(rows),
            float(sum(part.rewards.mean() for part in lessons)),
            float(self._past.rewards[rows].sum()),
            float(mean.sum()),
        )

    def validate(self, rows: Some = ALL) -> Floats:
        """Reward of the best placement that one walk meets on validation problems."""
        improver = self._policy.improver()
        problems = self._task.validation
        numbers = np.arange(len(problems))[rows].tolist()
        return np.array([self._judged(i, problems[i], improver) for i in numbers])

    def state(self, rows: Some = ALL) -> dict[str, NDArray[Any]]:
        """What was met so far."""
        return self._past.state(rows)

    def restore(self, state: Mapping[str, NDArray[Any]], rows: Some = ALL) -> None:
        """Take back what `state` returned."""
        for name, array in self._past.state(rows).items():
            if state[name].shape != array.shape:
                raise FormatError("the checkpoint: it met other problems; train anew")
        self._past.restore(state, rows)

    def spec(self) -> dict[str, Any]:
        """Options and features; all features are scaled under each placement."""
        features = {"names": self._policy.features()}
        return {"config": self._config.model_dump(mode="json"), "features": features}

    def _judged(self, number: int, problem: Problem, improver: Improver) -> float:
        rng = np.random.default_rng(number)
        place, walker = random_placements(problem, 1, rng)[0], improver.on(problem)
        met = np.concatenate([place[None], *walks(walker, place, rng, walker.length)])
        return float(self._reward(problem, met).max())

    def _lesson(self, row: int, improver: Improver, rng: np.random.Generator) -> Lesson:
        problem = self._task.training[row]
        place, walker = self._start(row, rng), improver.on(problem)
        size = (self._config.walks, walker.length)
        walked = [walker.seen(place, uniform) for uniform in rng.random(size)]
        met = np.stack([np.concatenate([place[None], one.places]) for one in walked])
        rewards = np.stack([self._reward(problem, places) for places in met])
        self._past.meet(row, met.reshape(-1, problem.n_operators), rewards.ravel())
        weights = self._advantages(row, self._drops(problem, met, rewards)) / size[0]
        return Lesson(tuple((walker, one) for one in walked), weights, rewards.max(axis=1))

    def _start(self, row: int, rng: np.random.Generator) -> Ints:
        """Placement that the walks of a problem begin with."""
        problem = self._task.training[row]
        if self._config.start == "random":
            return random_placements(problem, 1, rng)[0]
        return problem.repaired(self._past.best(row, problem.n_operators)[None])[0]

    def _drops(self, problem: Problem, met: Ints, rewards: Floats) -> Floats:
        """Fall of the cost [S, T] at every step of walks [S, T + 1, N] with these rewards."""
        if self._config.cost == "logarithm":
            return np.diff(np.log(np.maximum(rewards, LEAST)), axis=1)
        costs = np.stack([self._costs(problem, places) for places in met])
        return -np.diff(costs, axis=1)

    def _advantages(self, row: int, drops: Floats) -> Floats:
        """Advantage [S, T] of every step of walks of a problem."""
        returns = discounted(drops, self._config.discount)
        if self._config.comparison == "running-mean":
            return returns - running_mean(drops)
        if self._config.comparison == "earlier":
            return returns - self._past.mean_return(row, returns)
        others = len(returns) - 1
        if not others:
            return returns
        found = returns - (returns.sum(axis=0) - returns) / others
        return np.asarray(found / (found.std() + SPREAD))
