"""Node graphs in torch: many of them side by side, and messages through all in one pass."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from streamplace.papers.walks.direction import WIDTH
from streamplace.papers.walks.graph import NodeGraph, WalkRecord
from streamplace.papers.walks.messages import Messages, Senders, senders_of


@dataclass(frozen=True, slots=True)
class NodeGraphBatch:
    """P gpNets side by side, one for each step of many walks (X nodes and Y edges in all)."""

    nodes: Tensor  # [X, F]
    edges: Tensor  # [Y, 5]
    source: Tensor  # [Y] nodes
    target: Tensor  # [Y]
    step: Tensor  # [X] of every node
    open: Tensor  # [X]
    chosen: Tensor  # [P] nodes
    along: Senders
    against: Senders

    @classmethod
    def of(
        cls, walks: Sequence[tuple[NodeGraph, WalkRecord]], device: str = "cpu"
    ) -> "NodeGraphBatch":
        """Concatenate the steps of walks."""
        h = np.array([graph.n_nodes for graph, record in walks for _ in record.chosen])
        base = np.concatenate(([0], np.cumsum(h)[:-1])).astype(np.int32)
        first = np.split(base, np.cumsum([len(record.chosen) for _, record in walks])[:-1])
        pairs = list(zip(walks, first, strict=True))
        source = np.concatenate([(t.source + b[:, None]).ravel() for (_, t), b in pairs])
        target = np.concatenate([(t.target + b[:, None]).ravel() for (_, t), b in pairs])
        orders = [(_downwards(graph), b[:, None]) for (graph, _), b in pairs]
        down = np.concatenate([(order + b).ravel() for order, b in orders])
        up = np.concatenate([(order[::-1] + b).ravel() for order, b in orders])

        def tensor(array: NDArray[np.generic]) -> Tensor:
            return torch.from_numpy(np.ascontiguousarray(array)).to(device)

        return cls(
            tensor(np.concatenate([t.nodes.reshape(-1, t.nodes.shape[2]) for _, t in walks])),
            tensor(
                np.concatenate([t.edges.reshape(t.source.size, t.edges.shape[2]) for _, t in walks])
            ),
            tensor(source),
            tensor(target),
            tensor(np.repeat(np.arange(len(h)), h)),
            tensor(np.concatenate([t.open.ravel() for _, t in walks])),
            tensor(np.concatenate([t.chosen + b for (_, t), b in pairs])),
            senders_of(down, source, target),
            senders_of(up, target, source),
        )


class DirectionLayer(nn.Module):
    """Messages in one direction, as in `streamplace.papers.walks.direction`."""

    def __init__(self, features: int, edges: int) -> None:
        super().__init__()
        self.enter = nn.Linear(features, features)
        self.lift = nn.Linear(features, WIDTH)
        self.message = nn.Linear(WIDTH + edges, WIDTH + edges)
        self.update = nn.Linear(WIDTH + edges, WIDTH)

    def forward(self, nodes: Tensor, edges: Tensor, senders: Senders, rounds: int = 0) -> Tensor:
        """Summary [X, 5] of every node after so many rounds of messages, 0 for once through."""
        own = self.lift(self.enter(nodes).relu())
        node, edge = self.message.weight[:, :WIDTH], self.message.weight[:, WIDTH:]
        added = edges @ edge.T + self.message.bias
        parameters = node, self.update.weight, self.update.bias
        summary: Tensor = Messages.apply(own, added, *parameters, senders, rounds)  # type: ignore[no-untyped-call]
        return summary


def begin(module: nn.Module) -> None:
    """Initialise a layer as the paper's code does."""
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)


def mean_of(messages: Tensor, to: Tensor, size: int) -> Tensor:
    """Mean of the messages to each of so many nodes; 0 without messages."""
    sums = messages.new_zeros(size, messages.shape[1]).index_add(0, to, messages)
    count = torch.bincount(to, minlength=size).clamp(min=1)
    return sums / count[:, None]


def _downwards(graph: NodeGraph) -> NDArray[np.int32]:
    """Nodes [H], task after task in topological order."""
    position = np.empty(graph.n_tasks, np.int64)
    position[graph.tasks.order] = np.arange(graph.n_tasks)
    return np.argsort(position[graph.task], kind="stable").astype(np.int32)
