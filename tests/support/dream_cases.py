"""Tiny policies of the paper's three models, and problems as they see them."""

import numpy as np
import torch
from problems import chain, diamond, fork_join

from streamplace.learn.algorithms.orders import decision_order
from streamplace.learn.models.dream import COMMON, FEATURES, AllocatorConfig, GraphAllocatorConfig
from streamplace.learn.models.dream.graphs import Graphs, OperatorScale, padded_orders
from streamplace.learn.models.dream.network import built_module
from streamplace.model import Cluster, Problem

MODELS = ["dream", "encdec", "encdec-gnn"]
FIVE = Cluster.uniform(5)
PROBLEMS = [
    Problem(graph, FIVE) for graph in (diamond(), chain(5), fork_join(2), fork_join(3), chain(1))
]
SCALE = OperatorScale.of(PROBLEMS)
DESCRIBED_SCALE = OperatorScale.of(PROBLEMS, (*FEATURES, *COMMON))


def options(model, **changes):
    """Options of a small model."""
    kind = AllocatorConfig if model == "encdec" else GraphAllocatorConfig
    return kind.model_validate({"width": 8, "embedding": 3, **changes})


def policy_of(model, seed=0, **changes):
    """Small policy with parameters large enough to have opinions."""
    torch.manual_seed(seed)
    policy = built_module(model, options(model, **changes))
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.mul_(2)
    return policy


def batch_of(problems, order="topological", **changes):
    """All problems, in the order of decision."""
    config = options("dream", **changes)
    scale = DESCRIBED_SCALE if config.device_state else SCALE
    orders = [decision_order(problem, order) for problem in problems]
    graphs = Graphs.of(problems, scale, config)
    return graphs.batch(torch.arange(len(problems)), torch.from_numpy(padded_orders(orders)))


def in_decision_order(problem, placement, order):
    """A placement as a policy takes it, [1, 1, N]."""
    return torch.from_numpy(np.array(placement)[decision_order(problem, order)])[None, None]


def log_probabilities(policy, batch, placements):
    """Log-probabilities [G, S, N, D] of all decisions along placements."""
    tree = policy.encode(batch)
    nodes = torch.from_numpy(tree.along(placements)[1])
    return torch.from_numpy(tree.nodes.log_p)[nodes]
