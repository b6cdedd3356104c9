"""Trainable models, and the registry that the command line and the docs read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from streamplace.errors import SettingError
from streamplace.learn.config import Config, Preset
from streamplace.learn.learner import Learner
from streamplace.learn.walker import Improver
from streamplace.model.arrays import Ints
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import named_objective
from streamplace.registry import Registry

if TYPE_CHECKING:
    from streamplace.learn.reward import Measure


@dataclass(frozen=True, slots=True)
class LearningTask:
    """The problems, targets and reward that a learner is built for.

    Attributes
    ----------
    device
        ``cpu`` or ``cuda``.
    objective
        Objective by name.
    reward
        Judge of sampled placements: a simulation, ``steady`` or ``engine``, or a function that
        measures passes.
    targets
        Good placements [N] of the training problems to learn from, None where none is known;
        empty for models that are not supervised.
    features
        Feature spec of the weights that training begins from, to be kept; None to make one from
        the training problems.
    """

    training: tuple[Problem, ...]
    validation: tuple[Problem, ...]
    seed: int
    device: str = "cpu"
    objective: str = "throughput"
    reward: "str | Measure" = "steady"
    targets: tuple[Ints | None, ...] = ()
    features: Mapping[str, Any] | None = None


class Allocator(Protocol):
    """A model with trained weights: it places at once, and can be sampled."""

    def place_many(self, problems: Sequence[Problem]) -> list[Placement]:
        """Place every problem greedily."""

    def sampled(self, problem: Problem, samples: int, seed: int) -> Ints:
        """Legal placements [S, N] of one problem, drawn from the policy."""


@dataclass(frozen=True, slots=True)
class LearnedModel:
    """A model that can be trained, and a placer of the same name.

    Attributes
    ----------
    config
        Class of the model's own options.
    presets
        By name; ``fast`` is the default, ``paper`` is there where a paper says how.
    learner
        Makes a learner for a task; imports torch only when called.
    allocator
        Reads a weights file; ``streamplace place --placer NAME`` then places greedily, and by
        samples. None where the placer of this name has a file of its own.
    improver
        Reads a weights file of a policy that improves placements; the placer of this name then
        walks from placement to placement.
    supervised
        Whether it learns from good placements that others found (`LearningTask.targets`).
    objectives
        Objectives that it can be trained for; empty for any.
    """

    name: str
    summary: str
    config: type[Config]
    presets: Mapping[str, Preset]
    learner: Callable[[LearningTask, Any], Learner]
    allocator: Callable[[Path], Allocator] | None = None
    improver: Callable[[Path], Improver] | None = None
    supervised: bool = False
    objectives: tuple[str, ...] = ()

    def check(self, objective: str) -> None:
        """Raise SettingError where it cannot be trained for an objective."""
        named_objective(objective)
        if self.objectives and objective not in self.objectives:
            raise SettingError(
                f"model {self.name!r} learns for {', '.join(self.objectives)}, not for "
                f"{objective}; train another, such as dream"
            )


MODELS: Registry[LearnedModel] = Registry(
    "streamplace.learn.models", "model", "model", wing="streamplace.papers"
)


def register(model: LearnedModel) -> LearnedModel:
    """Register a model under its name."""
    return MODELS.add(model.name, model)
