"""Episodes of a policy that improves placements, side by side.

Shapes: G episodes, A actions, T = G · N tasks as in `streamplace.papers.improving.batch`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from streamplace.io.weights import check_features
from streamplace.learn.config import C
from streamplace.learn.device import device_of
from streamplace.learn.improver import Improver
from streamplace.learn.learner_base import entropy_of
from streamplace.learn.model_weights import loaded, read_model
from streamplace.learn.parameters import fill
from streamplace.learn.shards import one_thread
from streamplace.model.arrays import Ints
from streamplace.model.problem import Problem
from streamplace.papers.improving.batch import TaskBatch, side_by_side


class Walk(NamedTuple):
    """One step of all episodes, or L steps with a dimension before the others."""

    places: Tensor  # [G, N] placements after it
    log_p: Tensor  # [G] of the choices
    entropy: Tensor  # [G] in nats


class Episodes(ABC):
    """Placements that change step by step, one of each problem of a batch."""

    def __init__(self, batch: TaskBatch, place: Tensor) -> None:
        self.batch, self.place, self.steps = batch, place, 0  # place [T]

    @abstractmethod
    def scores(self) -> tuple[Tensor, Tensor]:
        """Scores of all actions under the present placements, and which are open; [G, A]."""

    @abstractmethod
    def act(self, action: Tensor) -> None:
        """Take an action in every episode, [G]."""

    def step(self, uniform: Tensor) -> Walk:
        """Draw an action of every episode by its number [G] in [0, 1), and take it."""
        scores, is_open = self.scores()
        scores = scores.masked_fill(~is_open, -torch.inf)
        action = drawn(scores.detach(), uniform)
        self.act(action)
        self.steps += 1
        log_p = scores.log_softmax(1)
        places, taken = self.place.view(len(action), -1), log_p.gather(1, action[:, None])
        return Walk(places, taken[:, 0], entropy_of(log_p))

    def walk(self, uniform: Tensor) -> Walk:
        """Take L steps, drawn by numbers [L, G]."""
        steps = [self.step(numbers) for numbers in uniform.to(self.place.device)]
        return Walk(*map(torch.stack, zip(*steps, strict=True)))

    def move(self, task: Tensor, device: Tensor) -> None:
        """Move a task [G] of every episode to a device [G], with the tasks colocated with it."""
        unit, episode = self.batch.unit, self.batch.episode
        moved = unit == unit[task][episode]
        self.place = torch.where(moved, device[episode], self.place)


def drawn(scores: Tensor, uniform: Tensor) -> Tensor:
    """Actions [G] drawn by the softmax of scores [G, A] with numbers [G] in [0, 1)."""
    weight = (scores.double() - scores.amax(1, keepdim=True)).exp().cumsum(1)
    number = uniform[:, None] * weight[:, -1:]
    return torch.searchsorted(weight, number, right=True)[:, 0]


class ImprovingPolicy(nn.Module, ABC):
    """A network that scores the actions of episodes."""

    steps_per_task: ClassVar[int]
    features: Sequence[str]  # names; weights only fit those that they were trained on

    @abstractmethod
    def begin(self, batch: TaskBatch, place: Tensor) -> Episodes:
        """Start an episode of each problem; legal placements are [T]."""

    def episodes(self, problems: Sequence[Problem], places: Sequence[Ints]) -> Episodes:
        """Start an episode of each problem at a legal placement [n], where the parameters are."""
        device = device_of(self)
        place = torch.from_numpy(side_by_side(places)).to(device, torch.int64)
        return self.begin(TaskBatch(problems, device), place.flatten())


@loaded
def trained(
    path: Path, model: str, config: type[C], network: Callable[[C], ImprovingPolicy]
) -> Improver:
    """Policy of a model from a weights file."""
    weights, options, where = read_model(path, model, config)
    with torch.device("meta"):  # parameters get memory only once the weights fit the options
        policy = network(options)
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
            with one_thread(), torch.no_grad():
                walk = episodes.walk(uniform)
            yield walk.places[:, 0].to("cpu", torch.int32).numpy()

    return improve
