"""Graphs of nodes side by side, their features, and messages through them.

Shapes: F features, or other numbers; T tasks, X = K T nodes, K of each task in its order; S streams
with C · K edges each. One of the nodes of each task is its present one. For a stream from task u to
v the first K edges lead from u's present node to all nodes of v, and with C = 2, K others from all
nodes of u to v's present one. A first dimension of 2 is for messages along the edges and against
them. Features come before nodes, so that maps multiply matrices and columns as the
equations do: BLAS is slow where a matrix has many rows and few columns.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor, nn

from streamplace.papers.improving.batch import Sweep

WIDTH = 5
"""Dimensions of a node's summary of one direction."""


class Edges:
    """Edges between nodes, by the present nodes of tasks."""

    def __init__(self, present: Tensor, exists: Tensor, sweep: Sweep) -> None:
        self.present = present  # [T] numbers below K
        self.exists = exists  # [C, S, K] whether there is such an edge
        self.sweep, self.k = sweep, exists.shape[2]

    @classmethod
    def of_tasks(cls, sweep: Sweep) -> "Edges":
        """The streams between one node of each task."""
        source = sweep.ends[0]
        exists = torch.ones_like(source, dtype=torch.bool)
        return cls(source.new_zeros(sweep.tasks), exists[None, :, None], sweep)

    @cached_property
    def weights(self) -> Tensor:
        """1 / number of edges to every node, [2, T, K]."""
        exists = self.exists.float()[None]
        counts = torch.cat([self._total(exists, way) for way in (0, 1)])
        return 1 / counts.clamp(min=1)

    @cached_property
    def in_columns(self) -> tuple[Tensor, Tensor, Tensor]:
        """Present nodes that send [Σ 2 Q] and receive [2, Σ Q], and weights of nodes [2, Σ R K].

        Nodes have numbers as their tasks have in the sweep.
        """
        sweep, k = self.sweep, self.k
        senders = k * sweep.sender + self.present.take(sweep.sender_task)
        receivers = k * sweep.receiver + self.present.take(sweep.receiver_task)
        tasks = sweep.columns[..., None].expand(-1, -1, k)
        return senders, receivers, self.weights.gather(1, tasks).flatten(1)

    def sent(self, h: Tensor) -> Tensor:
        """Columns of h [F, X] that nodes send along the edges, [F, C, S, K]."""
        source, f = self.sweep.ends[0], len(h)
        present = h.index_select(1, source * self.k + self.present.index_select(0, source))
        every = h.view(f, -1, self.k).index_select(1, source)
        both = torch.stack([present[..., None].expand_as(every), every], 1)
        return both[:, : len(self.exists)]

    def mean(self, values: Tensor, way: int) -> Tensor:
        """Mean [F, X] of values [F, C, S, K] over the edges to every node; 0 without edges."""
        return (self._total(values * self.exists, way) * self.weights[way]).flatten(1)

    def _total(self, values: Tensor, way: int) -> Tensor:
        receiver, f = self.sweep.ends[1 - way], len(values)
        total = values.new_zeros(f, self.sweep.tasks, self.k)
        if way < values.shape[1]:
            total = total.index_add(1, receiver, values[:, way])
        if 1 - way < values.shape[1]:
            to = receiver * self.k + self.present.index_select(0, receiver)
            total = total.flatten(1).index_add(1, to, values[:, 1 - way].sum(-1))
        return total.view(f, -1, self.k)


class NodeGraph(NamedTuple):
    """Features of nodes and edges under a placement."""

    nodes: Tensor  # [F, X]
    features: Tensor  # [F, C, S, K] of the edges
    edges: Edges

    @classmethod
    def joined(cls, graphs: "Sequence[NodeGraph]", sweep: Sweep) -> "NodeGraph":
        """Graphs of the same tasks side by side, with the sweep of as many copies."""
        nodes, features, edges = zip(*graphs, strict=True)
        present = torch.cat([each.present for each in edges])
        exists = torch.cat([each.exists for each in edges], 1)
        return cls(torch.cat(nodes, 1), torch.cat(features, 2), Edges(present, exists, sweep))


class ColumnLinear(nn.Linear):
    """W x + b of many columns x."""

    def forward(self, x: Tensor) -> Tensor:
        """Map columns [inputs, n] to [outputs, n]."""
        if self.bias is None:
            return self.weight @ x
        return torch.addmm(self.bias[:, None], self.weight, x)


class Messages(nn.Module):
    """Maps of the messages in one direction; see `summaries`."""

    def __init__(self, features: int, of_edge: int) -> None:
        super().__init__()
        size = WIDTH + of_edge
        self.enter = nn.Linear(features, features)  # W₁
        self.lift = nn.Linear(features, WIDTH)  # W₂
        self.message = nn.Linear(size, size)  # [A : B]
        self.update = nn.Linear(size, WIDTH)  # f₂


def summaries(graph: NodeGraph, along: Messages, against: Messages) -> Tensor:
    """Summaries [10, X] of the graphs upstream and downstream of every node.

    Every node u has features x_u, every edge features x_vu. With ξ(u) the nodes from which an edge
    leads to u, and f₂ a linear map and ReLU, messages along the edges are

        y_u = W₂ relu(W₁ x_u)
        e_u = f₂(mean over v in ξ(u) of relu(A e_v + B x_vu)) + y_u        (y_u without ξ(u))

    Messages against the edges have other weights. Every linear map has a bias; A and B share one.
    """
    enter, lift, message, update = (
        _both(getattr(along, name), getattr(against, name))
        for name in ("enter", "lift", "message", "update")
    )
    edges, sweep, k = graph.edges, graph.edges.sweep, graph.edges.k
    c, f = len(edges.exists), WIDTH + len(graph.features)
    of_node, of_edge = message[0].split_with_sizes([WIDTH, f - WIDTH], 2)  # A, B
    rows, sizes = sweep.rows[c - 1], sweep.streams
    exists = edges.exists.flatten(0, 1).index_select(0, rows).view(2, 1, c, -1, k) & sweep.is_row
    features = graph.features.flatten(1, 2).index_select(1, rows).flatten(1)
    x = _mapped((of_edge, message[1]), _ways(features)).view(2, f, c, -1, k)
    x.add_(torch.where(exists, 0.0, -torch.inf))  # so that nothing is sent where there is no edge
    present_senders, present_receivers, weights = edges.in_columns
    both_sizes = [2 * size for size in sizes]
    levels = zip(
        x[:, :, 0].split_with_sizes(sizes, 2),
        x[:, :, c - 1].split_with_sizes(sizes, 2),
        present_senders.split_with_sizes(both_sizes),
        sweep.sender.split_with_sizes(both_sizes),
        present_receivers[:, None].expand(-1, f, -1).split_with_sizes(sizes, 2),
        sweep.receiver[:, None, :, None].expand(-1, f, -1, k).split_with_sizes(sizes, 2),
        strict=True,
    )
    blocks = graph.nodes.view(len(graph.nodes), -1, k).index_select(1, sweep.columns.flatten())
    y = _mapped(lift, _mapped(enter, _ways(blocks.flatten(1))).relu_())
    e = y.transpose(0, 1).contiguous()  # [5, 2, Σ R K]; of the first columns this is all
    counts = [k * count for count in sweep.counts]
    end, y_of = counts[0], y.split_with_sizes(counts, 2)[1:]
    weights_of = weights[:, None].split_with_sizes(counts, 2)[1:]
    for level, y_u, weight in zip(levels, y_of, weights_of, strict=True):
        x_to, x_from, present, senders, to_present, to = level
        e_v = e.flatten(1).index_select(1, present)
        m = (x_to + torch.bmm(of_node, _ways(e_v))[..., None]).relu_()  # [2, F, Q, K]
        total = m.new_zeros(2, f, y_u.shape[2] // k, k).scatter_add_(2, to, m).flatten(2)
        if c > 1:
            e_v = e.view(WIDTH, -1, k).index_select(1, senders).flatten(1)
            m = torch.baddbmm(x_from.flatten(2), of_node, _ways(e_v)).relu_()
            total = total.scatter_add(2, to_present, m.view_as(x_from).sum(3))
        e_u = _mapped(update, total * weight).relu_() + y_u
        e[:, :, end : end + y_u.shape[2]] = e_u.transpose(0, 1)
        end += y_u.shape[2]
    found = e.view(WIDTH, -1, k).index_select(1, sweep.last)
    return _ways(found.flatten(1)).flatten(0, 1)


Map = tuple[Tensor, Tensor]
"""Linear maps along and against the edges: weights [2, outputs, inputs], biases [2, outputs, 1]."""


def _both(a: nn.Linear, b: nn.Linear) -> Map:
    return torch.stack((a.weight, b.weight)), torch.stack((a.bias, b.bias))[..., None]


def _mapped(maps: Map, x: Tensor) -> Tensor:
    """Columns [2, outputs, n] of columns x [2, inputs, n]."""
    return torch.baddbmm(maps[1], maps[0], x)


def _ways(x: Tensor) -> Tensor:
    """Columns [2, F, n] of [F, 2 n], those along the edges before those against them."""
    return x.view(len(x), 2, x.shape[1] // 2).transpose(0, 1)


def begin(module: nn.Module) -> None:
    """Initialise a layer as the paper's code does."""
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)


def scaled(table: Tensor, exists: Tensor, episode: Tensor, episodes: int) -> Tensor:
    """Scale features [F, R, C] of existing nodes or edges [R, C] to [-1, 1] per episode [R].

    A feature whose values are all equal is 0.
    """
    far = torch.where(exists, 0.0, torch.inf)
    rows = torch.cat([table + far, far - table]).amin(2)
    least = rows.new_full((len(rows), episodes), torch.inf)
    least = least.scatter_reduce(1, episode.expand_as(rows), rows, "amin")
    low, minus_high = least.index_select(1, episode)[..., None].chunk(2)
    spread = -minus_high - low
    varies = spread > 0
    factor = torch.where(varies, 2 / spread, 0.0)
    return (table - low) * factor - varies.to(table.dtype)
