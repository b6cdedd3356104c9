"""Doppler in torch: the networks' outputs for an episode, the likelihood of choices, and training.

With N(v) the neighbours of v, e the seconds of the stream between and whether it leads away or
here, and FFNN a linear map with a bias, section 5.2 of the paper reads

    h_v ← LeakyReLU(W [h_v : mean over u in N(v) of LeakyReLU(W [h_u : h_v : e_uv])])
    SEL = softmax over ready v of w · LeakyReLU(W [h_v : Σ h on b-path : Σ h on t-path : FFNN(x_v)])
    PLC = softmax over open d of w · LeakyReLU(W [h_v : Σ h of tasks on d : FFNN(y_d) : FFNN(x_v)])

where every W and w is another one, but the same in all rounds, and sums over paths and devices are
multiplied by the option ``sums``; h begins as a linear map of x_v.

Stage I of training (equation 2) follows the policies' decisions and raises the log-probability of
the critical path's choice at each of them. Stages II and III (equation 3) raise that of an
episode's own choices in proportion to how much less its placement costs than others. The costs are
simulated in stage II and measured in stage III; `LearningTask.reward` selects which.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import leaky_relu, linear, one_hot

from streamplace.learn.algorithms.baselines import RunningMean, more_than_others
from streamplace.learn.learner import ALL, Selection, StepReport
from streamplace.learn.learner_base import BestRewards, PolicyLearner
from streamplace.learn.model_weights import loaded, read_model
from streamplace.learn.parameters import fill
from streamplace.learn.registry import LearningTask
from streamplace.learn.reward import with_costs
from streamplace.learn.shards import one_thread
from streamplace.model.arrays import Floats, Ints, Longs
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.papers.doppler import DopplerConfig
from streamplace.papers.doppler.episode import (
    FEATURES,
    LIKELIEST,
    N_DEVICE,
    N_TASK,
    SLOPE,
    DecisionRules,
    DopplerFeatures,
    DopplerHeads,
    EpisodeRecord,
    episodes,
    features_of,
    members_of_paths,
    new_record,
)

N_EDGE = 2
ALMOST = 1 - 1e-6


@dataclass(frozen=True, slots=True)
class GraphTensors:
    """A problem as tensors (N tasks, E streams, each seen from both ends)."""

    tasks: Tensor  # [N, 5]
    source: Tensor  # [2 E]
    target: Tensor  # [2 E]
    edges: Tensor  # [2 E, 2]
    degree: Tensor  # [N, 1]
    before: tuple[Tensor, Tensor]  # pairs (v, u), u on the b-level path of v
    after: tuple[Tensor, Tensor]  # the same of the t-level paths

    @classmethod
    def of(cls, features: DopplerFeatures) -> "GraphTensors":
        """Tensors of a problem."""
        source, target = (_rows(ends) for ends in (features.tasks.source, features.tasks.target))
        both = torch.cat([target, source])
        seconds = torch.from_numpy(features.sending.astype(np.float32))
        direction = torch.ones_like(seconds)
        edges = torch.stack([seconds.repeat(2), torch.cat([direction, -direction])], 1)
        degree = torch.bincount(both, minlength=features.tasks.n_tasks).clamp(min=1)[:, None]
        return cls(
            torch.from_numpy(features.of_task.astype(np.float32)),
            torch.cat([source, target]),
            both,
            edges,
            degree,
            _paths(features.before),
            _paths(features.after),
        )


class DopplerModule(nn.Module):
    """Both policies."""

    def __init__(self, config: DopplerConfig) -> None:
        super().__init__()
        width, hidden = config.width, config.hidden
        self.rounds, self.sums = config.rounds, config.sums
        self.enter = nn.Linear(N_TASK, width)
        self.message = nn.Linear(2 * width + N_EDGE, width)
        self.update = nn.Linear(2 * width, width)
        self.sel_task, self.plc_task = nn.Linear(N_TASK, width), nn.Linear(N_TASK, width)
        self.plc_device = nn.Linear(N_DEVICE, width)
        self.sel_hidden, self.plc_hidden = (nn.Linear(4 * width, hidden) for _ in "ab")
        self.sel_out, self.plc_out = (nn.Linear(hidden, 1, bias=False) for _ in "ab")

    def forward(self, graph: GraphTensors) -> DopplerHeads:
        """Outputs of both networks for a problem."""
        states = self.states(graph)
        paths = (self.sums * _summed(states, path) for path in (graph.before, graph.after))
        parts = [states, *paths]
        joined = torch.cat([*parts, self.sel_task(graph.tasks)], 1)
        score = self.sel_out(leaky_relu(self.sel_hidden(joined), SLOPE))[:, 0]
        of_task, of_placed, of_device, of_features = self.plc_hidden.weight.chunk(4, 1)
        start = linear(states, of_task, self.plc_hidden.bias)
        start = start + linear(self.plc_task(graph.tasks), of_features)
        start = start + linear(self.plc_device.bias, of_device)
        device_layer = linear(self.plc_device.weight.T, of_device)
        return DopplerHeads(
            score,
            start,
            self.sums * linear(states, of_placed),
            device_layer,
            self.plc_out.weight[0],
        )

    def states(self, graph: GraphTensors) -> Tensor:
        """States of all tasks [N, W] after the messages."""
        states = self.enter(graph.tasks)
        for _ in range(self.rounds):
            ends = states[graph.source], states[graph.target], graph.edges
            messages = leaky_relu(self.message(torch.cat(ends, 1)), SLOPE)
            received = torch.zeros_like(states).index_add(0, graph.target, messages) / graph.degree
            states = leaky_relu(self.update(torch.cat([states, received], 1)), SLOPE)
        return states


class Choices(NamedTuple):
    """Log-probability and entropy [S, T] of the choices at every step of S episodes."""

    log_p: Tensor
    entropy: Tensor


def choices(
    outputs: DopplerHeads, record: EpisodeRecord, config: DopplerConfig, exploration: float
) -> Choices:
    """Likelihood of the labelled choices of a record by the policies that are learned.

    A share of the choices is uniform exploration, so the probability of a choice is
    (1 - share) · π + share / open choices, whose logarithm has a floor.
    """
    both = []
    if config.select == "learned":
        both.append(_tasks(outputs, record, exploration))
    if config.place == "learned":
        both.append(_devices(outputs, record, exploration))
    return Choices(*(torch.stack(parts).sum(0) for parts in zip(*both, strict=True)))


def _tasks(outputs: DopplerHeads, record: EpisodeRecord, exploration: float) -> Choices:
    ready, task = torch.from_numpy(record.ready), _rows(record.task)
    log_p = outputs.score.expand(ready.shape).masked_fill(~ready, -torch.inf).log_softmax(-1)
    return _chosen(log_p, ready, task, exploration)


def _devices(outputs: DopplerHeads, record: EpisodeRecord, exploration: float) -> Choices:
    is_open, devices = (torch.from_numpy(part) for part in (record.open, record.devices))
    start = outputs.start[_rows(record.task)][:, :, None]
    logits = (
        leaky_relu(start + _carried(outputs, record) + devices @ outputs.device_layer, SLOPE)
        @ outputs.out
    )
    log_p = logits.masked_fill(~is_open, -torch.inf).log_softmax(-1)
    return _chosen(log_p, is_open, _rows(record.device), exploration)


def _chosen(log_p: Tensor, is_open: Tensor, choice: Tensor, exploration: float) -> Choices:
    """Log-probability of the choices, and the entropy in nats over the open ones."""
    chosen = log_p.gather(-1, choice[..., None])[..., 0]
    if exploration > 0:
        any_of = math.log(exploration) - is_open.sum(-1).log()
        chosen = torch.logaddexp(chosen + math.log1p(-min(exploration, ALMOST)), any_of)
    return Choices(chosen, -(log_p.exp() * log_p.masked_fill(~is_open, 0.0)).sum(-1))


def _carried(outputs: DopplerHeads, record: EpisodeRecord) -> Tensor:
    """Sum of the earlier tasks' parts on every device at every step [S, T, D, H]."""
    d = record.open.shape[-1]
    done = one_hot(_rows(record.done_device), d).to(outputs.carried.dtype)
    added = outputs.carried[_rows(record.done_task)][:, :, None] * done[..., None]
    return added.cumsum(1) - added


def _summed(states: Tensor, pairs: tuple[Tensor, Tensor]) -> Tensor:
    owner, member = pairs
    return torch.zeros_like(states).index_add(0, owner, states[member])


def _paths(follower: Ints) -> tuple[Tensor, Tensor]:
    owner, member = members_of_paths(follower)
    return _rows(owner), _rows(member)


def _rows(numbers: Ints) -> Tensor:
    return torch.from_numpy(numbers.astype(np.int64))


@dataclass(frozen=True, slots=True)
class DopplerProblem:
    """A problem, prepared for its episodes."""

    problem: Problem
    features: DopplerFeatures
    graph: GraphTensors

    @classmethod
    def of(cls, problem: Problem, config: DopplerConfig) -> "DopplerProblem":
        """Prepare a problem."""
        features = features_of(problem, config.device_unit)
        return cls(problem, features, GraphTensors.of(features))

    def run(
        self,
        outputs: DopplerHeads,
        config: DopplerConfig,
        numbers: Floats,
        record: EpisodeRecord,
        *,
        taught: bool,
    ) -> Ints:
        """Legal placements [S, N] of episodes with these numbers; see `episode.episodes`."""
        rules = DecisionRules(
            int(config.select == "learned"), int(config.place == "learned"), int(taught)
        )
        parts = (np.ascontiguousarray(part.detach().numpy()) for part in outputs)
        heads = DopplerHeads(*parts)
        if config.select == "critical-path":
            heads = heads._replace(score=self.features.to_exit.astype(np.float32))
        return self.problem.repaired(episodes(self.features, heads, rules, numbers, record))

    def greedy(self, module: nn.Module, config: DopplerConfig) -> Ints:
        """Placement [N] of the likeliest choices."""
        numbers = np.full((1, self.problem.n_operators, 2), LIKELIEST)
        nothing = new_record(self.features, 0)
        return self.run(module(self.graph), config, numbers, nothing, taught=False)[0]


def numbers_of(
    rng: np.random.Generator, shape: tuple[int, ...], config: DopplerConfig, exploration: float
) -> Floats:
    """Numbers that a share of the choices explores by, and the others are as the options say."""
    explores, uniform = rng.random(shape) < exploration, rng.random(shape)
    usual = uniform if config.drawn == "softmax" else np.full(shape, LIKELIEST)
    return np.where(explores, 1.0 + uniform, usual)


class DopplerLearner(PolicyLearner[DopplerConfig]):
    """Both policies on their training problems; see `streamplace.learn.learner_base`.

    Every training problem has one row for each of its steps in an epoch.
    """

    def __init__(self, task: LearningTask, config: DopplerConfig) -> None:
        super().__init__(task, config, DopplerModule(config))
        self._rewards_and_costs = with_costs(self.reward)
        self._imitation = config.imitation if task.features is None else 0
        self._training, self._validation = (
            [DopplerProblem.of(problem, config) for problem in problems]
            for problems in (task.training, task.validation)
        )
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
        report = sum((each for _, each in losses), StepReport(0, 0.0, 0.0, 0.0))
        return torch.stack([loss for loss, _ in losses]).sum(), report

    def judged(self, problems: Sequence[Problem], numbers: Sequence[int]) -> list[float]:
        """Reward of the likeliest placements."""
        prepared = [self._validation[number] for number in numbers]
        with torch.no_grad():
            places = [each.greedy(self.module, self.config)[None] for each in prepared]
        pairs = zip(problems, places, strict=True)
        return [float(self.reward(problem, place)[0]) for problem, place in pairs]

    def state(self, rows: Selection = ALL) -> dict[str, NDArray[Any]]:
        """Best rewards of rows, and number and sum of the costs of their problems so far."""
        return {**self._best.state(rows), **self._earlier.state(self._problems_of(rows))}

    def restore(self, state: Mapping[str, NDArray[Any]], rows: Selection = ALL) -> None:
        """Restore what `state` returned."""
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
        prepared = self._training[at]
        outputs = self.module(prepared.graph)
        record = new_record(prepared.features, config.episodes)
        shape = (config.episodes, prepared.problem.n_operators, 2)
        numbers = numbers_of(rng, shape, config, self._exploration(epoch))
        places = prepared.run(outputs, config, numbers, record, taught=taught)
        mixed = config.drawn == "softmax" and not taught
        chosen = choices(outputs, record, config, self._exploration(epoch) if mixed else 0.0)
        rewards, costs = self._rewards_and_costs(prepared.problem, places)
        # Rows of one problem may be in two threads at once, so each remembers its own best.
        best = self._best.meet(row, float(rewards.max()))
        entropy = float(chosen.entropy.detach().mean())
        report = StepReport(1, float(rewards.mean()), best, entropy)
        if taught:
            return -chosen.log_p.sum() / config.episodes, report
        alone = len(costs) == 1
        less = self._earlier.less_than_before(at, costs) if alone else more_than_others(-costs)
        weights = torch.from_numpy(less.astype(np.float32))
        gained = (weights[:, None] * chosen.log_p).sum()
        return -(gained + config.entropy * chosen.entropy.sum()) / config.episodes, report


@dataclass(frozen=True, slots=True)
class TrainedDoppler:
    """Both policies with trained weights."""

    module: DopplerModule
    config: DopplerConfig

    def place_many(self, problems: Sequence[Problem]) -> list[Placement]:
        """Place every problem greedily."""
        with one_thread(), torch.no_grad():
            prepared = (DopplerProblem.of(problem, self.config) for problem in problems)
            rows = [problem.greedy(self.module, self.config) for problem in prepared]
        return [problem.placement(row) for problem, row in zip(problems, rows, strict=True)]

    def sampled(self, problem: Problem, samples: int, seed: int) -> Ints:
        """Legal placements [S, N] of one problem, drawn from both policies."""
        numbers = np.random.default_rng(seed).random((samples, problem.n_operators, 2))
        with one_thread(), torch.no_grad():
            prepared = DopplerProblem.of(problem, self.config)
            outputs, nothing = self.module(prepared.graph), new_record(prepared.features, 0)
            return prepared.run(outputs, self.config, numbers, nothing, taught=False)


@loaded
def trained(path: Path) -> TrainedDoppler:
    """Doppler from a weights file."""
    weights, config, where = read_model(path, "doppler", DopplerConfig, FEATURES)
    with torch.device("meta"):  # parameters get memory only once the weights fit the options
        module = DopplerModule(config)
    fill(module, weights.tensors, where)
    return TrainedDoppler(module, config)
