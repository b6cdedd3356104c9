"""Messages in one direction through a node graph, in numba.

Every node u has features x_u, every edge features x_vu. With ξ(u) the nodes from which an edge
leads to u, and f a linear map and ReLU,

    y_u = W₂ relu(W₁ x_u)
    e_u = f₂(mean over v in ξ(u) of f₁([e_v : x_vu])) + y_u        (y_u without ξ(u))
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from streamsim.jit import borrowing_kernel, kernel

from streamplace.learn.algorithms.kernels import bias_of, matrix_of, product
from streamplace.model.arrays import Ints, Longs, Singles
from streamplace.papers.walks.graph import NodeFeatures, NodeGraph

WIDTH = 5
"""Dimensions of a node's summary of one direction."""


class DirectionWeights(NamedTuple):
    """Messages in one direction; matrices as [in, out]."""

    enter: Singles  # W₁
    enter_bias: Singles
    lift: Singles  # W₂
    lift_bias: Singles
    node: Singles  # f₁, of the sender
    edge: Singles  # f₁, of the edge; [0, ·] where messages carry no features
    message_bias: Singles
    update: Singles  # f₂
    update_bias: Singles


def direction_sizes(features: int, edges: int) -> dict[str, tuple[int, int]]:
    """Sizes [out, in] of the matrices of both directions, by name.

    Nodes have so many features, and messages carry so many of the edges.
    """
    message = WIDTH + edges
    sizes = {"enter": (features, features), "lift": (WIDTH, features)}
    sizes |= {"message": (message, message), "update": (WIDTH, message)}
    return {f"{d}.{name}": size for d in ("along", "against") for name, size in sizes.items()}


def direction_of(tensors: Mapping[str, Singles], name: str) -> DirectionWeights:
    """Messages in one direction, from tensors under its name."""
    message = matrix_of(tensors, f"{name}.message")
    return DirectionWeights(
        enter=matrix_of(tensors, f"{name}.enter"),
        enter_bias=bias_of(tensors, f"{name}.enter"),
        lift=matrix_of(tensors, f"{name}.lift"),
        lift_bias=bias_of(tensors, f"{name}.lift"),
        node=np.ascontiguousarray(message[:WIDTH]),
        edge=np.ascontiguousarray(message[WIDTH:]),
        message_bias=bias_of(tensors, f"{name}.message"),
        update=matrix_of(tensors, f"{name}.update"),
        update_bias=bias_of(tensors, f"{name}.update"),
    )


class DirectionState(NamedTuple):
    """Messages in one direction under way (H nodes)."""

    summary: Singles  # [H, 5]
    sent: Singles  # [H, M] what every node sends
    sums: Singles  # [H, M] of the messages to every node
    received: Longs  # [H] number of these
    row: Singles  # [M] buffer


@kernel
def summaries(
    weights: DirectionWeights, rounds: int, graph: NodeGraph, features: NodeFeatures, against: bool
) -> Singles:
    """Summary of the nodes upstream of every node, or downstream if against; [H, 5]."""
    entered = np.maximum(product(features.nodes, weights.enter) + weights.enter_bias, np.float32(0))
    own = product(entered, weights.lift) + weights.lift_bias
    senders, receivers = features.source, features.target
    if against:
        senders, receivers = features.target, features.source
    sent = product(own, weights.node)
    received, row = np.zeros(len(own), np.int64), np.zeros(sent.shape[1], np.float32)
    state = DirectionState(own.copy(), sent, np.zeros_like(sent), received, row)
    n, m = len(graph.tasks.order), len(features.edges)
    for _ in range(rounds):
        state.sums[:], state.received[:] = 0, 0
        _send(weights, features.edges, senders, receivers, 0, m, state)
        _finish(weights, own, 0, len(own), state)
    for at in range(n if rounds == 0 else 0):
        v = graph.tasks.order[n - 1 - at] if against else graph.tasks.order[at]
        first, last = graph.tasks.in_start[v], graph.tasks.in_start[v + 1]
        if against:
            first, last = graph.tasks.out_start[v], graph.tasks.out_end[v]
        for i in range(first, last):
            e = i if against else graph.tasks.in_stream[i]
            begin, end = graph.edge_start[e], graph.edge_start[e + 1]
            _send(weights, features.edges, senders, receivers, begin, end, state)
        _finish(weights, own, graph.node_start[v], graph.node_start[v + 1], state)
    return state.summary


@borrowing_kernel
def _send(
    weights: DirectionWeights,
    edges: Singles,
    senders: Ints,
    receivers: Ints,
    first: int,
    last: int,
    state: DirectionState,
) -> None:
    """Add the messages over some edges to the sums of their receivers."""
    row = state.row
    for k in range(first, last):
        i, j = senders[k], receivers[k]
        for c in range(len(row)):
            row[c] = state.sent[i, c] + weights.message_bias[c]
        for f in range(len(weights.edge)):
            for c in range(len(row)):
                row[c] += edges[k, f] * weights.edge[f, c]
        for c in range(len(row)):
            state.sums[j, c] += max(row[c], np.float32(0))
        state.received[j] += 1


@borrowing_kernel
def _finish(
    weights: DirectionWeights, own: Singles, first: int, last: int, state: DirectionState
) -> None:
    """Compute the summaries of some nodes from their messages, and what they send."""
    summary, sent, sums, count = state.summary, state.sent, state.sums, state.received
    for i in range(first, last):
        if count[i]:
            for c in range(summary.shape[1]):
                total = weights.update_bias[c]
                for k in range(sums.shape[1]):
                    total += sums[i, k] / np.float32(count[i]) * weights.update[k, c]
                summary[i, c] = own[i, c] + max(total, np.float32(0))
        for k in range(sent.shape[1]):
            total = np.float32(0)
            for c in range(summary.shape[1]):
                total += summary[i, c] * weights.node[c, k]
            sent[i, k] = total
