"""The DREAM paper's models to be trained, by the learner of all constructive policies."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from streamplace.learn.algorithms.orders import decision_order
from streamplace.learn.constructive.policy import Likelihood, Placements, Rows
from streamplace.learn.learner import ALL
from streamplace.learn.learner import Rows as Some
from streamplace.learn.models.dream.decoder import Encoded
from streamplace.learn.models.dream.features import Scale
from streamplace.learn.models.dream.graphs import GraphBatch, Graphs, padded_orders
from streamplace.learn.models.dream.options import AllocatorConfig
from streamplace.learn.models.dream.placing import greedy_rows
from streamplace.learn.models.dream.policy import Policy
from streamplace.model.arrays import Floats, Ints
from streamplace.model.problem import Problem


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """Problems in the order of decision; see `streamplace.learn.constructive.policy.Attempt`."""

    policy: Policy
    batch: GraphBatch
    encoded: Encoded
    orders: Sequence[Rows]

    def drawn(self, samples: int, generator: torch.Generator) -> list[Placements]:
        """Placements [S, N], drawn step by step."""
        by_step = self.policy.sample(self.encoded, samples, generator).cpu().numpy()
        found = []
        for order, steps in zip(self.orders, by_step, strict=True):
            placements = np.empty((samples, len(order)), steps.dtype)
            placements[:, order] = steps[:, : len(order)]
            found.append(placements)
        return found

    def worth(self, samples: int) -> Floats:
        """All count alike."""
        return np.ones(samples)

    def likelihood(self, placements: Sequence[Placements]) -> Likelihood:
        """Likelihood of placements, all steps at once."""
        most = max(map(len, placements))
        by_step: NDArray[np.int64] = np.zeros(
            (len(placements), most, self.batch.n_operators), np.int64
        )
        for row, order, given in zip(by_step, self.orders, placements, strict=True):
            row[: len(given), : len(order)] = given[:, order]
        device = self.batch.present.device
        return self.policy.likelihood(
            self.batch, self.encoded, torch.from_numpy(by_step).to(device)
        )


class DreamExercises:
    """Problems as tensors."""

    def __init__(
        self, policy: Policy, config: AllocatorConfig, scale: Scale, problems: Sequence[Problem]
    ) -> None:
        self._policy, self._config, self._problems = policy, config, problems
        device = next(policy.parameters()).device
        graphs = Graphs.of(problems, scale, config.devices, config.canonical)
        self._graphs, self._device = graphs.to(device), device

    def attempt(self, rows: Rows, rng: np.random.Generator) -> Decisions:
        """Encode problems, each in an order of its own."""
        orders = [self._order(self._problems[row], rng) for row in rows]
        order = torch.from_numpy(padded_orders(orders)).to(self._device)
        batch = self._graphs.batch(torch.from_numpy(rows).to(self._device), order)
        return Decisions(self._policy, batch, self._policy.encode(batch), orders)

    def greedy(self, rows: Some = ALL) -> list[Ints]:
        """Likeliest device at every step."""
        return greedy_rows(self._policy, self._graphs, self._problems, self._config.order, rows)

    def _order(self, problem: Problem, rng: np.random.Generator) -> Rows:
        """Order of decision, ties at random where the options say so."""
        rank = rng.permutation(problem.n_operators) if self._config.random_ties else None
        return decision_order(problem, self._config.order, rank)


@dataclass(frozen=True, slots=True, eq=False)
class TeachableDream:
    """A model of the paper with parameters."""

    module: Policy
    config: AllocatorConfig
    scale: Scale

    def on(self, problems: Sequence[Problem]) -> DreamExercises:
        """Prepare problems."""
        return DreamExercises(self.module, self.config, self.scale, problems)

    def features(self) -> dict[str, Any]:
        """Names and scale of what it looks at."""
        return self.scale.document()
