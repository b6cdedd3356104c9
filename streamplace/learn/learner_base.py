"""Base class of learners: rewards, memories, validation, and the facts of a weights file."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from streamplace.learn.config import Config
from streamplace.learn.device import device_of
from streamplace.learn.learner import ALL, Selection, StepReport
from streamplace.learn.registry import LearningTask
from streamplace.learn.reward import Reward, reward_of
from streamplace.model.arrays import Floats, Longs
from streamplace.model.problem import Problem
from streamplace.model.random_numbers import generator

C = TypeVar("C", bound=Config)
T = TypeVar("T")
R = TypeVar("R")


class RowMemory:
    """Tensors by name with a row for every training problem; arrays share values with them."""

    def __init__(self, parts: Mapping[str, Tensor | NDArray[Any]]) -> None:
        self._tensors = {name: torch.as_tensor(part) for name, part in parts.items()}

    def state(self, rows: Selection = ALL) -> dict[str, NDArray[Any]]:
        """Arrays to save, of some problems."""
        return {name: part[rows].cpu().numpy().copy() for name, part in self._tensors.items()}

    def restore(self, state: Mapping[str, NDArray[Any]], rows: Selection = ALL) -> None:
        """Restore the arrays of `state`."""
        for name, part in self._tensors.items():
            part[rows] = torch.tensor(state[name], device=part.device)


class BestRewards(RowMemory):
    """The best reward of every problem so far."""

    def __init__(self, problems: int) -> None:
        self.rewards: Floats = np.zeros(problems)
        super().__init__({"best": self.rewards})

    def update(self, row: int, reward: float) -> float:
        """Count a reward; returns the best one of its problem."""
        self.rewards[row] = max(self.rewards[row], reward)
        return float(self.rewards[row])


class PolicyLearner(ABC, Generic[C]):
    """A policy on its training problems; see `streamplace.learn.learner.Learner`.

    Policies differ in their `loss`, their validation (`judged`) and their `features`.
    """

    def __init__(self, task: LearningTask, config: C, module: torch.nn.Module) -> None:
        self.task, self.config = task, config
        self.reward: Reward = reward_of(task.objective, task.reward)
        self.module = module
        self.memories: Sequence[RowMemory] = ()  # of the training problems
        self._threads = ThreadPoolExecutor(task.threads, "problem")

    @abstractmethod
    def loss(self, rows: Longs, epoch: int, seed: int) -> tuple[Tensor, StepReport]:
        """Sample and reward these problems; a loss summed over the rows."""

    @abstractmethod
    def judged(self, problems: Sequence[Problem], numbers: Sequence[int]) -> Sequence[float]:
        """Rewards of the policy's placements of validation problems, which have these numbers."""

    @abstractmethod
    def features(self) -> Mapping[str, Any]:
        """Features of the policy for JSON: ``names``, perhaps ``mean`` and ``std``."""

    def for_each(self, function: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Results for all items, computed on all cores as far as the GIL is released."""
        is_serial = self.task.threads == 1
        return list(map(function, items) if is_serial else self._threads.map(function, items))

    def studied(
        self, rows: Longs, seed: int, study: Callable[[int, np.random.Generator], R]
    ) -> list[R]:
        """Study training problems, each with a generator of the seed and its row alone."""
        return self.for_each(lambda row: study(row, generator(seed, row)), rows.tolist())

    @property
    def device(self) -> torch.device:
        """Device of the parameters."""
        return device_of(self.module)

    def tensor(self, array: NDArray[Any]) -> Tensor:
        """Array as a tensor on this device."""
        return torch.from_numpy(array).to(self.device)

    def no_loss(self) -> Tensor:
        """Loss 0 of a batch without samples to learn from; all gradients are 0."""
        return 0 * torch.cat([p.flatten() for p in self.module.parameters()]).sum()

    @property
    def n_problems(self) -> int:
        """Number of training problems."""
        return len(self.task.training)

    def sizes(self, epoch: int) -> Longs:
        """Operators of each training problem of an epoch."""
        return np.array([problem.n_operators for problem in self.task.training], np.int64)

    def validate(self, rows: Selection = ALL) -> Floats:
        """Rewards of the policy's placements of validation problems."""
        numbers = np.arange(len(self.task.validation))[rows].tolist()
        problems = [self.task.validation[number] for number in numbers]
        return np.array(self.judged(problems, numbers), np.float64)

    def state(self, rows: Selection = ALL) -> dict[str, NDArray[Any]]:
        """Memories of training problems."""
        return {k: v for memory in self.memories for k, v in memory.state(rows).items()}

    def restore(self, state: Mapping[str, NDArray[Any]], rows: Selection = ALL) -> None:
        """Restore the arrays of `state`."""
        for memory in self.memories:
            memory.restore(state, rows)

    def spec(self) -> dict[str, Any]:
        """Options and features."""
        config = self.config.model_dump(mode="json")
        return {"config": config, "features": dict(self.features())}


def among_open(
    first: Tensor, is_open: Tensor, own: torch.nn.Module, mean: torch.nn.Module
) -> Tensor:
    """Second layer [P, D, H] of the devices of decisions: relu(own x + mean of x over the open)."""
    may = is_open[..., None]
    average = (first * may).sum(1) / may.sum(1)
    rectified: Tensor = (own(first) + mean(average)[:, None]).relu()
    return rectified


def log_probabilities(logits: Tensor, is_open: Tensor) -> Tensor:
    """Log-probabilities [P, D] from logits [P, D, 1]; -inf where a device was not open."""
    return logits.squeeze(-1).masked_fill(~is_open, -torch.inf).log_softmax(-1)


def entropy_of(log_p: Tensor) -> Tensor:
    """Entropy in nats of log-probabilities [..., D], -inf for devices that are not open."""
    return -(log_p.exp() * log_p.masked_fill(log_p == -torch.inf, 0.0)).sum(-1)


def mean_entropy(log_p: Tensor, problem: Tensor) -> float:
    """Sum over problems of the mean entropy of their decisions.

    ``log_p`` [P, D] are the log-probabilities at every decision, -inf where a device was not open;
    ``problem`` [P] is the number of its problem.
    """
    with torch.no_grad():
        entropy = entropy_of(log_p)
        decisions = torch.bincount(problem)
        sums = entropy.new_zeros(len(decisions), dtype=torch.double)
        sums.index_add_(0, problem, entropy.double())
        return float((sums / decisions.clamp(min=1)).sum())
