"""Placing with a trained policy: many problems at once, greedily, or samples of one."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from streamplace.errors import FormatError
from streamplace.io.files import spot
from streamplace.io.weights import Weights, read_weights
from streamplace.learn.algorithms.orders import decision_order
from streamplace.learn.config import parsed
from streamplace.learn.learner import ALL, Selection
from streamplace.learn.loading import loaded
from streamplace.learn.models.dream.features import FEATURES, FeatureScale
from streamplace.learn.models.dream.graphs import Graphs, padded_orders
from streamplace.learn.models.dream.module import EncoderDecoder, built_module
from streamplace.learn.models.dream.options import OPTIONS, UPSTREAM, AllocatorConfig
from streamplace.learn.parameters import fill
from streamplace.learn.threads import one_thread
from streamplace.model.arrays import Ints, Longs
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem

CELLS = 1 << 12
"""Operators that are decided about in one batch, padding included."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainedPolicy:
    """A policy with trained weights."""

    policy: EncoderDecoder
    config: AllocatorConfig
    scale: FeatureScale

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
    """Policy of a model from a weights file."""
    return loaded(path, _read, model)


def _read(path: Path, model: str) -> TrainedPolicy:
    return trained_from(read_weights(path, model=model, features=FEATURES), spot(path))


def trained_from(weights: Weights, where: str) -> TrainedPolicy:
    """Policy from weights; ``where`` they come from stands in errors."""
    if weights.model not in OPTIONS:
        raise FormatError(
            f"{where}: contains weights of {weights.model!r}, which is not a model of the paper"
        )
    kind = OPTIONS[weights.model]
    config: AllocatorConfig = parsed(kind, weights.document["config"], f"{where}: config")
    with torch.device("meta"):  # no memory for what a config alone asks for
        policy = built_module(config, upstream=weights.model in UPSTREAM)
    fill(policy, weights.tensors, where)
    return TrainedPolicy(
        policy, config, FeatureScale.from_document(weights.document["features"], where)
    )


def greedy_rows(
    policy: EncoderDecoder,
    graphs: Graphs,
    problems: Sequence[Problem],
    order: str,
    some: Selection = ALL,
) -> list[Ints]:
    """Greedy legal placements [N], in operator order, of some problems and their tensors."""
    numbers = np.arange(len(problems))[some]
    placements: dict[int, Ints] = {}
    for part in alike(np.array([problems[i].n_operators for i in numbers])):
        rows = numbers[part]
        orders = [decision_order(problems[i], order) for i in rows]
        steps = torch.from_numpy(padded_orders(orders)).to(graphs.present.device)
        batch = graphs.batch(torch.from_numpy(rows).to(steps.device), steps)
        with torch.no_grad():
            decided = policy.greedy(policy.encode(batch))[:, 0].cpu().numpy()
        for i, by_step, along in zip(rows.tolist(), decided, orders, strict=True):
            row = np.empty(len(along), np.int32)
            row[along] = by_step[: len(along)]
            placements[i] = problems[i].repaired(row)
    return [placements[i] for i in numbers.tolist()]


def alike(sizes: Longs) -> list[Longs]:
    """Rows in batches of like sizes, each of at most `CELLS` operators or one problem."""
    by_size = np.argsort(sizes, kind="stable")
    batches, start = [], 0
    while start < len(by_size):
        end = start + 1
        while end < len(by_size) and (end + 1 - start) * sizes[by_size[end]] <= CELLS:
            end += 1
        batches.append(by_size[start:end])
        start = end
    return batches
