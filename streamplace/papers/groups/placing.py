"""Policies that decide by traits: their learner, and policies from a weights file."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from streamplace.learn.config import Config
from streamplace.learn.constructive.policy import ConstructivePolicy
from streamplace.learn.constructive.reinforce import ConstructiveLearner
from streamplace.learn.learner import Selection
from streamplace.learn.model_weights import loaded, read_model
from streamplace.learn.parameters import fill
from streamplace.learn.registry import LearningTask
from streamplace.model.arrays import Ints
from streamplace.model.problem import Problem
from streamplace.papers.groups.nodes import Traits


def placed_in_batches(
    problems: Sequence[Problem],
    rows: Selection,
    size: int,
    drawn: Callable[[Sequence[int]], Tensor],
) -> list[Ints]:
    """Place ``size`` problems at once: the last legal placement of those that are drawn of each."""
    numbers = np.arange(len(problems))[rows].tolist()
    placements: list[Ints] = []
    with torch.no_grad():
        for start in range(0, len(numbers), size):
            some = numbers[start : start + size]
            last = drawn(some)[:, -1].numpy().astype(np.int32)
            placements += [
                problems[i].repaired(devices[: problems[i].n_operators])
                for i, devices in zip(some, last, strict=True)
            ]
    return placements


Build = Callable[[Traits, Any], ConstructivePolicy]
Measured = Callable[[Sequence[Problem], Any], Traits]


def learner_of(
    task: LearningTask, config: Any, measured: Measured, build: Build
) -> ConstructiveLearner:
    """Learner with the traits of the weights that training begins from, or of the training set."""
    if task.features is None:
        traits = measured(task.training, config)
    else:
        traits = Traits.from_document(task.features, "the weights to begin from")
    return ConstructiveLearner(task, config, build(traits, config))


@loaded
def trained(path: Path, model: str, config: type[Config], build: Build) -> ConstructivePolicy:
    """Policy of a model from a weights file."""
    weights, options, where = read_model(path, model, config)
    traits = Traits.from_document(weights.document["features"], where)
    with torch.device("meta"):  # parameters get memory only once the weights fit the options
        policy = build(traits, options)
    fill(policy.module, weights.tensors, where)
    return policy
