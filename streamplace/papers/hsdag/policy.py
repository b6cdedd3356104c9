"""HSDAG in torch: graphs side by side, encoded, grouped and placed round after round.

Shapes: V nodes of G graphs side by side, E edges (v, u) from v to u, C groups, W width, D devices,
F features.

    h      = MLP(x)                                                     before the first round
    Z      = ReLU(D̂^(-1/2) Â D̂^(-1/2) · norm(h) · W)  with Â = A + I, D̂ its row sums  (equation 6)
    S_vu   = σ(φ(z_v ⊙ z_u))  for every edge                                           (equation 7)
    groups = components of the best edges of all nodes                           (equations 9, 10)
    z'_c   = mean over nodes v of group c of  S(best edge of v) · z_v
    P(d_c) = softmax over open devices of MLP(z'_c)
    h_v    = h_v + z'_(group of v)                                              after every round

If ``coarsened``, the groups then are the nodes (lines 11 and 12 of algorithm 1), with the mean of
their nodes' h and the edges A' between them (equation 11).

The paper does not say how pooling lets gradients reach φ; here a node counts as much as the edge
that it keeps, and one without edges fully. The norm without parameters keeps the sum of twenty
rounds from growing without limit.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm, pad

from streamplace.learn.config import check_devices
from streamplace.learn.constructive.policy import CLOSED, ConstructivePolicy, Likelihood
from streamplace.learn.learner import ALL, Selection
from streamplace.learn.tensors.draws import child, children, gumbel, uniform
from streamplace.model.arrays import Ints
from streamplace.model.problem import Problem
from streamplace.papers.groups.nodes import Nodes, Traits
from streamplace.papers.groups.placing import placed_in_batches
from streamplace.papers.hsdag import HOPS, HsdagConfig

BATCH = 256
"""Problems that are placed at once."""


@dataclass(frozen=True, eq=False)
class GraphsSideBySide:
    """G graphs side by side."""

    features: Tensor  # [V, F]
    owner: Tensor  # [V] graph of every node
    edges: Tensor  # [2, E]
    units: Tensor  # [V] units of a node: one, or those of a group
    open: Tensor  # [V, D] how many of its units may use a device

    @cached_property
    def degree(self) -> Tensor:
        """[V] edges out of a node, and itself."""
        source = self.edges[0]
        return torch.ones(len(self.owner)).index_add(0, source, torch.ones(len(source)))


@dataclass(frozen=True, slots=True, eq=False)
class GroupingRound:
    """Result of one round."""

    group: Tensor  # [V]
    first: Tensor  # [C] first node of every group
    owner: Tensor  # [C] graph of every group
    log_p: Tensor  # [C, D]


class HsdagModule(nn.Module):
    """The policy."""

    def __init__(self, features: int, config: HsdagConfig) -> None:
        super().__init__()
        width = config.width
        self.config = config
        self.enter = two_layers(features, width, width)
        self.hops = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(HOPS))
        self.score = two_layers(width, width, 1)
        self.place = two_layers(width, width, config.devices)

    def rounds(self, graphs: GraphsSideBySide, present: list[Tensor]) -> list[GroupingRound]:
        """Run an episode; in each round only the present edges [E] can join nodes."""
        h, rounds = self.enter(graphs.features), []
        node = first = torch.arange(len(graphs.owner))  # node of a unit, first unit of a node
        stands_for = torch.arange(graphs.edges.shape[1])  # an edge of units for every edge
        for there in present:
            z = self.encoded(graphs, h)
            now, pooled = self._round(graphs, z, graphs.edges[:, there[stands_for]])
            rounds.append(replace(now, group=now.group[node], first=first[now.first]))
            h = h + pooled[now.group]
            if self.config.coarsened:
                h = h.new_zeros(pooled.shape).index_add(0, now.group, h)
                h = h / torch.bincount(now.group)[:, None]
                node, first = now.group[node], first[now.first]
                graphs, kept = of_groups(graphs, now)
                stands_for = stands_for[kept]
        return rounds

    def encoded(self, graphs: GraphsSideBySide, h: Tensor) -> Tensor:
        """Z [V, W] of states h [V, W]."""
        (source, target), scale = graphs.edges, graphs.degree.rsqrt()[:, None]
        z = layer_norm(h, h.shape[1:])
        for hop in self.hops:
            sent = scale * hop(z)
            z = torch.relu(scale * sent.index_add(0, source, sent[target]))
        return z

    def _round(
        self, graphs: GraphsSideBySide, z: Tensor, edges: Tensor
    ) -> tuple[GroupingRound, Tensor]:
        """A round on embeddings [V, W], and the groups' embeddings [C, W]."""
        scores = torch.sigmoid(self.score(z[edges[0]] * z[edges[1]]).squeeze(1))
        edge, group = parse(edges, scores.detach(), len(z))
        weight = pad(scores, (0, 1), value=1.0)[edge]
        count = torch.bincount(group)
        pooled = z.new_zeros(len(count), z.shape[1]).index_add(0, group, weight[:, None] * z)
        pooled = pooled / count[:, None]
        first = torch.full_like(count, len(z)).scatter_reduce(
            0, group, torch.arange(len(z)), "amin"
        )
        units, able = _open(graphs, group, len(count))
        together = able == units[:, None]
        may = torch.where(together.any(1, keepdim=True), together, able > 0)
        logits = self.place(pooled).masked_fill(~may, CLOSED)
        return GroupingRound(group, first, graphs.owner[first], logits.log_softmax(-1)), pooled


def of_groups(graphs: GraphsSideBySide, now: GroupingRound) -> tuple[GraphsSideBySide, Tensor]:
    """Graphs of the groups of a round, without loops, and an old edge for each of their edges."""
    ends, count = now.group[graphs.edges], len(now.first)
    apart = (ends[0] != ends[1]).nonzero()[:, 0]
    numbers = (ends[0] * count + ends[1])[apart]
    pairs, number = numbers.unique(return_inverse=True)  # type: ignore[no-untyped-call]
    kept = torch.full_like(pairs, len(ends[0])).scatter_reduce(0, number, apart, "amin")
    units, able = _open(graphs, now.group, count)
    return replace(graphs, owner=now.owner, edges=ends[:, kept], units=units, open=able), kept


def two_layers(n_in: int, width: int, n_out: int) -> nn.Sequential:
    """Build a perceptron with one hidden layer."""
    return nn.Sequential(nn.Linear(n_in, width), nn.ReLU(), nn.Linear(width, n_out))


def _open(graphs: GraphsSideBySide, group: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Units [C] of so many groups, and how many of them [C, D] may use a device."""
    units = graphs.units.new_zeros(count).index_add(0, group, graphs.units)
    able = graphs.open.new_zeros(count, graphs.open.shape[1]).index_add(0, group, graphs.open)
    return units, able


class Parsed(NamedTuple):
    """Groups of nodes."""

    edge: Tensor  # [V] edge of the highest score at every node, E where it has none
    group: Tensor  # [V] group of every node, numbered by first node


def parse(edges: Tensor, scores: Tensor, n_nodes: int) -> Parsed:
    """Groups of nodes that are connected by the edges [2, E] that some node keeps (equation 9).

    Every node keeps the edge of the highest score among those that touch it, of equals the first.
    So a node with an edge is never alone in its group.

    >>> edges, scores = torch.tensor([[0, 1, 2], [1, 2, 3]]), torch.tensor([0.9, 0.1, 0.4])
    >>> [column.tolist() for column in parse(edges, scores, 5)]
    [[0, 0, 2, 2, 3], [0, 0, 1, 1, 2]]
    """
    ends, both, n_edges = edges.flatten(), scores.repeat(2), len(scores)
    node, number = (torch.arange(n, device=edges.device) for n in (n_nodes, n_edges))
    best = scores.new_full((n_nodes,), -torch.inf).scatter_reduce(0, ends, both, "amax")
    first = number.repeat(2).masked_fill(both < best[ends], n_edges)
    edge = torch.full_like(node, n_edges).scatter_reduce(0, ends, first, "amin")
    # From node to node along kept edges, each edge is better than the one before, until two nodes
    # keep the same. The lesser of the two is the root, at most V - 1 steps away from all others.
    other = torch.where(edge < n_edges, pad(edges.sum(0), (0, 1))[edge] - node, node)
    root = torch.where(other[other] == node, torch.minimum(node, other), other)
    for _ in range(n_nodes.bit_length()):
        root = root[root]
    leader = node.scatter_reduce(0, root, node, "amin")[root]  # first node of the group
    return Parsed(edge, (leader == node).cumsum(0)[leader] - 1)


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
        number = torch.arange(samples) % len(self.rounds)
        return self.config.discount ** number.double()

    def likelihood(self, placements: Tensor) -> Likelihood:
        """Likelihood of placements, each in its round: that of its groups' devices."""
        by_node = placements[self.owner, :, self.first].t()
        samples, graphs = len(by_node), len(placements)
        size = samples, graphs
        taken, spread = torch.zeros(size), torch.zeros(size)
        for t, now in enumerate(self.rounds):
            rows = torch.arange(t, samples, len(self.rounds))
            each = now.log_p.expand(len(rows), -1, -1)
            of_group = each.gather(2, by_node[rows][:, now.first, None]).squeeze(2)
            by_graph = torch.zeros(len(rows), size[1])
            taken = taken.index_add(0, rows, by_graph.index_add(1, now.owner, of_group))
            entropy_terms = -(now.log_p.exp() * now.log_p).sum(1).expand(len(rows), -1)
            mean = by_graph.index_add(1, now.owner, entropy_terms) / torch.bincount(now.owner)
            spread = spread.index_add(0, rows, mean)
        return Likelihood(taken.t(), spread.t())


class PreparedGraphs:
    """Problems, prepared as nodes with features."""

    def __init__(self, module: HsdagModule, traits: Traits, problems: Sequence[Problem]) -> None:
        self._module, self._problems = module, problems
        for problem in problems:
            check_devices(problem, module.config.devices)
        self._nodes = [Nodes.units(problem) for problem in problems]
        self._features = [traits.rows(nodes) for nodes in self._nodes]

    def encoded(self, rows: Tensor, n: int, keys: Tensor) -> GroupingRounds:
        """Run an episode, in which every round joins groups along another part of the streams."""
        config, numbers = self._module.config, rows.tolist()
        streams = [self._nodes[i].edges.shape[1] for i in numbers]
        kept = uniform(keys, config.rounds, max(streams)) >= config.dropout
        there = [mask[:, :count] for mask, count in zip(kept, streams, strict=True)]
        return self._rounds(numbers, n, torch.cat(there, dim=1))

    def greedy(self, rows: Selection = ALL) -> list[Ints]:
        """Likeliest device of every group of the last round that begins with the whole graph."""
        config = self._module.config
        rounds = 1 if config.coarsened else config.rounds

        def drawn(some: Sequence[int]) -> Tensor:
            size = rounds, sum(self._nodes[i].edges.shape[1] for i in some)
            n = max(len(self._nodes[i].label) for i in some)
            return self._rounds(some, n, torch.ones(size, dtype=torch.bool)).drawn(rounds, None)

        return placed_in_batches(self._problems, rows, BATCH, drawn)

    def _rounds(self, rows: Sequence[int], n: int, present: Tensor) -> GroupingRounds:
        """Rounds in which edges of the problems side by side are present [T, E]."""
        parts = [self._nodes[i] for i in rows]
        start = np.concatenate([[0], np.cumsum([part.n_nodes for part in parts])])
        opened = np.zeros((start[-1], self._module.config.devices), np.int64)
        node = np.full((len(parts), n), start[-1])
        for row, part, a, b in zip(node, parts, start[:-1], start[1:], strict=True):
            opened[a:b, : part.problem.n_devices] = part.allowed
            row[: len(part.label)] = part.label + a
        edges = [part.edges + a for part, a in zip(parts, start[:-1], strict=True)]
        owner = np.repeat(np.arange(len(parts)), np.diff(start))
        features, owners, pairs, open_devices, nodes, place, first = (
            torch.from_numpy(array)
            for array in (
                np.concatenate([self._features[i] for i in rows]).astype(np.float32),
                owner,
                np.concatenate(edges, axis=1),
                opened,
                node,
                np.arange(start[-1]) - start[owner],
                np.concatenate([part.first for part in parts]),
            )
        )
        graphs = GraphsSideBySide(features, owners, pairs, torch.ones_like(owners), open_devices)
        rounds = self._module.rounds(graphs, list(present))
        order = torch.arange(n).expand(len(parts), -1)
        return GroupingRounds(self._module.config, order, nodes, owners, place, first, rounds)


def traits_of(problems: Sequence[Problem], config: HsdagConfig) -> Traits:
    """Traits of a training set."""
    return Traits.of([Nodes.units(problem) for problem in problems], config.traits)


def build(traits: Traits, config: HsdagConfig) -> ConstructivePolicy:
    """Build the policy with fresh parameters from torch's generator."""
    return ConstructivePolicy(HsdagModule(len(traits.names), config), traits, PreparedGraphs)
