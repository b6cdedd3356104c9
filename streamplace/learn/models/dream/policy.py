"""The DREAM paper's models as policies: samples and their likelihood, and greedy placements."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from streamplace.learn.algorithms.orders import decision_order
from streamplace.learn.constructive.policy import Likelihood, Placements, TrainedConstructor
from streamplace.learn.learner import ALL, Selection
from streamplace.learn.loading import loaded, read_model
from streamplace.learn.models.dream.graphs import (
    FEATURES,
    FeatureScale,
    GraphBatch,
    Graphs,
    padded_orders,
)
from streamplace.learn.models.dream.module import Encoded, EncoderDecoder, built_module
from streamplace.learn.models.dream.options import OPTIONS, UPSTREAM, AllocatorConfig
from streamplace.learn.parameters import fill
from streamplace.model.arrays import Floats, Ints, Longs
from streamplace.model.problem import Problem


@dataclass(frozen=True, slots=True, eq=False)
class OrderedBatch:
    """Problems in the order of decision; an `EncodedBatch` of `constructive.policy`."""

    policy: EncoderDecoder
    batch: GraphBatch
    encoded: Encoded
    orders: Sequence[Longs]

    def drawn(self, samples: int, generator: torch.Generator) -> list[Placements]:
        """Placements [S, N], drawn step by step."""
        by_step = self.policy.decide(self.encoded, samples, generator).cpu().numpy()
        drawn = []
        for order, steps in zip(self.orders, by_step, strict=True):
            placements = np.empty((samples, len(order)), steps.dtype)
            placements[:, order] = steps[:, : len(order)]
            drawn.append(placements)
        return drawn

    def weights(self, samples: int) -> Floats:
        """All samples count the same."""
        return np.ones(samples)

    def likelihood(self, placements: Sequence[Placements]) -> Likelihood:
        """Likelihood of placements, all steps at once."""
        most = max(map(len, placements))
        by_step: Longs = np.zeros((len(placements), most, self.batch.n_operators), np.int64)
        for row, order, given in zip(by_step, self.orders, placements, strict=True):
            row[: len(given), : len(order)] = given[:, order]
        device = self.batch.present.device
        return self.policy.likelihood(
            self.batch, self.encoded, torch.from_numpy(by_step).to(device)
        )


class PreparedTensors:
    """Problems as tensors."""

    def __init__(
        self,
        policy: EncoderDecoder,
        config: AllocatorConfig,
        scale: FeatureScale,
        problems: Sequence[Problem],
    ) -> None:
        self._policy, self._config, self._problems = policy, config, problems
        device = next(policy.parameters()).device
        graphs = Graphs.of(problems, scale, config.devices, config.canonical)
        self._graphs, self._device = graphs.to(device), device

    def encoded(self, rows: Longs, rng: np.random.Generator) -> OrderedBatch:
        """Encode problems, each in an order of its own."""
        orders = [self._order(self._problems[row], rng) for row in rows]
        order = torch.from_numpy(padded_orders(orders)).to(self._device)
        batch = self._graphs.batch(torch.from_numpy(rows).to(self._device), order)
        return OrderedBatch(self._policy, batch, self._policy.encode(batch), orders)

    def greedy(self, rows: Selection = ALL) -> list[Ints]:
        """Likeliest device at every step, legal; problems of like sizes are placed together."""
        numbers = np.arange(len(self._problems))[rows]
        placements: dict[int, Ints] = {}
        sizes = np.array([self._problems[i].n_operators for i in numbers])
        for part in (numbers[each] for each in batches_by_size(sizes)):
            orders = [decision_order(self._problems[i], self._config.order) for i in part]
            steps = torch.from_numpy(padded_orders(orders)).to(self._device)
            batch = self._graphs.batch(torch.from_numpy(part).to(self._device), steps)
            with torch.no_grad():
                encoded = self._policy.encode(batch)
            decided = self._policy.decide(encoded, 1, None)[:, 0].cpu().numpy()
            for i, by_step, along in zip(part.tolist(), decided, orders, strict=True):
                row = np.empty(len(along), np.int32)
                row[along] = by_step[: len(along)]
                placements[i] = self._problems[i].repaired(row)
        return [placements[i] for i in numbers.tolist()]

    def _order(self, problem: Problem, rng: np.random.Generator) -> Longs:
        rank = rng.permutation(problem.n_operators) if self._config.random_ties else None
        return decision_order(problem, self._config.order, rank)


@dataclass(frozen=True, slots=True, eq=False)
class DreamPolicy:
    """A model of the paper with parameters."""

    module: EncoderDecoder
    config: AllocatorConfig
    scale: FeatureScale

    def on(self, problems: Sequence[Problem]) -> PreparedTensors:
        """Prepare problems."""
        return PreparedTensors(self.module, self.config, self.scale, problems)

    def features(self) -> dict[str, Any]:
        """Names and scale of the features."""
        return self.scale.document()


CELLS = 1 << 12
"""Most operators of a batch, padding included."""


@loaded
def trained(path: Path, model: str) -> TrainedConstructor:
    """Policy of a model from a weights file."""
    weights, config, where = read_model(path, model, OPTIONS[model], FEATURES)
    with torch.device("meta"):  # parameters get memory only once the weights fit the options
        module = built_module(config, upstream=model in UPSTREAM)
    fill(module, weights.tensors, where)
    scale = FeatureScale.from_document(weights.document["features"], where)
    settled = config.model_copy(update={"random_ties": False})
    return TrainedConstructor(DreamPolicy(module, settled, scale))


def batches_by_size(sizes: Longs) -> list[Longs]:
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
