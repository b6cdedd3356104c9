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
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm, pad

from streamplace.learn.config import check_devices
from streamplace.learn.constructive.policy import (
    CLOSED,
    ConstructivePolicy,
    Decisions,
    chosen_devices,
)
from streamplace.model.problem import Problem
from streamplace.papers.groups.nodes import Nodes, Traits
from streamplace.papers.hsdag.model import HOPS, HsdagConfig


@dataclass(frozen=True, eq=False)
class GraphsSideBySide:
    """G graphs side by side."""

    features: Tensor  # [V, F]
    owner: Tensor  # [V] graph of every node
    edges: Tensor  # [2, E]
    units: Tensor  # [V] number of units of a node: one, or more in a group
    open: Tensor  # [V, D] how many of its units may use a device

    @cached_property
    def degree(self) -> Tensor:
        """[V] edges out of a node, and itself."""
        source, one = self.edges[0], self.features.new_ones(len(self.owner))
        return one.index_add(0, source, torch.ones_like(source, dtype=one.dtype))


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

    def forward(
        self,
        batch: "ManyGraphs",
        samples: int,
        given: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Decisions:
        """Placements of a batch; see `streamplace.learn.constructive.policy`.

        Sample s is drawn in round s modulo T, and every round joins groups along another part of
        the streams. The likeliest come from the last round that begins with the whole graph.
        """
        graphs, config = batch.graphs, self.config
        owner, device = graphs.owner, graphs.owner.device
        streams, count = graphs.edges.shape[1], samples + (0 if given is None else given.shape[1])
        if generator is None:
            number = 1 if config.coarsened else config.rounds
            present = torch.ones(number, streams, dtype=torch.bool, device=device)
        else:
            drawn = torch.rand(config.rounds, streams, generator=generator, device=device)
            present = drawn >= config.dropout
        rounds = self.rounds(graphs, list(present))
        if generator is None:
            rounds = rounds[-1:]
        by_node = batch.node.new_zeros(count, len(owner) + 1)
        if given is not None:
            by_node[samples:, :-1] = given[owner, :, batch.first].t()
        likelihood = entropy = graphs.features.new_zeros(count, len(batch.node))
        for t, now in enumerate(rounds):
            at = torch.arange(t, count, len(rounds), device=device)
            mine = at[at < samples] if given is not None else at
            log_p = now.log_p.expand(len(at), -1, -1)
            of_groups = chosen_devices(log_p[: len(mine)].detach(), generator)
            by_node[mine, :-1] = of_groups[:, now.group]
            of_groups = by_node[at][:, now.first]
            likely = log_p.gather(2, of_groups[..., None]).squeeze(2)
            unsure = -(now.log_p.exp() * now.log_p).sum(1).expand(len(at), -1)
            none = likelihood.new_zeros(len(at), likelihood.shape[1])
            groups = torch.bincount(now.owner, minlength=likelihood.shape[1])
            likelihood = likelihood.index_add(0, at, none.index_add(1, now.owner, likely))
            entropy = entropy.index_add(0, at, none.index_add(1, now.owner, unsure) / groups)
        weights = config.discount ** (torch.arange(count, device=device) % len(rounds)).double()
        placements = by_node[:, batch.node].transpose(0, 1)
        return Decisions(placements, likelihood.t(), entropy.t(), weights)

    def rounds(self, graphs: GraphsSideBySide, present: list[Tensor]) -> list[GroupingRound]:
        """Run an episode; in each round only the present edges [E] can join nodes."""
        h, rounds = self.enter(graphs.features), []
        nodes, streams = len(graphs.owner), graphs.edges.shape[1]
        node = first = torch.arange(nodes, device=h.device)  # node of a unit, first unit of a node
        stands_for = torch.arange(streams, device=h.device)  # an edge of units for every edge
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
            0, group, torch.arange(len(z), device=z.device), "amin"
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
    """Number of units [C] of the groups, and how many of them [C, D] may use a device."""
    units = graphs.units.new_zeros(count).index_add(0, group, graphs.units)
    able = graphs.open.new_zeros(count, graphs.open.shape[1]).index_add(0, group, graphs.open)
    return units, able


def parse(edges: Tensor, scores: Tensor, n_nodes: int) -> tuple[Tensor, Tensor]:
    """Edge [V] that every node keeps, and group [V] of every node (equation 9).

    Of the edges [2, E] that touch it, a node keeps the one of the highest score, of equals the
    first; E without an edge. Kept edges connect groups, so a node with an edge is never alone.
    Groups are numbered by first node.

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
    return edge, (leader == node).cumsum(0)[leader] - 1


class ManyGraphs(NamedTuple):
    """A batch of G problems, whose graphs are side by side."""

    graphs: GraphsSideBySide
    node: Tensor  # [G, N] node of an operator; for padding, the number of nodes
    first: Tensor  # [V] first operator of a node


class PreparedGraphs:
    """Problems, prepared as nodes with features."""

    def __init__(
        self,
        traits: Traits,
        config: HsdagConfig,
        problems: Sequence[Problem],
        device: torch.device,
    ) -> None:
        for problem in problems:
            check_devices(problem, config.devices)
        self._config, self._device = config, device
        self._nodes = [Nodes.units(problem) for problem in problems]
        self._features = [traits.rows(nodes) for nodes in self._nodes]
        self.sizes = np.array([len(nodes.label) for nodes in self._nodes], np.int64)

    def batch(self, rows: Tensor, generator: torch.Generator | None = None) -> ManyGraphs:
        """Some of the problems."""
        numbers = rows.tolist()
        parts = [self._nodes[i] for i in numbers]
        start = np.concatenate([[0], np.cumsum([part.n_nodes for part in parts])])
        opened = np.zeros((start[-1], self._config.devices), np.int64)
        node = np.full((len(parts), self.sizes[numbers].max()), start[-1])
        for row, part, a, b in zip(node, parts, start[:-1], start[1:], strict=True):
            opened[a:b, : part.problem.n_devices] = part.allowed
            row[: len(part.label)] = part.label + a
        edges = [part.edges + a for part, a in zip(parts, start[:-1], strict=True)]
        arrays = (
            np.concatenate([self._features[i] for i in numbers]).astype(np.float32),
            np.repeat(np.arange(len(parts)), np.diff(start)),
            np.concatenate(edges, axis=1),
            np.ones(start[-1], np.int64),
            opened,
            node,
            np.concatenate([part.first for part in parts]),
        )
        *graphs, nodes, first = (torch.from_numpy(array).to(self._device) for array in arrays)
        return ManyGraphs(GraphsSideBySide(*graphs), nodes, first)


def traits_of(problems: Sequence[Problem], config: HsdagConfig) -> Traits:
    """Traits of a training set."""
    return Traits.of([Nodes.units(problem) for problem in problems], config.traits)


def build(traits: Traits, config: HsdagConfig) -> ConstructivePolicy:
    """Build the policy with fresh parameters from torch's generator."""
    module = HsdagModule(len(traits.names), config)
    return ConstructivePolicy(module, traits, partial(PreparedGraphs, traits, config))
