"""What is learned from besides the samples of the moment: nothing, or a memory of good ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from streamplace.errors import FormatError
from streamplace.learn.algorithms.exploration import canonical_along, exploration, neighbours
from streamplace.learn.algorithms.memory import PlacementMemory
from streamplace.learn.constructive.options import ConstructiveConfig, MemoryConfig
from streamplace.learn.constructive.policy import Placements, Rows
from streamplace.learn.learner import ALL
from streamplace.learn.learner import Rows as Some
from streamplace.learn.reward import Reward
from streamplace.model.problem import Problem
from streamplace.model.sampling import random_placements

Floats = NDArray[np.float64]
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """Placements [S, N] of one problem to learn from, and their rewards [S]."""

    placements: Placements
    rewards: Floats


class Recall(Protocol):
    """What is known of every training problem."""

    def lesson(
        self, row: int, order: Rows, drawn: Placements, epoch: int, rng: np.random.Generator
    ) -> Sampled:
        """Reward what was drawn of a problem, and add what is learned from besides."""
        ...

    def best(self, row: int) -> float:
        """Best reward known of a problem."""
        ...

    def state(self, rows: Some = ALL) -> Arrays:
        """Arrays to save, of some problems."""
        ...

    def restore(self, state: Mapping[str, NDArray[Any]], rows: Some = ALL) -> None:
        """Take back what `state` returned."""
        ...


def recall_of(problems: Sequence[Problem], reward: Reward, config: ConstructiveConfig) -> Recall:
    """What the options ask for."""
    if isinstance(config, MemoryConfig):
        return Remembering(problems, reward, config)
    return Best(problems, reward)


class Best:
    """The best reward of every problem; only the samples of the moment are learned from."""

    def __init__(self, problems: Sequence[Problem], reward: Reward) -> None:
        self._problems, self._reward = problems, reward
        self._best = np.zeros(len(problems))

    def lesson(
        self, row: int, order: Rows, drawn: Placements, epoch: int, rng: np.random.Generator
    ) -> Sampled:
        """Reward what was drawn."""
        rewards = rewarded(self._problems[row], self._reward, drawn)[1]
        self._best[row] = max(self._best[row], rewards.max())
        return Sampled(drawn, rewards)

    def best(self, row: int) -> float:
        """Best reward met."""
        return float(self._best[row])

    def state(self, rows: Some = ALL) -> Arrays:
        """Best rewards."""
        return {"best": self._best[rows].copy()}

    def restore(self, state: Mapping[str, NDArray[Any]], rows: Some = ALL) -> None:
        """Take them back."""
        if state["best"].shape != self._best[rows].shape:
            raise FormatError("the checkpoint: its rewards are of other problems; train anew")
        self._best[rows] = state["best"]


class Remembering:
    """A memory of good placements that are replayed, fed by random ones, too (DREAM §3.3)."""

    def __init__(self, problems: Sequence[Problem], reward: Reward, config: MemoryConfig) -> None:
        self._problems, self._reward, self._config = problems, reward, config
        most = max(problem.n_operators for problem in problems)
        self.memory = PlacementMemory(len(problems), config.places, most)
        self._devices = np.array([problem.n_devices for problem in problems])

    def lesson(
        self, row: int, order: Rows, drawn: Placements, epoch: int, rng: np.random.Generator
    ) -> Sampled:
        """Reward samples, remember them and random ones, and add what is replayed."""
        config = self._config
        rewards = self._remember(row, drawn)
        self._explore(row, order, epoch, rng)
        kept, known = self.memory.replay(row, config.replayed, config.threshold, len(order))
        again = canonical_along(self._problems[row], order, kept)
        return Sampled(np.concatenate([drawn, again]), np.concatenate([rewards, known]))

    def best(self, row: int) -> float:
        """Best reward remembered."""
        return self.memory.best(row)

    def state(self, rows: Some = ALL) -> Arrays:
        """Memories."""
        return self.memory.state(rows)

    def restore(self, state: Mapping[str, NDArray[Any]], rows: Some = ALL) -> None:
        """Take memories back."""
        placements = state["memory.placements"]
        fits = placements.shape == self.memory.placements[rows].shape and (
            state["memory.rewards"].shape == self.memory.rewards[rows].shape
            and bool((placements >= 0).all())
            and bool((placements < self._devices[rows][:, None, None]).all())
        )
        if not fits:
            raise FormatError("the checkpoint: its memory is of other problems; train anew")
        self.memory.restore(state, rows)

    def _explore(self, row: int, order: Rows, epoch: int, rng: np.random.Generator) -> None:
        """Put random samples into a memory, more where nothing good is known."""
        config, problem = self._config, self._problems[row]
        size = exploration(config.exploration, config.exploration_decay, epoch)
        if self.memory.best(row) < config.threshold:
            size = max(size, config.exploration_while_poor)
        near = round(config.near * size)
        if size > near:
            self._remember(row, random_placements(problem, size - near, rng))
        if near:
            known = self.memory.placements[row, self.memory.rewards[row] >= 0, : len(order)]
            bases = known[rng.integers(len(known), size=near)]
            self._remember(row, neighbours(problem, order, bases, rng))

    def _remember(self, row: int, placements: Placements) -> Floats:
        """Rewards [S] of placements [S, N]; what is better than what is known is remembered."""
        problem = self._problems[row]
        legal, rewards = rewarded(problem, self._reward, placements)
        good = rewards > self.memory.rewards[row, -1]
        if good.any():
            self.memory.add(row, problem.canonical(legal[good]), rewards[good])
        return rewards


def rewarded(
    problem: Problem, reward: Reward, placements: Placements
) -> tuple[NDArray[np.int32], Floats]:
    """Placements [S, N] made legal, as answers are, and their rewards [S]."""
    legal = problem.repaired(placements.astype(np.int32))
    return legal, reward(problem, legal)
