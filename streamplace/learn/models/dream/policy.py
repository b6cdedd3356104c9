"""The DREAM paper's models as constructive policies."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from streamplace.learn.algorithms.orders import decision_order
from streamplace.learn.constructive.policy import Likelihood, Placements
from streamplace.learn.learner import ALL, Selection
from streamplace.learn.models.dream.decoder import Encoded
from streamplace.learn.models.dream.features import FeatureScale
from streamplace.learn.models.dream.graphs import GraphBatch, Graphs, padded_orders
from streamplace.learn.models.dream.module import EncoderDecoder
from streamplace.learn.models.dream.options import AllocatorConfig
from streamplace.learn.models.dream.placing import greedy_rows
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
        by_step = self.policy.sample(self.encoded, samples, generator).cpu().numpy()
        drawn = []
        for order, steps in zip(self.orders, by_step, strict=True):
            placements = np.empty((samples, len(order)), steps.dtype)
            placements[:, order] = steps[:, : len(order)]
            drawn.append(placements)
        return drawn

    def worth(self, samples: int) -> Floats:
        """All count alike."""
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
        """Likeliest device at every step."""
        return greedy_rows(self._policy, self._graphs, self._problems, self._config.order, rows)

    def _order(self, problem: Problem, rng: np.random.Generator) -> Longs:
        """Order of decision, ties at random where the options say so."""
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
        """Names and scale of what it looks at."""
        return self.scale.document()
