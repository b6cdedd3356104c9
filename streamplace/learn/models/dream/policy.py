"""The DREAM paper's models as policies: their learners, and policies from weights files."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from streamplace.learn.config import check_devices
from streamplace.learn.constructive.policy import ConstructivePolicy, FeatureScale
from streamplace.learn.constructive.reinforce import ConstructiveLearner
from streamplace.learn.env import ProblemTensors
from streamplace.learn.model_weights import loaded, read_model
from streamplace.learn.models.dream.features import operator_scale
from streamplace.learn.models.dream.model import AllocatorConfig
from streamplace.learn.models.dream.network import built_module
from streamplace.learn.parameters import fill
from streamplace.learn.registry import MODELS, LearningTask
from streamplace.model.problem import Problem


def prepared(
    config: AllocatorConfig, problems: Sequence[Problem], device: torch.device
) -> ProblemTensors:
    """Problems in the order that a model with these options decides in."""
    for problem in problems:
        check_devices(problem, config.devices)
    order = "topological" if config.device_state or config.depth_first else "bfs"
    return ProblemTensors(problems, device, order, random_ties=config.random_ties)


def learner_of(task: LearningTask, config: AllocatorConfig, model: str) -> ConstructiveLearner:
    """Learner with the scale of the weights that training begins from, or of the training set."""
    training = prepared(config, task.training, torch.device(task.device))
    if task.features is None:
        scale = operator_scale(training.every, config.features)
    else:
        start = "the weights to begin from"
        scale = FeatureScale.read(task.features, config.features, start)
    module = built_module(model, config, scale).to(task.device)
    policy = ConstructivePolicy(module, scale, partial(prepared, config))
    return ConstructiveLearner(task, config, policy, training)


@loaded
def trained(path: Path, model: str) -> ConstructivePolicy:
    """Policy of a model from a weights file."""
    kind: Any = MODELS[model].config
    weights, config, where = read_model(path, model, kind)
    scale = FeatureScale.read(weights.document["features"], config.features, where)
    with torch.device("meta"):  # parameters get memory only once the weights fit the options
        module = built_module(model, config, scale)
    fill(module, weights.tensors, where)
    return ConstructivePolicy(module, scale, partial(prepared, config))
