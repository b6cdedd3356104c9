"""Graphs of nodes side by side, their features, and messages through them.

Shapes: F features, or other numbers, of each node or edge; X nodes, K of each of T tasks; S streams
of C edges each. Features come first, so that maps multiply matrices and columns as the equations
do: BLAS is slow where a matrix has many rows and few columns.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from streamplace.papers.improving.batch import Sweep

WIDTH = 5
"""Dimensions of a node's summary of one direction."""


class NodeGraph(NamedTuple):
    """Nodes and edges under a placement; node k of task v has the number v · K + k."""

    k: int
    nodes: Tensor  # [F, X]
    edges: Tensor  # [F, S, C]
    source: Tensor  # [S, C] nodes
    target: Tensor  # [S, C] nodes
    exists: Tensor  # [S, C] whether there is such an edge
    sweep: Sweep  # order of messages to the targets, and to the sources
    back: Sweep

    def reversed(self) -> "NodeGraph":
        """The graph with its edges turned round."""
        return self._replace(
            source=self.target, target=self.source, sweep=self.back, back=self.sweep
        )

    @staticmethod
    def joined(graphs: "Sequence[NodeGraph]", along: Sweep, against: Sweep) -> "NodeGraph":
        """Graphs of the same tasks side by side, with the sweeps of so many copies."""
        size = graphs[0].nodes.shape[1]
        return NodeGraph(
            k=graphs[0].k,
            nodes=torch.cat([graph.nodes for graph in graphs], 1),
            edges=torch.cat([graph.edges for graph in graphs], 1),
            source=torch.cat([graph.source + i * size for i, graph in enumerate(graphs)]),
            target=torch.cat([graph.target + i * size for i, graph in enumerate(graphs)]),
            exists=torch.cat([graph.exists for graph in graphs]),
            sweep=along,
            back=against,
        )

    def levels(self) -> Iterator[tuple[Tensor, ...]]:
        """Nodes [R] of each level of tasks, after all that send to it, and the Q edges to them.

        Of the edges: source [Q], position of the target among the nodes [Q], share in the mean [Q],
        and features [F, Q].
        """
        sweep, k, c = self.sweep, self.k, self.source.shape[1]
        nodes = k * sweep.receiver[:, None] + torch.arange(k, device=sweep.receiver.device)
        position = self.target + k * sweep.shift[:, None]
        columns = (self.source, position, self.share())
        flat = [column.index_select(0, sweep.stream).flatten() for column in columns]
        flat.append(self.edges.index_select(1, sweep.stream).flatten(1))
        sizes = [c * size for size in sweep.sizes]
        parts = (torch.split(column, sizes, -1) for column in flat)
        return zip(torch.split(nodes.flatten(), [k * n for n in sweep.counts]), *parts, strict=True)

    def mean(self, values: Tensor) -> Tensor:
        """Mean [F, X] of values [F, S, C] over the edges to every node; 0 without edges."""
        none = values.new_zeros(len(values), self.nodes.shape[1])
        return none.index_add(1, self.target.flatten(), (self.share() * values).flatten(1))

    def share(self) -> Tensor:
        """Weight of every edge in the mean over those to its target, [S, C]."""
        exists, to = self.exists.to(self.nodes.dtype), self.target.flatten()
        count = exists.new_zeros(self.nodes.shape[1]).index_add(0, to, exists.flatten())
        return exists / count[self.target].clamp(min=1)


class ColumnLinear(nn.Linear):
    """W x + b of many columns x."""

    def forward(self, x: Tensor) -> Tensor:
        """Map columns [inputs, n] to [outputs, n]."""
        if self.bias is None:
            return self.weight @ x
        return torch.addmm(self.bias[:, None], self.weight, x)


class Messages(nn.Module):
    """Messages along the edges of a graph.

    Every node u has features x_u, every edge features x_vu. With ξ(u) the nodes from which an edge
    leads to u, and f a linear map and ReLU,

        y_u = W₂ relu(W₁ x_u)
        e_u = f₂(mean over v in ξ(u) of f₁([e_v : x_vu])) + y_u        (y_u without ξ(u))
    """

    def __init__(self, features: int, of_edge: int) -> None:
        super().__init__()
        size = WIDTH + of_edge
        self.enter = ColumnLinear(features, features)  # W₁
        self.lift = ColumnLinear(features, WIDTH)  # W₂
        self.message = ColumnLinear(size, size)  # f₁
        self.update = ColumnLinear(size, WIDTH)  # f₂

    def forward(self, graph: NodeGraph) -> Tensor:
        """Summary e [5, X] of all that is upstream of every node."""
        y = self.lift(self.enter(graph.nodes).relu())
        e = y.clone()
        for nodes, source, position, share, edges in graph.levels():
            sent = torch.cat([e.index_select(1, source), edges])
            messages = self.message(sent).relu() * share
            mean = messages.new_zeros(len(messages), len(nodes)).index_add_(1, position, messages)
            e_u = self.update(mean).relu() + y.index_select(1, nodes)
            e.index_copy_(1, nodes, e_u)
        return e


def begin(module: nn.Module) -> None:
    """Initialise a layer as the paper's code does."""
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)


def scaled(table: Tensor, exists: Tensor, episode: Tensor, episodes: int) -> Tensor:
    """Scale features [F, R, C] of what exists [R, C] to [-1, 1] within each episode [R].

    A feature whose values are all equal is 0.
    """
    far = torch.zeros_like(table[0]).masked_fill(~exists, torch.inf)

    def least(values: Tensor) -> Tensor:
        rows = (values + far).amin(2)
        found = rows.new_full((len(rows), episodes), torch.inf)
        return found.scatter_reduce(1, episode.expand_as(rows), rows, "amin")[:, episode, None]

    low, high = least(table), -least(-table)
    varies = high > low
    factor = torch.where(varies, 2 / (high - low), 0.0)
    return (table - low) * factor - varies.to(table.dtype)
