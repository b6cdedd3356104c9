"""The network of Placeto in numba, for one visit.

The embedding e_u of an operator is computed as in `streamplace.papers.walks.direction`, on the
graph of the operators and without features of streams. With f and g a linear map and ReLU each, the
scores of the devices for operator v are

    MLP([e_v : g₁(mean f₁(e_u) upstream of v) : g₂(… downstream of v) : g₃(… all others)])
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from streamsim.jit import kernel
from streamsim.rows import copy_row

from streamplace.learn.algorithms.kernels import bias_of, matrix_of, product
from streamplace.model.arrays import Bools, Longs, Singles
from streamplace.papers.walks.direction import (
    WIDTH,
    DirectionWeights,
    direction_of,
    direction_sizes,
    summaries,
)
from streamplace.papers.walks.graph import NodeFeatures, NodeGraph

HIDDEN = 32
GROUPS = ("upstream", "downstream", "beside")
SUMMARY = 2 * WIDTH


class PoolWeights(NamedTuple):
    """How operators are pooled; matrices as [in, out]."""

    each: Singles  # f
    each_bias: Singles
    pooled: Singles  # g
    pooled_bias: Singles


class PlacetoNetwork(NamedTuple):
    """All weights; matrices as [in, out]."""

    along: DirectionWeights
    against: DirectionWeights
    groups: tuple[PoolWeights, PoolWeights, PoolWeights]
    hidden: Singles
    hidden_bias: Singles
    out: Singles
    out_bias: Singles  # [D] one for each device that the model knows


def network_of(tensors: Mapping[str, Singles]) -> PlacetoNetwork:
    """Network from named tensors; matrices there are [out, in], as torch has them."""

    def linear(name: str) -> tuple[Singles, Singles]:
        return matrix_of(tensors, name), bias_of(tensors, name)

    def pool(name: str) -> PoolWeights:
        return PoolWeights(*linear(f"{name}.each"), *linear(f"{name}.pooled"))

    upstream, downstream, beside = map(pool, GROUPS)
    return PlacetoNetwork(
        along=direction_of(tensors, "along"),
        against=direction_of(tensors, "against"),
        groups=(upstream, downstream, beside),
        hidden=matrix_of(tensors, "hidden"),
        hidden_bias=bias_of(tensors, "hidden"),
        out=matrix_of(tensors, "out"),
        out_bias=bias_of(tensors, "out"),
    )


def shapes(features: int, devices: int) -> dict[str, tuple[int, ...]]:
    """Shape of every parameter of a network, by name; matrices as [out, in]."""
    linear = direction_sizes(features, 0)
    linear |= {f"{g}.{name}": (SUMMARY, SUMMARY) for g in GROUPS for name in ("each", "pooled")}
    linear |= {"hidden": (HIDDEN, (1 + len(GROUPS)) * SUMMARY), "out": (devices, HIDDEN)}
    biases = {f"{name}.bias": shape[:1] for name, shape in linear.items()}
    return {**{f"{name}.weight": shape for name, shape in linear.items()}, **biases}


@kernel
def scores(
    network: PlacetoNetwork, graph: NodeGraph, features: NodeFeatures, upstream: Bools, v: int
) -> Singles:
    """Score of every device [D] for operator v."""
    along = summaries(network.along, 0, graph, features, False)
    against = summaries(network.against, 0, graph, features, True)
    states = np.concatenate((along, against), axis=1)
    n = len(states)
    group = np.full(n, 2, np.int64)
    for u in range(n):
        if upstream[v, u]:
            group[u] = 0
        elif upstream[u, v]:
            group[u] = 1
    group[v] = -1
    joined = np.zeros((1, (1 + len(GROUPS)) * states.shape[1]), np.float32)
    copy_row(joined[0, : states.shape[1]], states[v])
    size = states.shape[1]
    for g, part in enumerate(network.groups):
        copy_row(joined[0, (1 + g) * size : (2 + g) * size], _pooled(part, states, group, g))
    hidden = np.maximum(product(joined, network.hidden) + network.hidden_bias, np.float32(0))
    return (product(hidden, network.out) + network.out_bias)[0]


@kernel
def _pooled(part: PoolWeights, states: Singles, group: Longs, g: int) -> Singles:
    """Pooled embedding of a group of operators."""
    each = np.maximum(product(states, part.each) + part.each_bias, np.float32(0))
    mean, count = np.zeros((1, each.shape[1]), np.float32), 0
    for u in range(len(each)):
        if group[u] == g:
            count += 1
            for k in range(each.shape[1]):
                mean[0, k] += each[u, k]
    mean /= np.float32(max(1, count))
    return np.maximum(product(mean, part.pooled) + part.pooled_bias, np.float32(0))[0]
