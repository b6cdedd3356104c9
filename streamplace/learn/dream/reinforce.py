"""REINFORCE with a memory of good placements (DREAM §3.3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from streamplace.errors import FormatError
from streamplace.learn.algorithms.baselines import BASELINES, advantages
from streamplace.learn.algorithms.exploration import canonical_along, exploration, neighbours
from streamplace.learn.algorithms.memory import PlacementMemory
from streamplace.learn.algorithms.orders import decision_order
from streamplace.learn.dream.features import Scale
from streamplace.learn.dream.graphs import Graphs, padded_orders
from streamplace.learn.dream.options import AllocatorConfig
from streamplace.learn.dream.placing import greedy_rows
from streamplace.learn.dream.policy import Policy
from streamplace.learn.learner import StepReport
from streamplace.learn.registry import Task
from streamplace.learn.reward import reward_of
from streamplace.model.problem import Problem
from streamplace.model.sampling import random_placements

Rows = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """Placements to learn from, of one problem.

    Attributes
    ----------
    placements
        [S, N] in the order of decision.
    rewards
        [S]
    """

    placements: NDArray[Any]
    rewards: Floats


class Reinforce:
    """Learner of a policy by policy gradients; see `streamplace.learn.learner.Learner`."""

    def __init__(self, task: Task, config: AllocatorConfig, policy: Policy) -> None:
        known = task.features
        self.task = task
        self.config = config
        self.scale = (
            Scale.of(task.training)
            if known is None
            else Scale.from_document(known, "the weights to begin from")
        )
        self.module = policy.to(task.device)
        self.graphs = self._graphs(task.training)
        self.judged: Graphs | None = None
        self.memory = PlacementMemory(len(task.training), config.places, int(self.sizes.max()))
        self.reward = reward_of(task.objective, task.reward)

    @property
    def n_problems(self) -> int:
        """Number of training problems."""
        return len(self.task.training)

    @property
    def sizes(self) -> Rows:
        """Operators of each training problem."""
        return np.array([problem.n_operators for problem in self.task.training], np.int64)

    def loss(self, rows: Rows, epoch: int, seed: int) -> tuple[Tensor, StepReport]:
        """Sample, explore, remember; the policy gradient's loss, summed over the rows."""
        rng = np.random.default_rng(seed)
        device, config = self.task.device, self.config
        generator = torch.Generator(device).manual_seed(int(rng.integers(2**62)))
        orders = [self._order(self.task.training[row], rng) for row in rows]
        order = torch.from_numpy(padded_orders(orders)).to(device)
        batch = self.graphs.batch(torch.from_numpy(rows).to(device), order)
        encoded = self.module.encode(batch)
        sampled = self.module.sample(encoded, config.on_policy, generator).cpu().numpy()
        lessons = [
            self._lesson(row, along, drawn[:, : len(along)], epoch, rng)
            for row, along, drawn in zip(rows.tolist(), orders, sampled, strict=True)
        ]
        placements, rewards, valid = stacked(lessons, batch.n_operators)
        weights = self._weights(rewards, valid)
        found = self.module.likelihood(batch, encoded, placements.to(device))
        entropy = found.entropy[:, : config.on_policy].mean(1)
        gained = (weights.to(device) * found.log_probability).sum(1)
        loss = -(gained + config.entropy * entropy).sum()
        return loss, StepReport(
            problems=len(rows),
            reward=sum(float(lesson.rewards[: config.on_policy].mean()) for lesson in lessons),
            best=sum(self.memory.best(row) for row in rows.tolist()),
            entropy=float(entropy.detach().sum()),
        )

    def validate(self) -> Floats:
        """Relative throughput of greedy placements of the validation problems."""
        problems = self.task.validation
        if not problems:
            return np.empty(0)
        if self.judged is None:
            self.judged = self._graphs(problems)
        placed = greedy_rows(self.module, self.judged, problems, self.config.order)
        return np.array(
            [self.reward(p, row[None])[0] for p, row in zip(problems, placed, strict=True)]
        )

    def state(self) -> dict[str, NDArray[Any]]:
        """Memories."""
        return self.memory.state()

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take memories back."""
        placements = state["memory.placements"]
        devices = np.array([problem.n_devices for problem in self.task.training])
        fits = placements.shape == self.memory.placements.shape and (
            state["memory.rewards"].shape == self.memory.rewards.shape
            and bool((placements >= 0).all())
            and bool((placements < devices[:, None, None]).all())
        )
        if not fits:
            raise FormatError("the checkpoint: its memory is of other problems; train anew")
        self.memory.restore(state)

    def spec(self) -> dict[str, Any]:
        """Options and feature scale."""
        return {"config": self.config.model_dump(), "features": self.scale.document()}

    def _weights(self, rewards: Floats, valid: NDArray[np.bool_]) -> Tensor:
        """Weights [G, S] of the log-probabilities, as in equation 4."""
        baseline, normalised = BASELINES[self.config.baseline], self.config.normalised
        factors = advantages(rewards, valid, baseline, normalised=normalised)
        return torch.from_numpy(factors.astype(np.float32))

    def _graphs(self, problems: Sequence[Problem]) -> Graphs:
        config = self.config
        graphs = Graphs.of(problems, self.scale, config.devices, config.canonical)
        return graphs.to(self.task.device)

    def _order(self, problem: Problem, rng: np.random.Generator) -> Rows:
        """Order of decision, ties at random where the options say so."""
        rank = rng.permutation(problem.n_operators) if self.config.random_ties else None
        return decision_order(problem, self.config.order, rank)

    def _lesson(
        self, row: int, order: Rows, sampled: NDArray[Any], epoch: int, rng: np.random.Generator
    ) -> Sampled:
        """Reward samples [S, N], remember them and random ones, and add what is replayed."""
        problem, config = self.task.training[row], self.config
        by_operator = np.empty_like(sampled)
        by_operator[:, order] = sampled
        rewards = self._remember(row, by_operator)
        self._explore(row, order, epoch, rng)
        kept, known = self.memory.replay(row, config.replayed, config.threshold, len(order))
        again = canonical_along(problem, order, kept)[:, order]
        return Sampled(np.concatenate([sampled, again]), np.concatenate([rewards, known]))

    def _explore(self, row: int, order: Rows, epoch: int, rng: np.random.Generator) -> None:
        """Put random samples into a memory, more where nothing good is known."""
        config, problem = self.config, self.task.training[row]
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

    def _remember(self, row: int, placements: NDArray[Any]) -> Floats:
        """Rewards [S] of placements [S, N] in operator order; the legal ones go to the memory."""
        problem = self.task.training[row]
        placements = placements.astype(np.int32)
        legal = problem.legal(placements)
        rewards = np.where(legal, self.reward(problem, placements), 0.0)
        good = legal & (rewards > self.memory.rewards[row, -1])
        if good.any():
            self.memory.add(row, problem.canonical(placements[good]), rewards[good])
        return rewards


def stacked(lessons: Sequence[Sampled], operators: int) -> tuple[Tensor, Floats, NDArray[np.bool_]]:
    """Placements [G, S, N] of several problems, padded, their rewards, and which are there."""
    samples = max(len(lesson.rewards) for lesson in lessons)
    placements = np.zeros((len(lessons), samples, operators), np.int64)
    rewards = np.zeros((len(lessons), samples))
    valid = np.zeros((len(lessons), samples), bool)
    for i, lesson in enumerate(lessons):
        s, n = lesson.placements.shape
        placements[i, :s, :n] = lesson.placements
        rewards[i, :s] = lesson.rewards
        valid[i, :s] = True
    return torch.from_numpy(placements), rewards, valid
