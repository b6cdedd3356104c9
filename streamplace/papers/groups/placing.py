"""Policies that decide by traits: their learner, and policies from a weights file."""

from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from streamplace.learn.config import Config
from streamplace.learn.constructive.policy import ConstructivePolicy
from streamplace.learn.constructive.reinforce import ConstructiveLearner
from streamplace.learn.model_weights import loaded, read_model
from streamplace.learn.parameters import fill
from streamplace.learn.registry import LearningTask
from streamplace.papers.groups.nodes import Traits


def learner_of(task: LearningTask, config: Any, module: str) -> ConstructiveLearner:
    """Learner with the traits of the weights that training begins from, or of the training set.

    ``module`` measures these traits with ``traits_of`` and makes the policy with ``build``.
    """
    if task.features is None:
        traits: Traits = import_module(module).traits_of(task.training, config)
    else:
        traits = Traits.from_document(task.features, "the weights to begin from")
    policy: ConstructivePolicy = import_module(module).build(traits, config)
    policy.module.to(task.device)
    return ConstructiveLearner(task, config, policy, policy.on(task.training))


@loaded
def trained(path: Path, model: str, config: type[Config], module: str) -> ConstructivePolicy:
    """Policy of a model from a weights file."""
    weights, options, where = read_model(path, model, config)
    traits = Traits.from_document(weights.document["features"], where)
    with torch.device("meta"):  # parameters get memory only once the weights fit the options
        policy: ConstructivePolicy = import_module(module).build(traits, options)
    fill(policy.module, weights.tensors, where)
    return policy
