"""The DREAM paper's models as policies: samples and their likelihood, and greedy placements."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from streamplace.learn.algorithms.orders import decision_order
from streamplace.learn.constructive.policy import ConstructivePolicy, EncodedBatch, Likelihood
from streamplace.learn.constructive.reinforce import ConstructiveLearner
from streamplace.learn.learner import ALL, Selection
from streamplace.learn.model_weights import loaded, read_model
from streamplace.learn.models.dream import AllocatorConfig
from streamplace.learn.models.dream.graphs import GraphBatch, Graphs, OperatorScale, padded_orders
from streamplace.learn.models.dream.network import EncoderDecoder, built_module
from streamplace.learn.models.dream.prefixes import PrefixTree
from streamplace.learn.parameters import fill
from streamplace.learn.registry import MODELS, LearningTask
from streamplace.learn.tensors.draws import below, uniform
from streamplace.model.arrays import Ints, Longs
from streamplace.model.problem import Problem


@dataclass(frozen=True, slots=True, eq=False)
class OrderedBatch(EncodedBatch):
    """Problems in the order of decision."""

    batch: GraphBatch
    tree: PrefixTree

    @property
    def order(self) -> Tensor:
        """Operators [G, N] in the order of decision."""
        return self.batch.order

    def drawn(self, samples: int, keys: Tensor) -> Tensor:
        """Placements [G, S, N], drawn step by step."""
        by_step = self.tree.decide(samples, keys)
        return by_step.gather(2, self.order.argsort(1)[:, None].expand_as(by_step))

    def likelihood(self, placements: Tensor) -> Likelihood:
        """Likelihood of placements, all steps at once."""
        by_step = placements.gather(2, self.order[:, None].expand_as(placements))
        return self.tree.likelihood(by_step)


class PreparedTensors:
    """Problems as tensors."""

    def __init__(
        self,
        config: AllocatorConfig,
        policy: EncoderDecoder,
        scale: OperatorScale,
        problems: Sequence[Problem],
    ) -> None:
        self._policy, self._config, self._problems = policy, config, problems
        self._order = "topological" if config.device_state else "bfs"
        self._graphs = Graphs.of(problems, scale, config)

    @cached_property
    def _orders(self) -> Tensor:
        """Orders of decision of every problem [P, K, N], each with other ties."""
        most, rng = self._graphs.present.shape[1], np.random.default_rng(0)
        count = ORDERS if self._config.random_ties else 1
        orders = np.tile(np.arange(most, dtype=np.int16), (len(self._problems), count, 1))
        for rows, problem in zip(orders, self._problems, strict=True):
            n = problem.n_operators
            for row in rows:
                rank = rng.permutation(n) if self._config.random_ties else None
                row[:n] = decision_order(problem, self._order, rank)
        return torch.from_numpy(orders)

    def encoded(self, rows: Tensor, n: int, keys: Tensor) -> OrderedBatch:
        """Encode problems, each in an order of its own."""
        orders = self._orders[rows, :, :n]
        number = torch.full_like(keys, orders.shape[1])
        chosen = below(uniform(keys), number)[:, None, None].expand(-1, 1, n)
        return self._encoded(rows, orders.gather(1, chosen)[:, 0].long())

    def greedy(self, rows: Selection = ALL) -> list[Ints]:
        """Likeliest device at every step, legal; problems of like sizes are placed together."""
        numbers = np.arange(len(self._problems))[rows]
        placements: dict[int, Ints] = {}
        sizes = np.array([self._problems[i].n_operators for i in numbers])
        for part in (numbers[each] for each in batches_by_size(sizes)):
            orders = [decision_order(self._problems[i], self._order) for i in part]
            steps = torch.from_numpy(padded_orders(orders))
            with torch.no_grad():
                batch = self._encoded(torch.from_numpy(part), steps)
            decided = batch.tree.decide(1, None)[:, 0].numpy()
            for i, by_step, along in zip(part.tolist(), decided, orders, strict=True):
                row = np.empty(len(along), np.int32)
                row[along] = by_step[: len(along)]
                placements[i] = self._problems[i].repaired(row)
        return [placements[i] for i in numbers.tolist()]

    def _encoded(self, rows: Tensor, order: Tensor) -> OrderedBatch:
        batch = self._graphs.batch(rows, order)
        return OrderedBatch(batch, self._policy.encode(batch))


ORDERS = 16
"""Orders of decision of a training problem, among which every step chooses."""
CELLS = 1 << 12
"""Most operators of a batch, padding included."""


def learner_of(model: str, task: LearningTask, config: AllocatorConfig) -> ConstructiveLearner:
    """Learner with the scale of the weights that training begins from, or of the training set."""
    if task.features is None:
        scale = OperatorScale.of(task.training, config.features)
    else:
        start = "the weights to begin from"
        scale = OperatorScale.read(task.features, config.features, start)
    module = built_module(model, config)
    policy = ConstructivePolicy(module, scale, partial(PreparedTensors, config))
    return ConstructiveLearner(task, config, policy)


@loaded
def trained(path: Path, model: str) -> ConstructivePolicy:
    """Policy of a model from a weights file."""
    kind: Any = MODELS[model].config
    weights, config, where = read_model(path, model, kind)
    with torch.device("meta"):  # parameters get memory only once the weights fit the options
        module = built_module(model, config)
    fill(module, weights.tensors, where)
    scale = OperatorScale.read(weights.document["features"], config.features, where)
    settled = config.model_copy(update={"random_ties": False})
    return ConstructivePolicy(module, scale, partial(PreparedTensors, settled))


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
