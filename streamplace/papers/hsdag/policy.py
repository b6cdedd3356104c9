"""HSDAG as a constructive policy: problems as graphs side by side."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from streamplace.learn.config import check_devices
from streamplace.learn.constructive.policy import Likelihood
from streamplace.learn.learner import ALL, Selection
from streamplace.learn.tensors.draws import child, children, gumbel, uniform
from streamplace.model.arrays import Floats, Ints
from streamplace.model.problem import Problem
from streamplace.papers.groups.nodes import Nodes
from streamplace.papers.groups.placing import TraitPolicy, placed_in_batches
from streamplace.papers.groups.traits import Traits
from streamplace.papers.hsdag.model import HsdagConfig
from streamplace.papers.hsdag.module import GraphsSideBySide, GroupingRound, HsdagModule

BATCH = 256
"""Problems that are placed at once."""


@dataclass(frozen=True, slots=True, eq=False)
class DescribedNodes:
    """A problem's nodes with their features."""

    nodes: Nodes
    features: Floats  # [V, F]

    @classmethod
    def of(cls, problem: Problem, traits: Traits, config: HsdagConfig) -> "DescribedNodes":
        """Units of a problem that has few enough devices."""
        check_devices(problem, config.devices)
        nodes = Nodes.units(problem)
        return cls(nodes, traits.rows(nodes))


@dataclass(frozen=True, slots=True, eq=False)
class GroupingRounds:
    """Rounds through some problems; see `streamplace.learn.constructive.policy.EncodedBatch`.

    Sample s of a problem is drawn in round s modulo T. All operators are placed at once.
    """

    config: HsdagConfig
    order: Tensor  # [G, N] operators by row
    node: Tensor  # [G, N] node of an operator; for padding, the number of nodes
    owner: Tensor  # [V] problem of a node
    place: Tensor  # [V] place of a node among those of its problem
    first: Tensor  # [V] first operator of a node
    rounds: Sequence[GroupingRound]  # T

    @property
    def costs(self) -> None:
        """No problem is made for a batch alone."""

    def drawn(self, samples: int, keys: Tensor | None) -> Tensor:
        """Placements [G, S, N], drawn group by group, or without keys the likeliest."""
        by_node = self.node.new_zeros(samples, len(self.owner) + 1)
        of_rounds = [] if keys is None else children(keys, len(self.rounds))
        for t, now in enumerate(self.rounds):
            mine = range(t, samples, len(self.rounds))
            log_p = now.log_p.detach().expand(len(mine), -1, -1)
            if of_rounds:  # of a group, those of its first node
                first = child(of_rounds[t][now.owner], self.place[now.first])
                log_p = log_p + gumbel(first, len(mine), log_p.shape[2]).transpose(0, 1)
            by_node[t :: len(self.rounds), :-1] = log_p.argmax(-1)[:, now.group]
        return by_node[:, self.node].transpose(0, 1)

    def weights(self, samples: int) -> Tensor:
        """γ^t of the round t of every sample (equation 14)."""
        number = torch.arange(samples, device=self.node.device) % len(self.rounds)
        return self.config.discount ** number.double()

    def likelihood(self, placements: Tensor) -> Likelihood:
        """Likelihood of placements, each in its round: that of its groups' devices."""
        by_node = placements[self.owner, :, self.first].t()
        samples, graphs, device = len(by_node), len(placements), placements.device
        size = samples, graphs
        taken, spread = torch.zeros(size, device=device), torch.zeros(size, device=device)
        for t, now in enumerate(self.rounds):
            rows = torch.arange(t, samples, len(self.rounds), device=device)
            each = now.log_p.expand(len(rows), -1, -1)
            of_group = each.gather(2, by_node[rows][:, now.first, None]).squeeze(2)
            by_graph = torch.zeros(len(rows), size[1], device=device)
            taken = taken.index_add(0, rows, by_graph.index_add(1, now.owner, of_group))
            entropy_terms = -(now.log_p.exp() * now.log_p).sum(1).expand(len(rows), -1)
            mean = by_graph.index_add(1, now.owner, entropy_terms) / torch.bincount(now.owner)
            spread = spread.index_add(0, rows, mean)
        return Likelihood(taken.t(), spread.t())


class PreparedGraphs:
    """Problems, prepared as nodes with features."""

    def __init__(self, module: HsdagModule, traits: Traits, problems: Sequence[Problem]) -> None:
        self._module, self._problems = module, problems
        self._parts = [DescribedNodes.of(problem, traits, module.config) for problem in problems]

    def encoded(self, rows: Tensor, n: int, keys: Tensor) -> GroupingRounds:
        """Run an episode, in which every round joins groups along another part of the streams."""
        config = self._module.config
        parts = [self._parts[row] for row in rows.tolist()]
        most = max(part.nodes.edges.shape[1] for part in parts)
        kept = uniform(keys, config.rounds, most) >= config.dropout
        there = [one[:, : part.nodes.edges.shape[1]] for one, part in zip(kept, parts, strict=True)]
        return self._rounds(parts, n, torch.cat(there, dim=1))

    def greedy(self, rows: Selection = ALL) -> list[Ints]:
        """Likeliest device of every group of the last round."""

        def drawn(some: Sequence[int]) -> Tensor:
            parts = [self._parts[i] for i in some]
            size = self._module.config.rounds, sum(p.nodes.edges.shape[1] for p in parts)
            n = max(len(part.nodes.label) for part in parts)
            return self._rounds(parts, n, torch.ones(size, dtype=torch.bool)).drawn(size[0], None)

        return placed_in_batches(self._problems, rows, BATCH, drawn)

    def _rounds(self, parts: Sequence[DescribedNodes], n: int, present: Tensor) -> GroupingRounds:
        """Rounds in which edges of the parts side by side are present [T, E]."""
        start = np.concatenate([[0], np.cumsum([part.nodes.n_nodes for part in parts])])
        opened = np.zeros((start[-1], self._module.config.devices), bool)
        node = np.full((len(parts), n), start[-1])
        for row, part, a, b in zip(node, parts, start[:-1], start[1:], strict=True):
            opened[a:b, : part.nodes.problem.n_devices] = part.nodes.allowed
            row[: len(part.nodes.label)] = part.nodes.label + a
        edges = [part.nodes.edges + a for part, a in zip(parts, start[:-1], strict=True)]
        owner = np.repeat(np.arange(len(parts)), np.diff(start))
        device = next(self._module.parameters()).device
        features, owners, pairs, open_devices, nodes, place, first = (
            torch.from_numpy(array).to(device)
            for array in (
                np.concatenate([part.features for part in parts]).astype(np.float32),
                owner,
                np.concatenate(edges, axis=1),
                opened,
                node,
                np.arange(start[-1]) - start[owner],
                np.concatenate([part.nodes.first for part in parts]),
            )
        )
        graphs = GraphsSideBySide(features, owners, pairs, open_devices)
        rounds = self._module.rounds(graphs, list(present.to(device)))
        order = torch.arange(n, device=device).expand(len(parts), -1)
        return GroupingRounds(self._module.config, order, nodes, owners, place, first, rounds)


def traits_of(problems: Sequence[Problem], config: HsdagConfig) -> Traits:
    """Traits of a training set."""
    return Traits.of([Nodes.units(problem) for problem in problems], config.traits)


def build(traits: Traits, config: HsdagConfig) -> TraitPolicy:
    """Build the policy with fresh parameters from torch's generator."""
    return TraitPolicy(HsdagModule(len(traits.names), config), traits, PreparedGraphs)
