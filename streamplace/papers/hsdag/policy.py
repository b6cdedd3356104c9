"""HSDAG as a constructive policy: problems as graphs side by side."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from streamplace.learn.config import check_devices
from streamplace.learn.constructive.policy import Likelihood, Placements
from streamplace.learn.learner import ALL, Selection
from streamplace.model.arrays import Bools, Floats, Ints, Longs
from streamplace.model.problem import Problem
from streamplace.papers.groups.nodes import Nodes
from streamplace.papers.groups.placing import TraitPolicy, placed_in_batches
from streamplace.papers.groups.traits import Traits
from streamplace.papers.hsdag.module import GraphsSideBySide, GroupingRound, HsdagModule
from streamplace.papers.hsdag.options import HsdagConfig

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

    Sample s of a problem is drawn in round s modulo T.
    """

    config: HsdagConfig
    parts: Sequence[DescribedNodes]
    start: Longs  # [G + 1] first node of every problem
    rounds: Sequence[GroupingRound]  # T

    @property
    def orders(self) -> list[Longs]:
        """Row order, since all operators are placed at once."""
        return [np.arange(part.nodes.problem.n_operators) for part in self.parts]

    def drawn(self, samples: int, generator: torch.Generator | None) -> list[Placements]:
        """Placements [S, N], drawn group by group, or without a generator the likeliest."""
        by_node = np.empty((samples, self.start[-1]), np.int64)
        for t, now in enumerate(self.rounds):
            mine = by_node[t :: len(self.rounds)]
            log_p = now.log_p.detach().expand(len(mine), -1, -1)
            if generator is not None:  # the largest of log p + Gumbel noise is a draw from p
                noise = torch.empty_like(log_p, memory_format=torch.contiguous_format)
                log_p = log_p - noise.exponential_(generator=generator).log_()
            mine[:] = log_p.argmax(-1)[:, now.group].cpu().numpy()
        return [
            by_node[:, a:b][:, part.nodes.label]
            for part, a, b in zip(self.parts, self.start[:-1], self.start[1:], strict=True)
        ]

    def weights(self, samples: int) -> Floats:
        """γ^t of the round t of every sample (equation 14)."""
        return np.asarray(self.config.discount ** (np.arange(samples) % len(self.rounds)))

    def likelihood(self, placements: Sequence[Placements]) -> Likelihood:
        """Likelihood of placements, each in its round: that of its groups' devices."""
        chosen = np.concatenate(
            [p[:, part.nodes.first] for p, part in zip(placements, self.parts, strict=True)], axis=1
        )
        device, samples = self.rounds[0].log_p.device, len(chosen)
        by_node = torch.from_numpy(chosen).to(device)
        size = samples, len(self.parts)
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

    def encoded(self, rows: Longs, rng: np.random.Generator) -> GroupingRounds:
        """Run an episode, in which every round joins groups along another part of the streams."""
        config = self._module.config
        parts = [self._parts[row] for row in rows.tolist()]
        size = config.rounds, sum(part.nodes.edges.shape[1] for part in parts)
        return self._rounds(parts, rng.random(size) >= config.dropout)

    def greedy(self, rows: Selection = ALL) -> list[Ints]:
        """Likeliest device of every group of the last round."""

        def drawn(some: Sequence[int]) -> list[Placements]:
            parts = [self._parts[i] for i in some]
            size = self._module.config.rounds, sum(p.nodes.edges.shape[1] for p in parts)
            return self._rounds(parts, np.ones(size, bool)).drawn(size[0], None)

        return placed_in_batches(self._problems, rows, BATCH, drawn)

    def _rounds(self, parts: Sequence[DescribedNodes], present: Bools) -> GroupingRounds:
        """Rounds in which edges of the parts side by side are present [T, E]."""
        start = np.concatenate([[0], np.cumsum([part.nodes.n_nodes for part in parts])])
        opened = np.zeros((start[-1], self._module.config.devices), bool)
        for part, a, b in zip(parts, start[:-1], start[1:], strict=True):
            opened[a:b, : part.nodes.problem.n_devices] = part.nodes.allowed
        edges = [part.nodes.edges + a for part, a in zip(parts, start[:-1], strict=True)]
        arrays = (
            np.concatenate([part.features for part in parts]).astype(np.float32),
            np.repeat(np.arange(len(parts)), np.diff(start)),
            np.concatenate(edges, axis=1),
            opened,
        )
        device = next(self._module.parameters()).device
        graphs = GraphsSideBySide(*(torch.from_numpy(array).to(device) for array in arrays))
        there = [torch.from_numpy(row).to(device) for row in present]
        return GroupingRounds(self._module.config, parts, start, self._module.rounds(graphs, there))


def traits_of(problems: Sequence[Problem], config: HsdagConfig) -> Traits:
    """Traits of a training set."""
    return Traits.of([Nodes.units(problem) for problem in problems], config.traits)


def build(traits: Traits, config: HsdagConfig) -> TraitPolicy:
    """Build the policy with fresh parameters from torch's generator."""
    return TraitPolicy(HsdagModule(len(traits.names), config), traits, PreparedGraphs)
