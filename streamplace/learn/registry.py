"""Trainable models, and the registry that the command line and the docs read."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from streamplace.errors import FormatError, SettingError, StreamplaceError
from streamplace.io.files import read_toml, spot
from streamplace.learn.config import C, Config, MemoryConfig, OptionTables, Preset, validated
from streamplace.learn.learner import Learner
from streamplace.model.arrays import Ints
from streamplace.model.defaults import PRESET
from streamplace.model.message_text import quoted
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import OF_TASKS, named_objective
from streamplace.registry import Registry

if TYPE_CHECKING:
    from streamplace.learn.reward import Measure


@dataclass(frozen=True, slots=True)
class LearningTask:
    """The problems, targets and reward that a learner is built for."""

    training: tuple[Problem, ...]
    validation: tuple[Problem, ...]
    seed: int  # below 2^64
    device: str = "cpu"  # of torch
    threads: int = 1  # threads that may study problems at the same time
    objective: str = "throughput"  # objective by name
    # Reward of sampled placements: a simulation, ``steady`` or ``engine``, or a function that
    # measures passes.
    reward: "str | Measure" = "steady"
    # Good placements [N] of the training problems to learn from, None for unknown ones; empty
    # for models that are not supervised.
    targets: tuple[Ints | None, ...] = ()
    # Feature spec of the weights that training begins from, to be kept; None to make one from the
    # training problems.
    features: Mapping[str, Any] | None = None


class Allocator(Protocol):
    """A model with trained weights: it places at once, and can be sampled."""

    def place_many(self, problems: Sequence[Problem]) -> list[Placement]:
        """Place every problem greedily."""

    def sampled(self, problem: Problem, samples: int, seed: int) -> Ints:
        """Legal placements [S, N] of one problem, drawn from the policy."""


Improver = Callable[[Problem, Ints, np.random.Generator, int], Iterator[Ints]]
"""A policy with fixed weights: one episode of a problem from a legal placement [N].

It yields the legal placements after its steps [T, N], at most the last argument at a time.
"""
CHUNK = 16
"""Largest number of steps between two checks of the placer's budget."""
STEPS_PER_OPERATOR = 2
"""Steps of the longest episodes, per operator."""


@dataclass(frozen=True, slots=True)
class LearnedModel:
    """A model that can be trained, and a placer of the same name."""

    name: str
    summary: str
    config: type[Config]  # class of the model's own options
    # By name; ``fast`` is the default, ``paper`` has the options that a paper states.
    presets: Mapping[str, Preset]
    # Makes a learner for a task; imports torch only when called.
    learner: Callable[[LearningTask, Any], Learner]
    # Reads a weights file; ``streamplace place --placer NAME`` then places greedily, and by
    # samples. None if a file in ``placers`` registers the placer of this name.
    allocator: Callable[[Path], Allocator] | None = None
    # Reads a weights file of a policy that improves placements; the placer of this name runs
    # episodes.
    improver: Callable[[Path], Improver] | None = None
    # Whether it learns from good placements that others found (`LearningTask.targets`).
    supervised: bool = False
    objectives: tuple[str, ...] = ()  # objectives that it can be trained for; empty for any

    def check(self, objective: str) -> None:
        """Raise SettingError if it cannot be trained for an objective."""
        named_objective(objective)
        if self.objectives and objective not in self.objectives:
            other = "pilot-makespan" if objective == OF_TASKS else "dream"
            raise SettingError(
                f"model {self.name!r} learns for {', '.join(self.objectives)}, not for "
                f"{objective}; train another, such as {other}"
            )


OPTIONS_OF_DATA = (
    *("searched", "replayed", "places", "exploration", "exploration_decay"),
    *("imitation", "fresh", "fresh_branched"),
)
"""Options of models with a memory that depend on the training graphs: training that starts from
weights takes them from the preset."""

MODELS: Registry[LearnedModel] = Registry("streamplace.learn.models", "model", "model")


def register(model: LearnedModel) -> LearnedModel:
    """Register a model under its name."""
    return MODELS.add(model.name, model, model.learner)


def imported(function: str, *others: Any) -> Callable[..., Any]:
    """Function ``module:name`` with further arguments at its end; imported when it is called."""

    def call(*arguments: Any) -> Any:
        return resolve_name(function)(*arguments, *others)

    call.__module__, call.__qualname__ = function.split(":")
    return call


def configured(
    model: LearnedModel,
    preset: str = PRESET,
    file: Path | None = None,
    *,
    start: Mapping[str, Any] | None = None,
    epochs: int | None = None,
) -> Preset:
    """Return a preset of a model, changed by ``[training]`` and ``[model]`` of a TOML file.

    The model's options in the weights that training starts from replace the preset's; ``epochs``
    replaces the epochs of preset and file.
    """
    if preset not in model.presets:
        names = ", ".join(model.presets)
        raise SettingError(f"model {model.name!r} has no preset {quoted(preset)}; it has {names}")
    chosen = model.presets[preset]
    options, training = chosen.model, chosen.training
    if start is not None:
        anew = OPTIONS_OF_DATA if isinstance(options, MemoryConfig) else ()
        kept = {name: value for name, value in start.items() if name not in anew}
        options = _changed(options, kept, "the weights' config")
    if file is not None:
        where = spot(file)
        tables = validated(OptionTables, read_toml(file), where)
        options = _changed(options, tables.model, f"{where}: [model]")
        training = _changed(training, tables.training, f"{where}: [training]")
    if epochs is not None:
        training = _changed(training, {"epochs": epochs}, "training", SettingError)
    options.check_beside(training)
    return Preset(options, training)


def _changed(
    config: C, table: Mapping[str, Any], where: str, error: type[StreamplaceError] = FormatError
) -> C:
    """Return the same options, some of them replaced and all of them checked again."""
    return validated(type(config), {**config.model_dump(mode="json"), **table}, where, error)
