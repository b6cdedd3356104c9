"""Episodes of a policy that improves placements, side by side.

Shapes: G episodes, A actions, T = G · N tasks as in `streamplace.papers.improving.batch`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from streamplace.io.weights import check_features
from streamplace.learn.config import Config
from streamplace.learn.device import device_of
from streamplace.learn.learner_base import entropy_of
from streamplace.learn.model_weights import loaded, read_model
from streamplace.learn.parameters import fill
from streamplace.learn.registry import Improver
from streamplace.learn.shards import one_thread
from streamplace.model.arrays import Ints
from streamplace.model.problem import Problem
from streamplace.papers.improving.batch import TaskBatch, side_by_side
from streamplace.papers.improving.messages import NodeGraph

MAX_SMALL_STEP = 4_000
"""Nodes of a step up to which operations of torch take longer to begin than to compute."""
BATCH_NODES = 50_000
"""Nodes of such steps for which gradients are then computed at once."""

Inputs = tuple[NodeGraph, *tuple[Tensor, ...]]
"""Inputs of a network: a graph, and tensors whose second dimension is the episodes."""


class ImprovementStep(NamedTuple):
    """One step of all episodes."""

    inputs: Inputs
    scores: Tensor  # [G, A], -inf where not open
    action: Tensor  # [G]
    place: Tensor  # [G, N] after it


class Episodes(ABC):
    """Placements that change step by step, one of each problem of a batch."""

    def __init__(self, policy: "ImprovingPolicy", batch: TaskBatch, place: Tensor) -> None:
        self.policy, self.batch = policy, batch
        self.place, self.steps = place, 0  # [T], and number of steps so far

    @abstractmethod
    def look(self) -> tuple[Inputs, Tensor]:
        """Inputs of the network under the present placements, and open actions [G, A]."""

    @abstractmethod
    def act(self, action: Tensor) -> None:
        """Take an action in every episode, [G]."""

    def step(self, uniform: Tensor) -> ImprovementStep:
        """Draw an action of every episode by its number [G] in [0, 1), and take it."""
        with torch.no_grad():
            inputs, is_open = self.look()
        is_small = inputs[0].nodes.shape[1] <= MAX_SMALL_STEP
        with torch.set_grad_enabled(torch.is_grad_enabled() and not is_small):
            scores = self.policy(*inputs).view(is_open.shape).masked_fill(~is_open, -torch.inf)
        action = drawn(scores.detach(), uniform)
        self.act(action)
        self.steps += 1
        return ImprovementStep(inputs, scores, action, self.place.view(len(action), -1))

    def move(self, task: Tensor, device: Tensor) -> None:
        """Move a task [G] of every episode to a device [G], with the tasks colocated with it."""
        unit, episode = self.batch.unit, self.batch.episode
        moved = unit == unit.take(task).take(episode)
        self.place = torch.where(moved, device.take(episode), self.place)


def drawn(scores: Tensor, uniform: Tensor) -> Tensor:
    """Actions [G] drawn by the softmax of scores [G, A] with numbers [G] in [0, 1)."""
    weight = (scores.double() - scores.amax(1, keepdim=True)).exp().cumsum(1)
    number = uniform[:, None] * weight[:, -1:]
    return torch.searchsorted(weight, number, right=True)[:, 0]


class ImprovingPolicy(nn.Module, ABC):
    """A network that scores the actions of episodes."""

    steps_per_task: ClassVar[int]
    features: Sequence[str]  # names; weights only fit the features that they were trained on

    @abstractmethod
    def begin(self, batch: TaskBatch, place: Tensor) -> Episodes:
        """Start an episode of each problem; legal placements are [T]."""

    def episodes(self, problems: Sequence[Problem], places: Sequence[Ints]) -> Episodes:
        """Start an episode of each problem at a legal placement [n], where the parameters are."""
        device = device_of(self)
        place = torch.from_numpy(side_by_side(places)).to(device, torch.int64)
        return self.begin(TaskBatch(problems, device), place.flatten())

    def likelihood(
        self, batch: TaskBatch, steps: Sequence[ImprovementStep]
    ) -> tuple[Tensor, Tensor]:
        """Log-probabilities of the actions of L steps, and entropies in nats; both are [L, G].

        Small steps are scored again with gradients, many at once.
        """
        inputs, each, actions, _ = zip(*steps, strict=True)
        scores = torch.stack(each)
        if not scores.requires_grad:
            size = max(1, BATCH_NODES // inputs[0][0].nodes.shape[1])
            parts = [self._scored(batch, inputs[i : i + size]) for i in range(0, len(steps), size)]
            scores = torch.cat(parts).view_as(scores).where(scores > -torch.inf, scores)
        log_p = scores.log_softmax(2)
        return log_p.gather(2, torch.stack(actions)[..., None])[..., 0], entropy_of(log_p)

    def _scored(self, batch: TaskBatch, inputs: Sequence[Inputs]) -> Tensor:
        """Scores of all actions of steps side by side."""
        graphs, *columns = zip(*inputs, strict=True)
        joined = NodeGraph.joined(graphs, batch.sweep(len(inputs)))
        scores: Tensor = self(joined, *(torch.cat(column, 1) for column in columns))
        return scores.reshape(len(inputs), -1)


@loaded
def trained(path: Path, model: str, config: type[Config], network: str) -> Improver:
    """Policy of a model from a weights file."""
    weights, options, where = read_model(path, model, config)
    with torch.device("meta"):  # parameters get memory only once the weights fit the options
        policy: ImprovingPolicy = resolve_name(network)(options)
    check_features(weights.document, policy.features, where)
    fill(policy, weights.tensors, where)
    return improver_of(policy)


def improver_of(policy: ImprovingPolicy) -> Improver:
    """Episodes of a policy with fixed weights, for a placer."""

    def improve(
        problem: Problem, place: Ints, rng: np.random.Generator, chunk: int
    ) -> Iterator[Ints]:
        episodes = policy.episodes([problem], [place])
        length = policy.steps_per_task * problem.n_operators
        for done in range(0, length, chunk):
            uniform = torch.from_numpy(rng.random((min(chunk, length - done), 1)))
            numbers = uniform.to(episodes.place.device)
            with one_thread(), torch.inference_mode():
                places = [episodes.step(number).place for number in numbers]
            yield torch.cat(places).to("cpu", torch.int32).numpy()

    return improve
