"""Placing with a trained policy: many problems at once, greedily, or samples of one."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from streamplace.errors import FormatError
from streamplace.io.files import spot
from streamplace.io.weights import Weights, read_weights, stamped
from streamplace.learn.algorithms.orders import decision_order
from streamplace.learn.config import parsed
from streamplace.learn.learner import ALL, Rows
from streamplace.learn.models.dream.features import FEATURES, Scale
from streamplace.learn.models.dream.graphs import Graphs, padded_orders
from streamplace.learn.models.dream.model import PaperModel
from streamplace.learn.models.dream.options import AllocatorConfig
from streamplace.learn.models.dream.policy import Policy
from streamplace.learn.parameters import check_arrays, put_arrays
from streamplace.learn.registry import MODELS
from streamplace.learn.threads import one_thread
from streamplace.model.arrays import Ints
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem

CELLS = 1 << 12
"""Operators that are decided about in one batch, padding included."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainedPolicy:
    """A policy with trained weights."""

    policy: Policy
    config: AllocatorConfig
    scale: Scale

    def place_many(self, problems: Sequence[Problem]) -> list[Placement]:
        """Place every problem greedily."""
        with one_thread():
            rows = greedy_rows(self.policy, self._graphs(problems), problems, self.config.order)
        return [p.placement(row) for p, row in zip(problems, rows, strict=True)]

    def sampled(self, problem: Problem, samples: int, seed: int) -> Ints:
        """Legal placements [S, N] of one problem, drawn from the policy."""
        order = decision_order(problem, self.config.order)
        with one_thread(), torch.no_grad():
            batch = self._graphs([problem]).batch(torch.tensor([0]), torch.from_numpy(order)[None])
            generator = torch.Generator().manual_seed(seed % 2**63)
            drawn = self.policy.sample(self.policy.encode(batch), samples, generator)[0].numpy()
        placements = np.empty(drawn.shape, np.int32)
        placements[:, order] = drawn
        return problem.repaired(placements)

    def _graphs(self, problems: Sequence[Problem]) -> Graphs:
        return Graphs.of(problems, self.scale, self.config.devices, self.config.canonical)


def place_many(weights: Weights, problems: Sequence[Problem]) -> list[Placement]:
    """Place every problem greedily with these weights."""
    return trained_from(weights, "the weights").place_many(problems)


def trained(path: Path, model: str) -> TrainedPolicy:
    """Policy of a model from a weights file, read once as long as the file stays what it is."""
    return _trained(model, *stamped(path))


@lru_cache(maxsize=8)
def _trained(model: str, path: Path, stamp: tuple[int, int]) -> TrainedPolicy:
    return trained_from(read_weights(path, model=model, features=FEATURES), spot(path))


def trained_from(weights: Weights, where: str) -> TrainedPolicy:
    """Policy from weights; ``where`` they come from stands in errors."""
    model = next((MODELS[name] for name in MODELS if name == weights.model), None)
    if not isinstance(model, PaperModel):
        raise FormatError(f"{where}: holds weights of {weights.model!r}, no model of the paper")
    config = _config(model, weights, where)
    with torch.device("meta"):  # no memory for what a config alone asks for
        policy = model.policy(config)
    check_arrays(policy, weights.tensors, where)
    policy.to_empty(device="cpu")
    put_arrays(policy, weights.tensors, where)
    return TrainedPolicy(
        policy.eval(), config, Scale.from_document(weights.document["features"], where)
    )


def _config(model: PaperModel, weights: Weights, where: str) -> AllocatorConfig:
    config: AllocatorConfig = parsed(model.config, weights.document["config"], f"{where}: config")
    return config


def greedy_rows(
    policy: Policy, graphs: Graphs, problems: Sequence[Problem], order: str, some: Rows = ALL
) -> list[Ints]:
    """Greedy legal placements [N], in operator order, of some problems and their tensors."""
    numbers = np.arange(len(problems))[some]
    found: dict[int, Ints] = {}
    for part in alike(np.array([problems[i].n_operators for i in numbers])):
        rows = numbers[part]
        orders = [decision_order(problems[i], order) for i in rows]
        along = torch.from_numpy(padded_orders(orders)).to(graphs.present.device)
        batch = graphs.batch(torch.from_numpy(rows).to(along.device), along)
        with torch.no_grad():
            decided = policy.greedy(policy.encode(batch))[:, 0].cpu().numpy()
        for i, by_step, one in zip(rows.tolist(), decided, orders, strict=True):
            row = np.empty(len(one), np.int32)
            row[one] = by_step[: len(one)]
            found[i] = problems[i].repaired(row)
    return [found[i] for i in numbers.tolist()]


def alike(sizes: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Rows in batches of like sizes, each of at most `CELLS` operators or one problem."""
    by_size = np.argsort(sizes, kind="stable")
    found, start = [], 0
    while start < len(by_size):
        end = start + 1
        while end < len(by_size) and (end + 1 - start) * sizes[by_size[end]] <= CELLS:
            end += 1
        found.append(by_size[start:end])
        start = end
    return found
