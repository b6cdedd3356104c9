"""Tiny policies of the paper's three models, and problems as they see them."""

import torch
from problems import chain, diamond, fork_join

from streamplace.learn.env import ProblemTensors
from streamplace.learn.models.dream import policy
from streamplace.learn.models.dream.features import operator_features, operator_scale
from streamplace.learn.models.dream.model import AllocatorConfig, GraphAllocatorConfig
from streamplace.learn.models.dream.network import built_module
from streamplace.learn.registry import MODELS as REGISTERED
from streamplace.learn.registry import LearningTask
from streamplace.model import Cluster, Problem

MODELS = ["dream", "encdec", "encdec-gnn"]
FIVE = Cluster.uniform(5)
PROBLEMS = [
    Problem(graph, FIVE) for graph in (diamond(), chain(5), fork_join(2), fork_join(3), chain(1))
]


def options(model, **changes):
    """Options of a small model."""
    kind = AllocatorConfig if model == "encdec" else GraphAllocatorConfig
    return kind.model_validate({"width": 8, "embedding": 3, **changes})


def batch_of(problems, order="topological"):
    """All problems, in an order of decision."""
    return ProblemTensors(problems, order=order).batch(torch.arange(len(problems)))


def scale_of(config):
    """Scale of a model's features over the problems."""
    return operator_scale(batch_of(PROBLEMS), config.features)


def policy_of(model, seed=0, **changes):
    """Small policy with parameters large enough to have opinions."""
    torch.manual_seed(seed)
    config = options(model, **changes)
    policy = built_module(model, config, scale_of(config))
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.mul_(2)
    return policy


def learner_of(model, preset, problems, validation=(), **changes):
    """Small learner by a preset, with parameters large enough to have opinions."""
    config = REGISTERED[model].presets[preset].model.model_copy(update={"width": 8, **changes})
    torch.manual_seed(0)
    learner = policy.learner_of(LearningTask(problems, validation, seed=0), config, model)
    with torch.no_grad():
        for parameter in learner.module.parameters():
            parameter.mul_(2)
    return learner


def features_of(policy, problem):
    """Features [N, F] of operators as a policy reads them."""
    return (operator_features(batch_of([problem]), policy.names)[0] - policy.mean) / policy.std


def drawn(policy, batch, samples=4, seed=0):
    """Placements [G, S, N]."""
    return policy(batch, samples, generator=torch.Generator().manual_seed(seed)).placements


def log_probabilities(policy, batch, placements):
    """Log-probabilities [G, S, N, D] of all decisions along placements."""
    step, found = policy.decoder.step, []

    def spied(*inputs):
        found.append(step(*inputs))
        return found[-1]

    policy.decoder.step = spied
    try:
        policy(batch, 0, placements)
    finally:
        del policy.decoder.step
    return torch.stack([log_p for log_p, _, _ in found], dim=2).detach()
