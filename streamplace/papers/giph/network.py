"""The network of GiPH in numba, for one placement.

Every node u of a gpNet has features x_u, every edge features x_vu, all scaled to [-1, 1]. With
ξ(u) the nodes from which an edge leads to u, and f a linear map and ReLU,

    y_u = W₂ relu(W₁ x_u)
    e_u = f₂(mean over v in ξ(u) of f₁([e_v : x_vu])) + y_u        (equation 1; y_u without ξ(u))

along the streams, so that e_u depends on all nodes upstream of it, and with other weights against
them. The score of a node is MLP([e_u along : e_u against]); P(u) is the softmax over open nodes.

Instead of going through the graph once, all nodes can exchange messages k times (equation 4);
``sage`` is a GraphSAGE of three layers h_u ← relu(A h_u + B mean over ξ(u) of h_v), and ``plain``
scores each node by its own features.
"""

from collections.abc import Mapping
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from streamsim.jit import kernel

from streamplace.learn.algorithms.kernels import bias_of, matrix_of, product
from streamplace.model.arrays import Singles
from streamplace.papers.giph.features import N_EDGE, N_NODE
from streamplace.papers.walks.direction import (
    WIDTH,
    DirectionWeights,
    direction_of,
    direction_sizes,
    summaries,
)
from streamplace.papers.walks.graph import NodeFeatures, NodeGraph

Form = Literal["two-way", "sage", "plain"]

HIDDEN = 16
SAGE = (16, 16, 10)
FORMS: tuple[Form, ...] = ("two-way", "sage", "plain")
TWO_WAY, NEIGHBOURS, ALONE = range(3)


class SageWeights(NamedTuple):
    """One layer of GraphSAGE."""

    own: Singles
    others: Singles
    bias: Singles


class GiphNetwork(NamedTuple):
    """All weights; those that a form lacks are empty."""

    form: int
    rounds: int  # of messages, 0 for once through the graph
    along: DirectionWeights
    against: DirectionWeights
    layers: tuple[SageWeights, SageWeights, SageWeights]
    hidden: Singles
    hidden_bias: Singles
    out: Singles
    out_bias: Singles

    @property
    def features(self) -> int:
        """Features that it takes of every node."""
        return n_features(FORMS[self.form], bool(len(self.along.edge)))


def n_features(form: Form, edges: bool) -> int:
    """Features of a node: those of its edges are among them where messages do not carry them."""
    return N_NODE if form == "two-way" and edges else N_NODE + N_EDGE


def network_of(tensors: Mapping[str, Singles], form: Form, rounds: int) -> GiphNetwork:
    """Network from named tensors; matrices there are [out, in], as torch has them."""
    matrix, bias = partial(matrix_of, tensors), partial(bias_of, tensors)

    def layer(name: str) -> SageWeights:
        return SageWeights(matrix(f"{name}.own"), matrix(f"{name}.others"), bias(f"{name}.own"))

    return GiphNetwork(
        form=FORMS.index(form),
        rounds=rounds,
        along=direction_of(tensors, "along"),
        against=direction_of(tensors, "against"),
        layers=(layer("layers.0"), layer("layers.1"), layer("layers.2")),
        hidden=matrix("hidden"),
        hidden_bias=bias("hidden"),
        out=matrix("out")[:, 0].copy(),
        out_bias=bias("out"),
    )


def shapes(form: Form, edges: bool) -> dict[str, tuple[int, ...]]:
    """Shape of every parameter of a network, by name; matrices as [out, in]."""
    size = n_features(form, edges)
    linear: dict[str, tuple[int, int]] = {}
    if form == "two-way":
        linear = direction_sizes(size, N_EDGE if edges else 0)
        size = 2 * WIDTH
    elif form == "sage":
        for i, out in enumerate(SAGE):
            linear |= {f"layers.{i}.own": (out, size), f"layers.{i}.others": (out, size)}
            size = out
    linear |= {"hidden": (HIDDEN, size), "out": (1, HIDDEN)}
    biases = {f"{n}.bias": s[:1] for n, s in linear.items() if not n.endswith("others")}
    return {**{f"{n}.weight": s for n, s in linear.items()}, **biases}


@kernel
def scores(network: GiphNetwork, graph: NodeGraph, features: NodeFeatures) -> Singles:
    """Score of every node [H]."""
    summary = features.nodes
    if network.form == TWO_WAY:
        along = summaries(network.along, network.rounds, graph, features, False)
        against = summaries(network.against, network.rounds, graph, features, True)
        summary = np.concatenate((along, against), axis=1)
    elif network.form == NEIGHBOURS:
        for layer in network.layers:
            mean = _mean_of_neighbours(summary, features)
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
def _mean_of_neighbours(h: Singles, features: NodeFeatures) -> Singles:
    """Mean over the nodes from which an edge leads to each; 0 where there is none."""
    mean, count = np.zeros_like(h), np.zeros(len(h), np.int64)
    for k in range(len(features.source)):
        i, j = features.source[k], features.target[k]
        count[j] += 1
        for c in range(h.shape[1]):
            mean[j, c] += h[i, c]
    for j in range(len(h)):
        for c in range(h.shape[1]):
            mean[j, c] /= np.float32(max(1, count[j]))
    return mean
