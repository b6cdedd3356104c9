"""The weights of GiPH and their arithmetic for one placement.

Every node u of a gpNet has features x_u, every edge features x_vu, all scaled to [-1, 1]. With
ξ(u) the nodes from which an edge leads to u, and f a linear map and ReLU,

    y_u = W₂ relu(W₁ x_u)
    e_u = f₂(mean over v in ξ(u) of f₁([e_v : x_vu])) + y_u        (equation 1; y_u without ξ(u))

along the streams, so that e_u knows all that is upstream of it, and with weights of its own against
them. The score of a node is MLP([e_u along : e_u against]), and P(u) the softmax over what is open.

Instead of going through the graph once, all nodes can exchange messages k times (equation 4);
``sage`` is a GraphSAGE of three layers h_u ← relu(A h_u + B mean over ξ(u) of h_v), and ``plain``
scores what a node looks like by itself.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from streamsim.jit import borrowing_kernel, kernel

from streamplace.learn.models.giph.measures import N_EDGE, N_NODE, Sight
from streamplace.learn.models.giph.view import View
from streamplace.model.arrays import Ints

Singles = NDArray[np.float32]
Form = Literal["two-way", "sage", "plain"]

WIDTH = 5
"""Dimensions of a node's summary of one direction."""
HIDDEN = 16
SAGE = (16, 16, 10)
TWO_WAY, NEIGHBOURS, ALONE = range(3)
FORMS: dict[str, int] = {"two-way": TWO_WAY, "sage": NEIGHBOURS, "plain": ALONE}


class Way(NamedTuple):
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


class Layer(NamedTuple):
    """One layer of GraphSAGE."""

    own: Singles
    others: Singles
    bias: Singles


class Network(NamedTuple):
    """All weights; what a form lacks is empty."""

    form: int
    rounds: int  # of messages, 0 for once through the graph
    along: Way
    against: Way
    layers: tuple[Layer, Layer, Layer]
    hidden: Singles
    hidden_bias: Singles
    out: Singles
    out_bias: Singles

    @property
    def features(self) -> int:
        """Features that it takes of every node."""
        return n_features(FORM_NAMES[self.form], bool(len(self.along.edge)))


FORM_NAMES: tuple[Form, ...] = ("two-way", "sage", "plain")


def n_features(form: Form, edges: bool) -> int:
    """Features of a node: those of its edges are among them where messages do not carry them."""
    return N_NODE if form == "two-way" and edges else N_NODE + N_EDGE


def network_of(tensors: Mapping[str, Singles], form: Form, rounds: int) -> Network:
    """Network from named tensors; matrices there are [out, in], as torch has them."""

    def matrix(name: str) -> Singles:
        return _matrix(tensors, name)

    def bias(name: str) -> Singles:
        return _bias(tensors, name)

    def layer(name: str) -> Layer:
        return Layer(matrix(f"{name}.own"), matrix(f"{name}.others"), bias(f"{name}.own"))

    return Network(
        FORMS[form],
        rounds,
        way_of(tensors, "along"),
        way_of(tensors, "against"),
        (layer("layers.0"), layer("layers.1"), layer("layers.2")),
        matrix("hidden"),
        bias("hidden"),
        matrix("out")[:, 0].copy(),
        bias("out"),
    )


def way_of(tensors: Mapping[str, Singles], name: str) -> Way:
    """Messages in one direction, from tensors under its name."""
    message = _matrix(tensors, f"{name}.message")
    return Way(
        _matrix(tensors, f"{name}.enter"),
        _bias(tensors, f"{name}.enter"),
        _matrix(tensors, f"{name}.lift"),
        _bias(tensors, f"{name}.lift"),
        np.ascontiguousarray(message[:WIDTH]),
        np.ascontiguousarray(message[WIDTH:]),
        _bias(tensors, f"{name}.message"),
        _matrix(tensors, f"{name}.update"),
        _bias(tensors, f"{name}.update"),
    )


def _matrix(tensors: Mapping[str, Singles], name: str) -> Singles:
    """Return a matrix as [in, out], empty where there is none."""
    found = tensors.get(f"{name}.weight", np.zeros((0, 0), np.float32))
    return np.ascontiguousarray(found.T, np.float32)


def _bias(tensors: Mapping[str, Singles], name: str) -> Singles:
    return np.array(tensors.get(f"{name}.bias", np.zeros(0)), np.float32)


def shapes(form: Form, edges: bool) -> dict[str, tuple[int, ...]]:
    """Shape of every parameter of a network, by name; matrices as [out, in]."""
    features = n_features(form, edges)
    message = WIDTH + (N_EDGE if edges else 0)
    linear: dict[str, tuple[int, int]] = {}
    size = features
    if form == "two-way":
        sizes = {"enter": (features, features), "lift": (WIDTH, features)}
        sizes |= {"message": (message, message), "update": (WIDTH, message)}
        linear = {f"{way}.{n}": s for way in ("along", "against") for n, s in sizes.items()}
        size = 2 * WIDTH
    elif form == "sage":
        for i, out in enumerate(SAGE):
            linear |= {f"layers.{i}.own": (out, size), f"layers.{i}.others": (out, size)}
            size = out
    linear |= {"hidden": (HIDDEN, size), "out": (1, HIDDEN)}
    biases = {f"{n}.bias": s[:1] for n, s in linear.items() if not n.endswith("others")}
    return {**{f"{n}.weight": s for n, s in linear.items()}, **biases}


@kernel
def scores(network: Network, view: View, sight: Sight) -> Singles:
    """Score of every node [H]."""
    summary = sight.nodes
    if network.form == TWO_WAY:
        along = summaries(network.along, network.rounds, view, sight, False)
        against = summaries(network.against, network.rounds, view, sight, True)
        summary = np.concatenate((along, against), axis=1)
    elif network.form == NEIGHBOURS:
        for layer in network.layers:
            mean = _mean_of_neighbours(summary, sight)
            summary = product(summary, layer.own) + product(mean, layer.others) + layer.bias
            summary = np.maximum(summary, np.float32(0))
    hidden = product(summary, network.hidden) + network.hidden_bias
    score = np.empty(len(hidden), np.float32)
    for i in range(len(hidden)):
        total = network.out_bias[0]
        for k in range(hidden.shape[1]):
            total += max(hidden[i, k], np.float32(0)) * network.out[k]
        score[i] = total
    return score


@kernel
def product(x: Singles, matrix: Singles) -> Singles:
    """Product of two small matrices, in one order whatever the machine."""
    out = np.zeros((len(x), matrix.shape[1]), np.float32)
    for i in range(len(x)):
        for j in range(len(matrix)):
            for k in range(matrix.shape[1]):
                out[i, k] += x[i, j] * matrix[j, k]
    return out


@kernel
def summaries(way: Way, rounds: int, view: View, sight: Sight, against: bool) -> Singles:
    """What every node knows of those upstream of it, or downstream if against [H, 5]."""
    entered = np.maximum(product(sight.nodes, way.enter) + way.enter_bias, np.float32(0))
    own = product(entered, way.lift) + way.lift_bias
    senders, takers = sight.source, sight.target
    if against:
        senders, takers = sight.target, sight.source
    found, sent = own.copy(), product(own, way.node)
    sums, count = np.zeros_like(sent), np.zeros(len(own), np.int64)
    row = np.zeros(sent.shape[1], np.float32)
    n, m = len(view.order), len(sight.edges)
    for _ in range(rounds):
        sums[:], count[:] = 0, 0
        _send(way, sight.edges, senders, takers, 0, m, sent, row, sums, count)
        _finish(way, own, 0, len(own), sums, count, found, sent)
    for at in range(n if rounds == 0 else 0):
        v = view.order[n - 1 - at] if against else view.order[at]
        first, last = view.in_start[v], view.in_start[v + 1]
        if against:
            first, last = view.one.operators[v].out_start, view.one.operators[v].out_end
        for i in range(first, last):
            e = i if against else view.in_stream[i]
            begin, end = view.edge_start[e], view.edge_start[e + 1]
            _send(way, sight.edges, senders, takers, begin, end, sent, row, sums, count)
        _finish(way, own, view.node_start[v], view.node_start[v + 1], sums, count, found, sent)
    return found


@borrowing_kernel
def _send(
    way: Way,
    edges: Singles,
    senders: Ints,
    takers: Ints,
    first: int,
    last: int,
    sent: Singles,
    row: Singles,
    sums: Singles,
    count: NDArray[np.int64],
) -> None:
    """Add the messages over some edges up at those who take them."""
    for k in range(first, last):
        i, j = senders[k], takers[k]
        for c in range(len(row)):
            row[c] = sent[i, c] + way.message_bias[c]
        for f in range(len(way.edge)):
            for c in range(len(row)):
                row[c] += edges[k, f] * way.edge[f, c]
        for c in range(len(row)):
            sums[j, c] += max(row[c], np.float32(0))
        count[j] += 1


@borrowing_kernel
def _finish(
    way: Way,
    own: Singles,
    first: int,
    last: int,
    sums: Singles,
    count: NDArray[np.int64],
    found: Singles,
    sent: Singles,
) -> None:
    """Make of the messages to some nodes what they know, and what they will send."""
    for i in range(first, last):
        if count[i]:
            for c in range(found.shape[1]):
                total = way.update_bias[c]
                for k in range(sums.shape[1]):
                    total += sums[i, k] / np.float32(count[i]) * way.update[k, c]
                found[i, c] = own[i, c] + max(total, np.float32(0))
        for k in range(sent.shape[1]):
            total = np.float32(0)
            for c in range(found.shape[1]):
                total += found[i, c] * way.node[c, k]
            sent[i, k] = total


@kernel
def _mean_of_neighbours(h: Singles, sight: Sight) -> Singles:
    """Mean over the nodes from which an edge leads to each; 0 where there is none."""
    mean, count = np.zeros_like(h), np.zeros(len(h), np.int64)
    for k in range(len(sight.source)):
        i, j = sight.source[k], sight.target[k]
        count[j] += 1
        for c in range(h.shape[1]):
            mean[j, c] += h[i, c]
    for j in range(len(h)):
        for c in range(h.shape[1]):
            mean[j, c] /= np.float32(max(1, count[j]))
    return mean
