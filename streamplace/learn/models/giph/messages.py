"""Messages through gpNets, and gradients back: many gpNets side by side, node after node.

A node hears from its senders, makes of that what it knows, and is heard itself:

    m_ij = relu(N k_i + a_ij)        message over the edge from i to j; a_ij is what the edge adds
    k_j  = o_j + relu(U mean m_ij + b)        o_j is what j knows by itself; k_j = o_j without edges

once through the graph, every node after those that it hears of, or in rounds for all at once.
As tensor operations this costs a copy of all nodes for every level of the graph.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from streamsim.jit import borrowing_kernel, inlined_kernel, kernel
from streamsim.topology import group_by
from torch import Tensor

from streamplace.model.arrays import Ints

Singles = NDArray[np.float32]
Doubles = NDArray[np.float64]


class Hearing(NamedTuple):
    """Who hears whom (X nodes, Y edges)."""

    order: Ints  # [X] every node after those that it hears of
    start: Ints  # [X + 1] the edges to node j are edge[start[j]:start[j + 1]]
    edge: Ints  # [Y]
    sender: Ints  # [Y]


class Weights(NamedTuple):
    """Matrices as [out, in]."""

    node: Singles  # N
    update: Singles  # U
    update_bias: Singles  # b


class Gradients(NamedTuple):
    """Of what nodes know by themselves, of what edges add, and of the weights."""

    own: Singles  # [X, C]
    added: Singles  # [Y, M]
    node: Doubles
    update: Doubles
    update_bias: Doubles


def hearing_of(order: Ints, sender: Ints, taker: Ints) -> Hearing:
    """Edges by the node that they lead to."""
    return Hearing(order, *group_by(taker, len(order)), sender)


class Heard(torch.autograd.Function):
    """What every node knows in the end [X, C], from what it knows by itself [X, C]."""

    @staticmethod
    def forward(
        ctx: Any,
        own: Tensor,
        added: Tensor,
        node: Tensor,
        update: Tensor,
        update_bias: Tensor,
        hearing: Hearing,
        rounds: int,
    ) -> Tensor:
        """Send messages; ``added`` [Y, M] is what the edges add to them."""
        own_rows, added_rows, *matrices = map(_rows, (own, added, node, update, update_bias))
        weights = Weights(*matrices)
        known, sent = heard(hearing, weights, own_rows, added_rows, rounds)
        ctx.heard = hearing, weights, added_rows, known, sent
        return torch.from_numpy(known[-1].copy()).to(own.device)

    @staticmethod
    def backward(ctx: Any, *outputs: Tensor) -> Any:
        """Gradients of the first five arguments."""
        (output,) = outputs
        hearing, weights, added, known, sent = ctx.heard
        found = gradients(hearing, weights, added, known, sent, _rows(output).copy())
        return (
            *(torch.from_numpy(part).to(output.device, output.dtype) for part in found),
            None,
            None,
        )


def _rows(tensor: Tensor) -> Singles:
    return np.ascontiguousarray(tensor.detach().cpu().numpy())


@kernel
def heard(
    hearing: Hearing, weights: Weights, own: Singles, added: Singles, rounds: int
) -> tuple[Singles, Singles]:
    """What nodes know [rounds + 1, X, C] and say [rounds + 1, X, M]; 0 rounds: once through."""
    known = np.empty((rounds + 1, *own.shape), np.float32)
    sent = np.empty((rounds + 1, len(own), len(weights.node)), np.float32)
    known[0] = own
    for i in range(len(own)):
        _say(weights, known[0], sent[0], i)
    total = np.empty(len(weights.node), np.float32)
    for t in range(max(1, rounds)):
        into = t + 1 if rounds else 0
        _forth(hearing, weights, own, added, sent[t], known[into], sent[into], total)
    return known, sent


@borrowing_kernel
def _forth(
    hearing: Hearing,
    weights: Weights,
    own: Singles,
    added: Singles,
    said: Singles,
    known: Singles,
    sent: Singles,
    total: Singles,
) -> None:
    """Let every node hear what was said, know, and say."""
    for j in hearing.order:
        count = _listen(hearing, said, added, j, total)
        for c in range(own.shape[1]):
            known[j, c] = own[j, c]
            if count:
                known[j, c] += max(_updated(weights, total, count, c), np.float32(0))
        _say(weights, known, sent, j)


@kernel
def gradients(
    hearing: Hearing, weights: Weights, added: Singles, known: Singles, sent: Singles, g: Singles
) -> tuple[Singles, Singles, Doubles, Doubles, Doubles]:
    """Gradients of own, added, node, update and update_bias; g [X, C] is that of the result."""
    rounds = len(known) - 1
    found = Gradients(
        np.zeros_like(g),
        np.zeros_like(added),
        np.zeros(weights.node.shape),
        np.zeros(weights.update.shape),
        np.zeros(len(weights.update_bias)),
    )
    g_sent, total = np.zeros_like(sent[0]), np.empty((2, sent.shape[2]), np.float32)
    for t in range(max(1, rounds) - 1, -1, -1):
        _back(hearing, weights, added, known[0], sent[t], g, found, g_sent, total, rounds == 0)
        if rounds:
            g[:] = 0.0
            for i in range(len(g)):
                _unsay(weights, known[t], g_sent, g, found, i)
            g_sent[:] = 0.0
    if rounds:
        found.own[:] += g
    return found.own, found.added, found.node, found.update, found.update_bias


@borrowing_kernel
def _back(
    hearing: Hearing,
    weights: Weights,
    added: Singles,
    known: Singles,
    said: Singles,
    g: Singles,
    found: Gradients,
    g_sent: Singles,
    total: Singles,
    once: bool,
) -> None:
    """Gradients of `_forth`; once through the graph, what a node says counts before it knows."""
    for at in range(len(hearing.order) - 1, -1, -1):
        j = hearing.order[at]
        if once:
            _unsay(weights, known, g_sent, g, found, j)
        for c in range(g.shape[1]):
            found.own[j, c] += g[j, c]
        count = _listen(hearing, said, added, j, total[0])
        if count:
            _unknow(weights, total, count, g, found, j)
            _unlisten(hearing, said, added, total[1], found, g_sent, j)


@inlined_kernel
def _say(weights: Weights, known: Singles, sent: Singles, i: int) -> None:
    """N k of node i."""
    for c in range(sent.shape[1]):
        total = np.float32(0)
        for k in range(known.shape[1]):
            total += weights.node[c, k] * known[i, k]
        sent[i, c] = total


@inlined_kernel
def _unsay(
    weights: Weights, known: Singles, g_sent: Singles, g: Singles, found: Gradients, i: int
) -> None:
    """Gradients of `_say`."""
    for c in range(g_sent.shape[1]):
        for k in range(known.shape[1]):
            g[i, k] += weights.node[c, k] * g_sent[i, c]
            found.node[c, k] += known[i, k] * g_sent[i, c]


@inlined_kernel
def _listen(hearing: Hearing, said: Singles, added: Singles, j: int, total: Singles) -> int:
    """Sum of the messages to node j; returns their number."""
    for c in range(len(total)):
        total[c] = 0.0
    first, last = hearing.start[j], hearing.start[j + 1]
    for at in range(first, last):
        e = hearing.edge[at]
        i = hearing.sender[e]
        for c in range(len(total)):
            total[c] += max(said[i, c] + added[e, c], np.float32(0))
    return last - first


@inlined_kernel
def _unlisten(
    hearing: Hearing,
    said: Singles,
    added: Singles,
    each: Singles,
    found: Gradients,
    g_sent: Singles,
    j: int,
) -> None:
    """Gradients of `_listen`, where each is that of every message to node j."""
    for at in range(hearing.start[j], hearing.start[j + 1]):
        e = hearing.edge[at]
        i = hearing.sender[e]
        for c in range(len(each)):
            if said[i, c] + added[e, c] > 0:
                g_sent[i, c] += each[c]
                found.added[e, c] += each[c]


@inlined_kernel
def _updated(weights: Weights, total: Singles, count: int, c: int) -> float:
    """Row c of U mean m + b."""
    row = weights.update_bias[c]
    for k in range(len(total)):
        row += weights.update[c, k] * total[k] / np.float32(count)
    return row


@inlined_kernel
def _unknow(
    weights: Weights, total: Singles, count: int, g: Singles, found: Gradients, j: int
) -> None:
    """Gradients of relu(U mean m + b) at node j; that of every message goes into total[1]."""
    for k in range(total.shape[1]):
        total[1, k] = 0.0
    for c in range(g.shape[1]):
        if _updated(weights, total[0], count, c) > 0:
            found.update_bias[c] += g[j, c]
            for k in range(total.shape[1]):
                found.update[c, k] += total[0, k] / np.float32(count) * g[j, c]
                total[1, k] += weights.update[c, k] / np.float32(count) * g[j, c]
