"""Messages through many gpNets side by side, with gradients: an autograd function in numba.

The state k_j of a node is computed from the messages m_ij of its senders i:

    m_ij = relu(N k_i + a_ij)                     a_ij is the edge's own part
    k_j  = o_j + relu(U mean m_ij + b)        o_j is the node's own part; only that without edges

once through the graph, every node after its senders. Tensor operations would copy all nodes for
every level of the graph.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from streamplace.learn.numba_kernels.arrays import group_by
from streamplace.learn.numba_kernels.jit import inlined_kernel, kernel
from streamplace.learn.parameters import LinearMaps
from streamplace.model.arrays import Floats, Ints, Singles
from streamplace.papers.improving.gpnet import WIDTH, NodeGraph, StepRecord


class Senders(NamedTuple):
    """Edges by receiver (X nodes, Y edges)."""

    order: Ints  # [X] every node after its senders
    start: Ints  # [X + 1] the edges to node j are edge[start[j]:start[j + 1]]
    edge: Ints  # [Y]
    sender: Ints  # [Y]


class MessageWeights(NamedTuple):
    """Matrices as [out, in]."""

    node: Singles  # N
    update: Singles  # U
    update_bias: Singles  # b


class MessageGradients(NamedTuple):
    """Gradients of everything that the messages depend on."""

    own: Singles  # [X, C] of the nodes' own parts
    added: Singles  # [Y, M] of the edges' own parts
    node: Floats  # of the weights
    update: Floats
    update_bias: Floats
    states: Singles  # [X, C] of the states
    sent: Singles  # [X, M] of N k
    messages: Singles  # [M] of every message to the node at hand
    total: Singles  # [M] buffer: sum of these messages


def senders_of(order: Ints, sender: Ints, receiver: Ints) -> Senders:
    """Group edges by the node that they lead to."""
    return Senders(order, *group_by(receiver, len(order)), sender)


class Messages(torch.autograd.Function):
    """Final states [X, C] of all nodes from their own parts [X, C]."""

    @staticmethod
    def forward(
        ctx: Any,
        own: Tensor,
        added: Tensor,
        node: Tensor,
        update: Tensor,
        update_bias: Tensor,
        senders: Senders,
    ) -> Tensor:
        """Send messages; ``added`` [Y, M] are the edges' own parts."""
        own_rows, added_rows, *matrices = map(_rows, (own, added, node, update, update_bias))
        weights = MessageWeights(*matrices)
        states, sent = passed(senders, weights, own_rows, added_rows)
        ctx.passed = senders, weights, added_rows, states, sent
        return torch.from_numpy(states.copy())

    @staticmethod
    def backward(ctx: Any, *outputs: Tensor) -> Any:
        """Gradients of the first five arguments."""
        (output,) = outputs
        senders, weights, added, states, sent = ctx.passed
        found = gradients(senders, weights, added, states, sent, _rows(output).copy())
        tensors = (torch.from_numpy(part).to(output.dtype) for part in found)
        return (*tensors, None)


def _rows(tensor: Tensor) -> Singles:
    return np.ascontiguousarray(tensor.detach().numpy())


@kernel
def passed(
    senders: Senders, weights: MessageWeights, own: Singles, added: Singles
) -> tuple[Singles, Singles]:
    """States [X, C] and N k [X, M] of all nodes."""
    states, sent = np.empty_like(own), np.empty((len(own), len(weights.node)), np.float32)
    total = np.empty(len(weights.node), np.float32)
    for j in senders.order:
        count = _receive(senders, sent, added, j, total)
        for c in range(own.shape[1]):
            states[j, c] = own[j, c]
            if count:
                states[j, c] += max(_updated(weights, total, count, c), np.float32(0))
        _send(weights, states, sent, j)
    return states, sent


@kernel
def gradients(
    senders: Senders,
    weights: MessageWeights,
    added: Singles,
    states: Singles,
    sent: Singles,
    g: Singles,
) -> tuple[Singles, Singles, Floats, Floats, Floats]:
    """Gradients of own, added, node, update and update_bias; g [X, C] is that of the result."""
    of = MessageGradients(
        np.zeros_like(g),
        np.zeros_like(added),
        np.zeros(weights.node.shape),
        np.zeros(weights.update.shape),
        np.zeros(len(weights.update_bias)),
        g,
        np.zeros_like(sent),
        np.empty(sent.shape[1], np.float32),
        np.empty(sent.shape[1], np.float32),
    )
    for at in range(len(senders.order) - 1, -1, -1):
        j = senders.order[at]
        _send_back(weights, states, of, j)
        for c in range(of.own.shape[1]):
            of.own[j, c] += of.states[j, c]
        count = _receive(senders, sent, added, j, of.total)
        if count:
            _update_back(weights, count, of, j)
            _receive_back(senders, sent, added, of, j)
    return of.own, of.added, of.node, of.update, of.update_bias


@inlined_kernel
def _send(weights: MessageWeights, states: Singles, sent: Singles, i: int) -> None:
    """N k of node i."""
    for c in range(sent.shape[1]):
        total = np.float32(0)
        for k in range(states.shape[1]):
            total += weights.node[c, k] * states[i, k]
        sent[i, c] = total


@inlined_kernel
def _send_back(weights: MessageWeights, states: Singles, of: MessageGradients, i: int) -> None:
    """Gradients of `_send`."""
    for c in range(of.sent.shape[1]):
        for k in range(states.shape[1]):
            of.states[i, k] += weights.node[c, k] * of.sent[i, c]
            of.node[c, k] += states[i, k] * of.sent[i, c]


@inlined_kernel
def _receive(senders: Senders, outgoing: Singles, added: Singles, j: int, total: Singles) -> int:
    """Sum of the messages to node j; returns their number."""
    for c in range(len(total)):
        total[c] = 0.0
    first, last = senders.start[j], senders.start[j + 1]
    for at in range(first, last):
        e = senders.edge[at]
        i = senders.sender[e]
        for c in range(len(total)):
            total[c] += max(outgoing[i, c] + added[e, c], np.float32(0))
    return last - first


@inlined_kernel
def _receive_back(
    senders: Senders, outgoing: Singles, added: Singles, of: MessageGradients, j: int
) -> None:
    """Gradients of `_receive`, given that of every message to node j."""
    for at in range(senders.start[j], senders.start[j + 1]):
        e = senders.edge[at]
        i = senders.sender[e]
        for c in range(len(of.messages)):
            if outgoing[i, c] + added[e, c] > 0:
                of.sent[i, c] += of.messages[c]
                of.added[e, c] += of.messages[c]


@inlined_kernel
def _updated(weights: MessageWeights, total: Singles, count: int, c: int) -> float:
    """Row c of U mean m + b."""
    row = weights.update_bias[c]
    for k in range(len(total)):
        row += weights.update[c, k] * total[k] / np.float32(count)
    return row


@inlined_kernel
def _update_back(weights: MessageWeights, count: int, of: MessageGradients, j: int) -> None:
    """Gradients of relu(U mean m + b) at node j, also that of every message to it."""
    for k in range(len(of.messages)):
        of.messages[k] = 0.0
    for c in range(of.states.shape[1]):
        if _updated(weights, of.total, count, c) > 0:
            of.update_bias[c] += of.states[j, c]
            for k in range(len(of.messages)):
                of.update[c, k] += of.total[k] / np.float32(count) * of.states[j, c]
                of.messages[k] += weights.update[c, k] / np.float32(count) * of.states[j, c]


@dataclass(frozen=True, slots=True)
class NodeGraphBatch:
    """P gpNets side by side, one for each step of many episodes (X nodes and Y edges in all)."""

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
    def of(cls, episodes: Sequence[tuple[NodeGraph, StepRecord]]) -> "NodeGraphBatch":
        """Concatenate the steps of episodes."""
        h = np.array([graph.n_nodes for graph, record in episodes for _ in record.chosen])
        base = np.concatenate(([0], np.cumsum(h)[:-1])).astype(np.int32)
        first = np.split(base, np.cumsum([len(record.chosen) for _, record in episodes])[:-1])
        pairs = list(zip(episodes, first, strict=True))
        source = np.concatenate([(t.source + b[:, None]).ravel() for (_, t), b in pairs])
        target = np.concatenate([(t.target + b[:, None]).ravel() for (_, t), b in pairs])
        orders = [(_downwards(graph), b[:, None]) for (graph, _), b in pairs]
        down = np.concatenate([(order + b).ravel() for order, b in orders])
        up = np.concatenate([(order[::-1] + b).ravel() for order, b in orders])

        def tensor(array: NDArray[np.generic]) -> Tensor:
            return torch.from_numpy(np.ascontiguousarray(array))

        return cls(
            tensor(np.concatenate([t.nodes.reshape(-1, t.nodes.shape[2]) for _, t in episodes])),
            tensor(
                np.concatenate(
                    [t.edges.reshape(t.source.size, t.edges.shape[2]) for _, t in episodes]
                )
            ),
            tensor(source),
            tensor(target),
            tensor(np.repeat(np.arange(len(h)), h)),
            tensor(np.concatenate([t.open.ravel() for _, t in episodes])),
            tensor(np.concatenate([t.chosen + b for (_, t), b in pairs])),
            senders_of(down, source, target),
            senders_of(up, target, source),
        )


def directed(
    maps: LinearMaps, direction: str, nodes: Tensor, edges: Tensor, senders: Senders
) -> Tensor:
    """Summary [X, 5] of every node in a direction, as in `streamplace.papers.improving.gpnet`."""
    enter, lift, message, update = (
        maps.linear(f"{direction}.{name}") for name in ("enter", "lift", "message", "update")
    )
    node, edge = message.weight[:, :WIDTH], message.weight[:, WIDTH:]
    parameters = node, update.weight, update.bias
    own, added = lift(enter(nodes).relu()), edges @ edge.T + message.bias
    summary: Tensor = Messages.apply(own, added, *parameters, senders)  # type: ignore[no-untyped-call]
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
