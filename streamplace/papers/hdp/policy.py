"""The RNN placer as a constructive policy: problems as sequences of nodes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from streamplace.learn.algorithms.orders import decision_order
from streamplace.learn.config import check_devices
from streamplace.learn.constructive.policy import Likelihood
from streamplace.learn.constructive.recurrence import one_hot
from streamplace.learn.learner import ALL, Selection
from streamplace.model.arrays import Ints
from streamplace.model.problem import Problem
from streamplace.papers.groups import Trait
from streamplace.papers.groups.nodes import Nodes
from streamplace.papers.groups.placing import TraitPolicy, placed_in_batches
from streamplace.papers.groups.traits import Traits
from streamplace.papers.hdp.model import HdpConfig
from streamplace.papers.hdp.module import HdpModule, ReadSequences, Sequences

TRAITS: tuple[Trait, ...] = ("kind", "output", "work", "neighbours")
BATCH = 64
"""Problems that are placed at once."""


@dataclass(frozen=True, slots=True, eq=False)
class EncodedSequences:
    """Encoded sequences; see `streamplace.learn.constructive.policy.EncodedBatch`."""

    module: HdpModule
    read: ReadSequences
    place: Tensor  # [G, N] decision about an operator
    first: Tensor  # [G, V] first operator of the node that a decision is about

    @property
    def costs(self) -> None:
        """No problem is made for a batch alone."""

    @property
    def order(self) -> Tensor:
        """Operators, those of one node together."""
        return self.place.argsort(dim=1, stable=True)

    def drawn(self, samples: int, keys: Tensor | None) -> Tensor:
        """Placements [G, S, N], drawn node by node, or without keys the likeliest."""
        decided = self.module.decide(self.read, samples, keys)
        end = torch.zeros_like(decided[:, :, :1])  # the decision about padding
        where = self.place[:, None].expand(-1, samples, -1)
        return torch.cat([decided, end], dim=2).gather(2, where)

    def weights(self, samples: int) -> Tensor:
        """All samples count the same."""
        return torch.ones(samples, dtype=torch.float64, device=self.place.device)

    def likelihood(self, placements: Tensor) -> Likelihood:
        """Likelihood of placements, all steps at once."""
        devices = self.read.nodes.open.shape[2]
        first = self.first[:, None].expand(-1, placements.shape[1], -1)
        decided = placements.gather(2, first) * self.read.nodes.present[:, None]
        each = self.module.log_probabilities(self.read, decided)
        taken = (each * one_hot(decided, devices)).sum((2, 3))
        spread = -(each.exp() * each).sum((2, 3)) / self.read.nodes.present.sum(1)[:, None]
        return Likelihood(taken, spread)


class PreparedSequences:
    """Problems as sequences of nodes, in the order of the nodes' first operators."""

    def __init__(self, module: HdpModule, traits: Traits, problems: Sequence[Problem]) -> None:
        self._module, self._problems, config = module, problems, module.config
        parts = [Nodes.at_most(problem, config.groups) for problem in problems]
        self.sizes = np.array([[part.n_nodes, len(part.label)] for part in parts])
        p, (v, n) = len(parts), self.sizes.max(axis=0)
        features = np.zeros((p, v, len(traits.names)), np.float32)
        opened, present = np.zeros((p, v, config.devices), bool), np.zeros((p, v), bool)
        opened[:, :, 0] = True
        place, first = np.full((p, n), v), np.zeros((p, v), np.int64)
        for i, (problem, nodes) in enumerate(zip(problems, parts, strict=True)):
            check_devices(problem, config.devices)
            along = nodes.label[decision_order(problem, config.order)]
            order = np.array(list(dict.fromkeys(along.tolist())))
            size = len(order)
            features[i, :size], present[i, :size] = traits.rows(nodes)[order], True
            opened[i, :size] = False
            opened[i, :size, : problem.n_devices] = nodes.allowed[order]
            place[i, : len(along)] = np.argsort(order)[nodes.label]
            first[i, :size] = nodes.first[order]
        self._device = next(module.parameters()).device
        arrays = (features, present, opened, place, first)
        self._columns = [torch.from_numpy(array).to(self._device) for array in arrays]

    def encoded(self, rows: Tensor, n: int, keys: Tensor) -> EncodedSequences:
        """Encode problems."""
        features, present, opened, place, first = (column[rows] for column in self._columns)
        v = min(n, present.shape[1])
        nodes = Sequences(features[:, :v], present[:, :v], opened[:, :v])
        read = self._module.encode(nodes)
        return EncodedSequences(self._module, read, place[:, :n].clamp(max=v), first[:, :v])

    def greedy(self, rows: Selection = ALL) -> list[Ints]:
        """Likeliest device, node by node."""

        def drawn(some: Sequence[int]) -> Tensor:
            numbers = torch.tensor(some, device=self._device)
            n = int(self.sizes[some, 1].max())
            return self.encoded(numbers, n, numbers).drawn(1, None)

        return placed_in_batches(self._problems, rows, BATCH, drawn)


def traits_of(problems: Sequence[Problem], config: HdpConfig) -> Traits:
    """Traits of a training set."""
    nodes = [Nodes.at_most(problem, config.groups) for problem in problems]
    return Traits.of(nodes, TRAITS, places=config.groups)


def build(traits: Traits, config: HdpConfig) -> TraitPolicy:
    """Build the placer with fresh parameters from torch's generator."""
    return TraitPolicy(HdpModule(len(traits.names), config), traits, PreparedSequences)
