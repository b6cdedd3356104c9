"""The RNN placer as a constructive policy: problems as sequences of nodes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from streamplace.learn.algorithms.orders import decision_order
from streamplace.learn.config import check_devices
from streamplace.learn.constructive.policy import Likelihood, Placements
from streamplace.learn.constructive.recurrence import one_hot
from streamplace.learn.learner import ALL, Selection
from streamplace.model.arrays import Bools, Floats, Ints, Longs
from streamplace.model.problem import Problem
from streamplace.papers.groups.nodes import Nodes
from streamplace.papers.groups.options import Trait
from streamplace.papers.groups.placing import TraitPolicy, placed_in_batches
from streamplace.papers.groups.traits import Traits
from streamplace.papers.hdp.module import HdpModule, ReadSequences, Sequences
from streamplace.papers.hdp.options import HdpConfig

TRAITS: tuple[Trait, ...] = ("kind", "output", "work", "neighbours")
BATCH = 64
"""Problems that are placed at once."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeSequence:
    """A problem as a sequence of nodes."""

    nodes: Nodes
    order: Longs  # [V] nodes in the order of decision
    features: Floats  # [V, F] in this order
    open: Bools  # [V, D]

    @classmethod
    def of(cls, problem: Problem, traits: Traits, config: HdpConfig) -> "NodeSequence":
        """Nodes in the order of their first operators."""
        check_devices(problem, config.devices)
        nodes = Nodes.at_most(problem, config.groups)
        along = nodes.label[decision_order(problem, config.order)]
        order = np.array(list(dict.fromkeys(along.tolist())))
        opened = np.zeros((nodes.n_nodes, config.devices), bool)
        opened[:, : problem.n_devices] = nodes.allowed[order]
        return cls(nodes, order, traits.rows(nodes)[order], opened)

    def placements(self, decided: NDArray[Any]) -> Placements:
        """Placements [S, N] of operators from devices [S, V] in the order of decision."""
        by_node = np.empty_like(decided)
        by_node[:, self.order] = decided
        return by_node[:, self.nodes.label]

    def decisions(self, placements: Placements) -> NDArray[Any]:
        """Devices [S, V] in the order of decision: those of the nodes' first operators."""
        return placements[:, self.nodes.first[self.order]]


@dataclass(frozen=True, slots=True, eq=False)
class EncodedSequences:
    """Encoded sequences; see `streamplace.learn.constructive.policy.EncodedBatch`."""

    module: HdpModule
    parts: Sequence[NodeSequence]
    read: ReadSequences

    @property
    def orders(self) -> list[Longs]:
        """Operators, those of one node together."""
        return [np.argsort(np.argsort(p.order)[p.nodes.label], kind="stable") for p in self.parts]

    def drawn(self, samples: int, generator: torch.Generator | None) -> list[Placements]:
        """Placements [S, N], drawn node by node."""
        decided = self.module.decide(self.read, samples, generator).cpu().numpy()
        return [
            part.placements(rows[:, : len(part.order)])
            for part, rows in zip(self.parts, decided, strict=True)
        ]

    def weights(self, samples: int) -> Floats:
        """All samples count the same."""
        return np.ones(samples)

    def likelihood(self, placements: Sequence[Placements]) -> Likelihood:
        """Likelihood of placements, all steps at once."""
        graphs, n, devices = self.read.nodes.open.shape
        chosen = np.zeros((graphs, max(map(len, placements)), n), np.int64)
        for row, part, given in zip(chosen, self.parts, placements, strict=True):
            row[: len(given), : len(part.order)] = part.decisions(given)
        decided = torch.from_numpy(chosen).to(self.read.start.device)
        each = self.module.log_probabilities(self.read, decided)
        taken = (each * one_hot(decided, devices)).sum((2, 3))
        spread = -(each.exp() * each).sum((2, 3)) / self.read.nodes.present.sum(1)[:, None]
        return Likelihood(taken, spread)


class PreparedSequences:
    """Problems as sequences."""

    def __init__(self, module: HdpModule, traits: Traits, problems: Sequence[Problem]) -> None:
        self._module, self._problems = module, problems
        self._parts = [NodeSequence.of(problem, traits, module.config) for problem in problems]

    def encoded(self, rows: Longs, rng: np.random.Generator) -> EncodedSequences:
        """Encode problems."""
        return self._encoded([self._parts[row] for row in rows.tolist()])

    def greedy(self, rows: Selection = ALL) -> list[Ints]:
        """Likeliest device, node by node."""

        def drawn(some: Sequence[int]) -> list[Placements]:
            return self._encoded([self._parts[i] for i in some]).drawn(1, None)

        return placed_in_batches(self._problems, rows, BATCH, drawn)

    def _encoded(self, parts: Sequence[NodeSequence]) -> EncodedSequences:
        most = max(len(part.order) for part in parts)
        features = np.zeros((len(parts), most, parts[0].features.shape[1]), np.float32)
        opened = np.zeros((len(parts), most, self._module.config.devices), bool)
        present = np.zeros((len(parts), most), bool)
        opened[:, :, 0] = True
        for i, part in enumerate(parts):
            n = len(part.order)
            features[i, :n], opened[i, :n], present[i, :n] = part.features, part.open, True
        device = next(self._module.parameters()).device
        arrays = (features, present, opened)
        nodes = Sequences(*(torch.from_numpy(array).to(device) for array in arrays))
        return EncodedSequences(self._module, parts, self._module.encode(nodes))


def traits_of(problems: Sequence[Problem], config: HdpConfig) -> Traits:
    """Traits of a training set."""
    nodes = [Nodes.at_most(problem, config.groups) for problem in problems]
    return Traits.of(nodes, TRAITS, places=config.groups)


def build(traits: Traits, config: HdpConfig) -> TraitPolicy:
    """Build the placer with fresh parameters from torch's generator."""
    return TraitPolicy(HdpModule(len(traits.names), config), traits, PreparedSequences)
