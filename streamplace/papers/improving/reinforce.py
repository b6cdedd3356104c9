"""REINFORCE on episodes through placements: the learner of all policies that improve them.

With c_t the cost of the placement after step t, by the objective and in multiples of a yardstick of
the problem, the reward of a step is c_(t-1) - c_t and its return G_t the discounted sum of the
rewards from there on. An episode raises the log-probability of its choices by their advantages,

    ∇ Σ_t (G_t - b_t) log π(a_t | s_t)

where b_t is a mean of returns at t: of the other episodes from the same placement, or of this
episode and all earlier ones. GiPH's appendix B.7 has the mean of the rewards before t, and
a factor γ^t before the gradient.
"""

from collections.abc import Iterator, Sequence
from pkgutil import resolve_name
from typing import Any

import numpy as np
import torch
from torch import Tensor

from streamplace.learn.algorithms.baselines import leave_one_out
from streamplace.learn.learner import StepReport
from streamplace.learn.learner_base import PolicyLearner, RowMemory
from streamplace.learn.registry import STEPS_PER_OPERATOR, LearningTask
from streamplace.learn.reward import with_costs
from streamplace.model.arrays import Floats, Ints, Longs
from streamplace.model.problem import Problem, random_placements
from streamplace.model.random_numbers import generator
from streamplace.papers.improving.batch import side_by_side
from streamplace.papers.improving.episodes import Episodes, ImprovementStep, ImprovingPolicy
from streamplace.papers.improving.model import ImprovingConfig

MIN_REWARD = 1e-12
"""Smallest reward whose logarithm is taken."""


class ImprovingLearner(PolicyLearner[ImprovingConfig]):
    """A policy on its training problems; see `streamplace.learn.learner_base`."""

    def __init__(
        self, task: LearningTask, config: ImprovingConfig, policy: ImprovingPolicy
    ) -> None:
        super().__init__(task, config, policy)
        self._policy = policy
        self._rewards_and_costs = with_costs(self.reward)
        self._past = EpisodeMemory(task.training)
        self.memories = (self._past,)

    def loss(self, rows: Longs, epoch: int, seed: int) -> tuple[Tensor, StepReport]:
        """Loss of episodes on these problems; all of one problem begin at one placement."""
        numbers, episodes, reward = rows.tolist(), self.config.episodes, 0.0
        problems = [self.task.training[row] for row in numbers]
        rngs = [generator(seed, row) for row in numbers]
        starts = [self._start(row, rng) for row, rng in zip(numbers, rngs, strict=True)]
        run, walk = self._walk(problems, starts, rngs, episodes)
        steps = [*walk]
        placements = self._placements(problems, starts, [step.place for step in steps])
        weights: list[Floats] = []
        for row, problem, places in zip(numbers, problems, placements, strict=True):
            judged = [self._rewards_and_costs(problem, one) for one in places]
            rewards, costs = (np.stack(column) for column in zip(*judged, strict=True))
            self._past.update(row, places.reshape(-1, problem.n_operators), rewards.ravel())
            weights.append(self._advantages(row, rewards, costs) / episodes)
            reward += float(rewards.max(axis=1).mean())
        shares = [np.full_like(weight, 1 / weight.size) for weight in weights]
        log_p, entropy = self._policy.likelihood(run.batch, steps)
        weight, share = (
            torch.from_numpy(side_by_side(table)).flatten(0, 1).T.to(log_p)
            for table in (weights, shares)
        )  # [L, G], 0 after the last step of an episode
        bonus = self.config.entropy / episodes * entropy[share > 0].sum()
        report = StepReport(
            problems=len(rows),
            reward=reward,
            best=float(self._past.rewards[rows].sum()),
            entropy=float((share * entropy.detach()).sum()),
            evaluations=sum(each.size for each in weights),
        )
        return -((weight * log_p).sum() + bonus), report

    def judged(self, problems: Sequence[Problem], numbers: Sequence[int]) -> list[float]:
        """Reward of the best placement that one episode meets."""
        rngs = [np.random.default_rng(number) for number in numbers]
        starts = [random_placements(p, 1, rng)[0] for p, rng in zip(problems, rngs, strict=True)]
        with torch.no_grad():
            places = [step.place for step in self._walk(problems, starts, rngs, 1)[1]]
        placements = self._placements(problems, starts, places)
        pairs = zip(problems, placements, strict=True)
        return [float(self.reward(problem, places[0]).max()) for problem, places in pairs]

    def features(self) -> dict[str, Any]:
        """Names of the features; all are scaled under each placement."""
        return {"names": [*self._policy.features]}

    def _walk(
        self,
        problems: Sequence[Problem],
        starts: Sequence[Ints],
        rngs: Sequence[np.random.Generator],
        episodes: int,
    ) -> tuple[Episodes, Iterator[ImprovementStep]]:
        """Whole episodes from starts [n], several of every problem, all side by side."""
        lengths = (self._policy.steps_per_task * problem.n_operators for problem in problems)
        drawn = [rng.random((episodes, t)) for rng, t in zip(rngs, lengths, strict=True)]
        every = [problem for problem in problems for _ in range(episodes)]
        run = self._policy.episodes(every, [start for start in starts for _ in range(episodes)])
        uniform = torch.from_numpy(side_by_side(drawn)).flatten(0, 1).T
        return run, map(run.step, uniform.to(run.place.device))

    def _placements(
        self, problems: Sequence[Problem], starts: Sequence[Ints], places: Sequence[Tensor]
    ) -> Iterator[Ints]:
        """Placements [episodes, steps + 1, n] of every problem, from those after each step."""
        each = np.split(torch.stack([*places], 1).to("cpu", torch.int32).numpy(), len(problems))
        for start, problem, rows in zip(starts, problems, each, strict=True):
            n = problem.n_operators
            rows = rows[:, : self._policy.steps_per_task * n, :n]
            yield np.concatenate([np.broadcast_to(start, (len(rows), 1, n)), rows], axis=1)

    def _start(self, row: int, rng: np.random.Generator) -> Ints:
        problem = self.task.training[row]
        if self.config.start == "random":
            return random_placements(problem, 1, rng)[0]
        return problem.repaired(self._past.places[row, None, : problem.n_operators])[0]

    def _advantages(self, row: int, rewards: Floats, costs: Floats) -> Floats:
        """Advantages [S, T] of the steps of episodes, by their placements' costs [S, T + 1]."""
        if self.config.cost == "logarithm":
            drops = np.diff(np.log(np.maximum(rewards, MIN_REWARD)), axis=1)
        else:
            drops = -np.diff(costs, axis=1)
        returns = discounted(drops, self.config.discount)
        if self.config.comparison == "running-mean":
            early = self.config.discount ** np.arange(returns.shape[1])
            return np.asarray(early * (returns - running_mean(drops)))
        if self.config.comparison == "earlier":
            return returns - self._past.mean_return(row, returns)
        return returns if len(returns) < 2 else leave_one_out(returns)


def learner_of(task: LearningTask, config: ImprovingConfig, policy: str) -> ImprovingLearner:
    """Learner of a policy, a class ``module:name``."""
    return ImprovingLearner(task, config, resolve_name(policy)(config))


class EpisodeMemory(RowMemory):
    """The best placement and reward of every problem so far, and the mean return of every step.

    Shapes: P problems, N operators of the largest, T steps of the longest episode.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        n, operators = len(problems), max(problem.n_operators for problem in problems)
        self.rewards: Floats = np.zeros(n)
        self.places: Ints = np.zeros((n, operators), np.int32)  # at first all on one device
        self._returns: Floats = np.zeros((n, STEPS_PER_OPERATOR * operators))
        self._episodes: Longs = np.zeros(n, np.int64)
        super().__init__(
            {
                "past.rewards": self.rewards,
                "past.places": self.places,
                "past.returns": self._returns,
                "past.episodes": self._episodes,
            }
        )

    def update(self, row: int, places: Ints, rewards: Floats) -> None:
        """Remember the best of placements [B, n], the first of equal ones."""
        best = int(rewards.argmax())
        if rewards[best] > self.rewards[row]:
            self.rewards[row] = rewards[best]
            self.places[row, : places.shape[1]] = places[best]

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
