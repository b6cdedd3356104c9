"""Doppler: the likelihood of choices, training, and placing.

Stage I of training (equation 2) follows the policies' decisions and raises the log-probability of
the critical path's choice at each of them. Stages II and III (equation 3) raise that of an
episode's own choices in proportion to how much less its placement costs than others. The costs are
simulated in stage II and measured in stage III; `LearningTask.reward` selects which.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import embedding, one_hot

from streamplace.learn.algorithms.baselines import RunningMean, leave_one_out
from streamplace.learn.device import device_of
from streamplace.learn.learner import ALL, Selection, StepReport
from streamplace.learn.learner_base import BestRewards, PolicyLearner, entropy_of
from streamplace.learn.model_weights import loaded, read_model
from streamplace.learn.parameters import fill
from streamplace.learn.registry import LearningTask
from streamplace.learn.reward import with_costs
from streamplace.learn.shards import one_thread
from streamplace.model.arrays import Ints, Longs
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.papers.doppler.episode import LIKELIEST, EpisodeStep, episodes
from streamplace.papers.doppler.model import DopplerConfig
from streamplace.papers.doppler.network import FEATURES, DopplerModule, Heads
from streamplace.papers.doppler.tensors import TaskTensors

ALMOST = 1 - 1e-6


class Choices(NamedTuple):
    """Log-probability and entropy [S, T] of the choices at every step of S episodes."""

    log_p: Tensor
    entropy: Tensor


def choices(
    heads: Heads, record: EpisodeStep, config: DopplerConfig, exploration: float
) -> Choices:
    """Likelihood of the labelled choices of a record by the policies that are learned.

    A share of the choices is uniform exploration, so the probability of a choice is
    (1 - share) · π + share / open choices, whose logarithm has a floor.
    """
    both = []
    if config.select == "learned":
        both.append(_chosen(heads.score, record.ready, record.task, exploration))
    if config.place == "learned":
        placed = one_hot(record.done_device, record.open.shape[-1]).transpose(2, 3)
        added = embedding(record.done_task, heads.carried) * placed  # [S, T, D, H]
        scores = heads.of_devices(record.task, added.cumsum(1) - added, record.devices)
        both.append(_chosen(scores, record.open, record.device, exploration))
    return Choices(*(torch.stack(parts).sum(0) for parts in zip(*both, strict=True)))


def _chosen(score: Tensor, is_open: Tensor, choice: Tensor, exploration: float) -> Choices:
    """Log-probability of the choices, and the entropy in nats over the open ones."""
    log_p = score.masked_fill(~is_open, -torch.inf).log_softmax(-1)
    chosen = log_p.gather(-1, choice)[..., 0]
    if exploration > 0:
        any_of = math.log(exploration) - is_open.sum(-1).log()
        chosen = torch.logaddexp(chosen + math.log1p(-min(exploration, ALMOST)), any_of)
    return Choices(chosen, entropy_of(log_p))


def numbers_of(
    rng: np.random.Generator, shape: tuple[int, ...], config: DopplerConfig, exploration: float
) -> Tensor:
    """Numbers of `episode.episodes`: a share of the choices explores, the others as configured."""
    explores, uniform = rng.random(shape) < exploration, rng.random(shape)
    usual = uniform if config.drawn == "softmax" else np.full(shape, LIKELIEST)
    return torch.from_numpy(np.where(explores, 1.0 + uniform, usual))


def legal(problem: Problem, steps: Iterable[EpisodeStep]) -> Ints:
    """Legal placements [S, N] of the episodes of a problem."""
    pairs = ((step.done_task, step.done_device) for step in steps)
    tasks, devices = (torch.cat(parts, 1) for parts in zip(*pairs, strict=True))
    return problem.repaired(torch.empty_like(devices).scatter(1, tasks, devices).cpu().numpy())


def placed(module: DopplerModule, problem: Problem, numbers: Tensor) -> Ints:
    """Legal placements [S, N] of a problem by the actual choices; see `episode.episodes`."""
    device = device_of(module)
    tensors = TaskTensors.of(problem).to(device)
    with torch.inference_mode():
        heads = module(tensors)
    steps = episodes(tensors, heads, module.config, numbers.to(device), taught=False)
    return legal(problem, steps)


def greedy(module: DopplerModule, problem: Problem) -> Ints:
    """Legal placement [1, N] of the likeliest choices."""
    return placed(module, problem, torch.full((1, problem.n_operators, 2), LIKELIEST))


class DopplerLearner(PolicyLearner[DopplerConfig]):
    """Both policies on their training problems; see `streamplace.learn.learner_base`.

    Every training problem has one row for each of its steps in an epoch.
    """

    def __init__(self, task: LearningTask, config: DopplerConfig) -> None:
        super().__init__(task, config, DopplerModule(config))
        self.module: DopplerModule
        self._rewards_and_costs = with_costs(self.reward)
        self._imitation = config.imitation if task.features is None else 0
        self._training = [TaskTensors.of(problem) for problem in task.training]
        self._best = BestRewards(self.n_problems)
        self._earlier = RunningMean(len(task.training))

    @property
    def n_problems(self) -> int:
        """Number of rows."""
        return len(self.task.training) * self.config.steps

    def sizes(self, epoch: int) -> Longs:
        """Tasks of each row."""
        return np.tile(super().sizes(epoch), self.config.steps)

    def loss(self, rows: Longs, epoch: int, seed: int) -> tuple[Tensor, StepReport]:
        """Loss of episodes of these problems, by the critical path or by their costs."""
        rng = np.random.default_rng(seed)
        losses = [self._loss(row, epoch, rng) for row in rows.tolist()]
        report = sum((each for _, each in losses), StepReport(0, 0.0, 0.0, 0.0, 0))
        return torch.stack([loss for loss, _ in losses]).sum(), report

    def judged(self, problems: Sequence[Problem], numbers: Sequence[int]) -> list[float]:
        """Reward of the likeliest placements."""
        pairs = ((problem, greedy(self.module, problem)) for problem in problems)
        return [float(self.reward(problem, place)[0]) for problem, place in pairs]

    def state(self, rows: Selection = ALL) -> dict[str, NDArray[Any]]:
        """Best rewards of rows, and number and sum of the costs of their problems so far."""
        return {**self._best.state(rows), **self._earlier.state(self._problems_of(rows))}

    def restore(self, state: Mapping[str, NDArray[Any]], rows: Selection = ALL) -> None:
        """Restore the arrays of `state`."""
        self._best.restore(state, rows)
        self._earlier.restore(state, self._problems_of(rows))

    def features(self) -> dict[str, Any]:
        """Names of the features; all are scaled within each problem."""
        return {"names": FEATURES}

    def _problems_of(self, rows: Selection) -> Longs:
        return np.unique(np.arange(self.n_problems)[rows] % len(self._training))

    def _exploration(self, epoch: int) -> float:
        """Share of random choices, which falls linearly in either stage."""
        if epoch < self._imitation:
            return self.config.straying * (1.0 - epoch / self._imitation)
        remaining = 1.0 - (epoch - self._imitation) / self.config.exploring
        return self.config.exploration * max(remaining, 0.0)

    def _loss(self, row: int, epoch: int, rng: np.random.Generator) -> tuple[Tensor, StepReport]:
        at, config, taught = row % len(self._training), self.config, epoch < self._imitation
        problem, device = self.task.training[at], self.device
        tensors, share = self._training[at].to(device), self._exploration(epoch)
        heads, shape = self.module(tensors), (config.episodes, problem.n_operators, 2)
        numbers = numbers_of(rng, shape, config, share).to(device)
        steps = list(episodes(tensors, heads, config, numbers, taught=taught))
        record = EpisodeStep(*(torch.stack(parts, 1) for parts in zip(*steps, strict=True)))
        rewards, costs = self._rewards_and_costs(problem, legal(problem, steps))
        mixed = config.drawn == "softmax" and not taught
        chosen = choices(heads, record, config, share if mixed else 0.0)
        # Rows of one problem may be in two threads at once, so each remembers its own best.
        best = self._best.update(row, float(rewards.max()))
        entropy = float(chosen.entropy.detach().mean())
        report = StepReport(1, float(rewards.mean()), best, entropy, len(rewards))
        if taught:
            return -chosen.log_p.sum() / config.episodes, report
        alone = len(costs) == 1
        less = self._earlier.savings(at, costs) if alone else leave_one_out(-costs)
        weights = torch.from_numpy(less).to(chosen.log_p)
        gained = (weights[:, None] * chosen.log_p).sum()
        return -(gained + config.entropy * chosen.entropy.sum()) / config.episodes, report


@dataclass(frozen=True, slots=True)
class TrainedDoppler:
    """Both policies with trained weights."""

    module: DopplerModule

    def place_many(self, problems: Sequence[Problem]) -> list[Placement]:
        """Place every problem greedily."""
        with one_thread():
            rows = [greedy(self.module, problem)[0] for problem in problems]
        return [problem.placement(row) for problem, row in zip(problems, rows, strict=True)]

    def sampled(self, problem: Problem, samples: int, seed: int) -> Ints:
        """Legal placements [S, N] of one problem, drawn from both policies."""
        uniform = np.random.default_rng(seed).random((samples, problem.n_operators, 2))
        with one_thread():
            return placed(self.module, problem, torch.from_numpy(uniform))


@loaded
def trained(path: Path) -> TrainedDoppler:
    """Doppler from a weights file."""
    weights, config, where = read_model(path, "doppler", DopplerConfig, FEATURES)
    with torch.device("meta"):  # parameters get memory only once the weights fit the options
        module = DopplerModule(config)
    fill(module, weights.tensors, where)
    return TrainedDoppler(module)
