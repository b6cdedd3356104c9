"""Tiny policies of the paper's three models, and problems as they see them."""

from collections.abc import Sequence

import numpy as np
import torch
from problems import chain, diamond, fork_join
from torch import Tensor

from streamplace.learn import registry
from streamplace.learn.algorithms.orders import decision_order
from streamplace.learn.models.dream.decoder import Encoded
from streamplace.learn.models.dream.features import Scale
from streamplace.learn.models.dream.graphs import GraphBatch, Graphs, padded_orders
from streamplace.learn.models.dream.model import PaperModel
from streamplace.learn.models.dream.options import AllocatorConfig
from streamplace.learn.models.dream.policy import Policy
from streamplace.model import Cluster, Problem

MODELS = ["dream", "encdec", "encdec-gnn"]
FIVE = Cluster.uniform(5)
PROBLEMS = [
    Problem(graph, FIVE) for graph in (diamond(), chain(5), fork_join(2), fork_join(3), chain(1))
]
SCALE = Scale.of(PROBLEMS)


def paper_model(name: str) -> PaperModel:
    """Registered model of the paper."""
    model = registry.MODELS[name]
    assert isinstance(model, PaperModel)
    return model


def options(model: str, **changes: object) -> AllocatorConfig:
    """Options of a small model."""
    config = paper_model(model).config
    return config.model_validate({"width": 8, "embedding": 3, **changes})


def policy_of(model: str, seed: int = 0, **changes: object) -> Policy:
    """Small policy with parameters large enough to have opinions."""
    torch.manual_seed(seed)
    policy = paper_model(model).policy(options(model, **changes))
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.mul_(2)
    return policy


def batch_of(
    problems: Sequence[Problem], order: str = "topological", canonical: bool = True
) -> GraphBatch:
    """All problems, in the order of decision."""
    graphs = Graphs.of(problems, SCALE, 5, canonical)
    orders = [decision_order(problem, order) for problem in problems]
    return graphs.batch(torch.arange(len(problems)), torch.from_numpy(padded_orders(orders)))


def in_decision_order(problem: Problem, placement: Sequence[int], order: str) -> Tensor:
    """A placement as a policy takes it, [1, 1, N]."""
    return torch.from_numpy(np.array(placement)[decision_order(problem, order)])[None, None]


def step_by_step(policy: Policy, batch: GraphBatch, placements: Tensor) -> Tensor:
    """Log-probabilities [G, N, S, D] of all decisions along placements, step by step."""
    encoded: Encoded = policy.encode(batch)
    graphs, samples, steps = placements.shape
    chosen = torch.zeros(graphs, steps, samples, batch.n_devices)
    state = encoded.start.repeat_interleave(samples, dim=0)
    cell = torch.zeros_like(state)
    rows = []
    for t in range(steps):
        row, state, cell = policy.decoder.step(encoded, chosen, t, state, cell)
        rows.append(row)
        chosen[:, t] = torch.nn.functional.one_hot(placements[:, :, t], batch.n_devices).float()
    return torch.stack(rows, dim=1)
