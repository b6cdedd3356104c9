"""REINFORCE on episodes through placements: the learner of all policies that improve them.

With c_t the cost of the placement after step t, by the objective and in multiples of a yardstick of
the problem, the reward of a step is c_(t-1) - c_t and its return G_t the discounted sum of the
rewards from there on. An episode raises the log-probability of its choices by their advantages,

    ∇ Σ_t (G_t - b_t) log π(a_t | s_t)

where b_t is a mean of returns at t: those of the other episodes from the same placement, or those
of this episode and all earlier ones. GiPH's appendix B.7 has the mean of the rewards before t, and
a factor γ^t before the gradient.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from streamplace.learn.algorithms.baselines import more_than_others
from streamplace.learn.improver import STEPS_PER_OPERATOR, Agent, Episode, Improver, episode_chunks
from streamplace.learn.learner import StepReport
from streamplace.learn.learner_base import PolicyLearner, RowMemory
from streamplace.learn.registry import LearningTask
from streamplace.learn.reward import with_costs
from streamplace.model.arrays import Floats, Ints, Longs
from streamplace.model.problem import Problem, random_placements
from streamplace.papers.improving import ImprovingConfig

LEAST = 1e-12
"""Smallest reward whose logarithm is taken."""


class ImprovingPolicy(Protocol):
    """A policy whose parameters are trained."""

    @property
    def module(self) -> Any:
        """The parameters."""

    def improver(self) -> Improver:
        """Return the policy with its present parameters."""

    def choices(self, episodes: Sequence[tuple[Any, Episode]]) -> tuple[Any, Any]:
        """Log-probability and entropy [P] of all choices, by episode and step."""

    def features(self) -> dict[str, Any]:
        """Features for JSON: ``names``."""


@dataclass(frozen=True, slots=True)
class WeightedEpisodes:
    """Episodes [S] of one problem from one placement, and the weights [S, T] of their choices."""

    episodes: tuple[tuple[Agent, Episode], ...]
    weights: Floats
    rewards: Floats  # [S] of the best placement of each episode


class ImprovingLearner(PolicyLearner[ImprovingConfig]):
    """A policy on its training problems; see `streamplace.learn.learner_base`."""

    def __init__(
        self, task: LearningTask, config: ImprovingConfig, policy: ImprovingPolicy
    ) -> None:
        super().__init__(task, config, policy.module)
        self._policy = policy
        self._rewards_and_costs = with_costs(self.reward)
        self._past = EpisodeMemory(task.training)
        self.memories = (self._past,)

    def loss(self, rows: Longs, epoch: int, seed: int) -> tuple[Tensor, StepReport]:
        """Loss of episodes on these problems."""
        rng, improver = np.random.default_rng(seed), self._policy.improver()
        parts = [self._episodes_of(row, improver, rng) for row in rows.tolist()]
        chosen, entropy = self._policy.choices([pair for part in parts for pair in part.episodes])
        weights = np.concatenate([part.weights.ravel() for part in parts])
        gained = chosen * torch.from_numpy(weights.astype(np.float32))
        bonus = self.config.entropy * entropy.sum() / self.config.episodes
        owner = np.repeat(np.arange(len(rows)), [part.weights.size for part in parts])
        mean = np.bincount(owner, entropy.detach().double().numpy()) / np.bincount(owner)
        return -(gained.sum() + bonus), StepReport(
            len(rows),
            float(sum(part.rewards.mean() for part in parts)),
            float(self._past.rewards[rows].sum()),
            float(mean.sum()),
        )

    def judged(self, problems: Sequence[Problem], numbers: Sequence[int]) -> list[float]:
        """Reward of the best placement that one episode meets."""
        improver = self._policy.improver()
        pairs = zip(numbers, problems, strict=True)
        return [self._best_of_walk(number, problem, improver) for number, problem in pairs]

    def features(self) -> dict[str, Any]:
        """Names of the features; all are scaled under each placement."""
        return self._policy.features()

    def _best_of_walk(self, number: int, problem: Problem, improver: Improver) -> float:
        rng = np.random.default_rng(number)
        place, agent = random_placements(problem, 1, rng)[0], improver(problem)
        places = np.concatenate([place[None], *episode_chunks(agent, place, rng, agent.length)])
        return float(self.reward(problem, places).max())

    def _episodes_of(
        self, row: int, improver: Improver, rng: np.random.Generator
    ) -> WeightedEpisodes:
        problem = self.task.training[row]
        place, agent = self._start(row, rng), improver(problem)
        size = (self.config.episodes, agent.length)
        episodes = [agent.recorded(place, uniform) for uniform in rng.random(size)]
        every = np.stack([np.concatenate([place[None], each.places]) for each in episodes])
        judged = [self._rewards_and_costs(problem, places) for places in every]
        rewards, costs = (np.stack(column) for column in zip(*judged, strict=True))
        self._past.meet(row, every.reshape(-1, problem.n_operators), rewards.ravel())
        weights = self._advantages(row, self._drops(rewards, costs)) / size[0]
        return WeightedEpisodes(
            tuple((agent, each) for each in episodes), weights, rewards.max(axis=1)
        )

    def _start(self, row: int, rng: np.random.Generator) -> Ints:
        problem = self.task.training[row]
        if self.config.start == "random":
            return random_placements(problem, 1, rng)[0]
        return problem.repaired(self._past.best(row, problem.n_operators)[None])[0]

    def _drops(self, rewards: Floats, costs: Floats) -> Floats:
        """Fall of the cost [S, T] at every step of episodes, from the placements' [S, T + 1]."""
        if self.config.cost == "logarithm":
            return np.diff(np.log(np.maximum(rewards, LEAST)), axis=1)
        return -np.diff(costs, axis=1)

    def _advantages(self, row: int, drops: Floats) -> Floats:
        returns = discounted(drops, self.config.discount)
        if self.config.comparison == "running-mean":
            early = self.config.discount ** np.arange(returns.shape[1])
            return np.asarray(early * (returns - running_mean(drops)))
        if self.config.comparison == "earlier":
            return returns - self._past.mean_return(row, returns)
        return returns if len(returns) < 2 else more_than_others(returns)


class EpisodeMemory(RowMemory):
    """The best placement and reward of every problem so far, and the mean return of every step.

    Shapes: P problems, N operators of the largest, T steps of the longest episode.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        n, operators = len(problems), max(problem.n_operators for problem in problems)
        self.rewards: Floats = np.zeros(n)
        self._places: Ints = np.zeros((n, operators), np.int32)
        self._returns: Floats = np.zeros((n, STEPS_PER_OPERATOR * operators))
        self._episodes: Longs = np.zeros(n, np.int64)
        super().__init__(
            {
                "past.rewards": self.rewards,
                "past.places": self._places,
                "past.returns": self._returns,
                "past.episodes": self._episodes,
            }
        )

    def meet(self, row: int, places: Ints, rewards: Floats) -> None:
        """Remember the best of placements [B, n], the first of equal ones."""
        best = int(rewards.argmax())
        if rewards[best] > self.rewards[row]:
            self.rewards[row] = rewards[best]
            self._places[row, : places.shape[1]] = places[best]

    def best(self, row: int, operators: int) -> Ints:
        """Best placement [n] so far; all operators on the first device before any."""
        return self._places[row, :operators]

    def mean_return(self, row: int, returns: Floats) -> Floats:
        """Mean return [t] of every step of episodes [S, t] and of all before them."""
        steps = returns.shape[1]
        self._returns[row, :steps] += returns.sum(axis=0)
        self._episodes[row] += len(returns)
        return np.asarray(self._returns[row, :steps] / self._episodes[row])


def discounted(rewards: Floats, gamma: float) -> Floats:
    """Returns G_t = Σ over t' ≥ t of γ^(t' - t) · r_t' of episodes [S, T]."""
    returns = np.array(rewards, np.float64)
    for t in range(returns.shape[1] - 2, -1, -1):
        returns[:, t] += gamma * returns[:, t + 1]
    return returns


def running_mean(rewards: Floats) -> Floats:
    """Mean of the rewards before each step of episodes [S, T], 0 before the first."""
    before = np.cumsum(rewards, axis=1) - rewards
    return np.asarray(before / np.maximum(np.arange(rewards.shape[1]), 1))
