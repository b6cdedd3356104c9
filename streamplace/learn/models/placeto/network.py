"""The weights of Placeto and their arithmetic for one visit.

What an operator knows, e_u, comes about as in `streamplace.learn.models.giph.network`, on the graph
of the operators and without features of streams. With f and g a linear map and ReLU each, the
scores of the devices for operator v are

    MLP([e_v : g₁(mean f₁(e_u) upstream of v) : g₂(… downstream of v) : g₃(… all others)])
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from streamsim.jit import kernel

from streamplace.learn.models.giph.measures import Sight
from streamplace.learn.models.giph.network import WIDTH, Singles, Way, product, summaries, way_of
from streamplace.learn.models.giph.view import View
from streamplace.model.arrays import Bools

HIDDEN = 32
GROUPS = ("upstream", "downstream", "beside")
SUMMARY = 2 * WIDTH


class Group(NamedTuple):
    """How operators are pooled; matrices as [in, out]."""

    each: Singles  # f
    each_bias: Singles
    pooled: Singles  # g
    pooled_bias: Singles


class Network(NamedTuple):
    """All weights; matrices as [in, out]."""

    along: Way
    against: Way
    groups: tuple[Group, Group, Group]
    hidden: Singles
    hidden_bias: Singles
    out: Singles
    out_bias: Singles  # [D] one for each device that the model knows


def network_of(tensors: Mapping[str, Singles]) -> Network:
    """Network from named tensors; matrices there are [out, in], as torch has them."""

    def matrix(name: str) -> Singles:
        return np.ascontiguousarray(tensors[f"{name}.weight"].T, np.float32)

    def bias(name: str) -> Singles:
        return np.array(tensors[f"{name}.bias"], np.float32)

    def group(name: str) -> Group:
        each, pooled = f"{name}.each", f"{name}.pooled"
        return Group(matrix(each), bias(each), matrix(pooled), bias(pooled))

    upstream, downstream, beside = map(group, GROUPS)
    return Network(
        way_of(tensors, "along"),
        way_of(tensors, "against"),
        (upstream, downstream, beside),
        matrix("hidden"),
        bias("hidden"),
        matrix("out"),
        bias("out"),
    )


def shapes(features: int, devices: int) -> dict[str, tuple[int, ...]]:
    """Shape of every parameter of a network, by name; matrices as [out, in]."""
    way = {"enter": (features, features), "lift": (WIDTH, features)}
    way |= {"message": (WIDTH, WIDTH), "update": (WIDTH, WIDTH)}
    linear = {f"{w}.{name}": shape for w in ("along", "against") for name, shape in way.items()}
    linear |= {f"{g}.{name}": (SUMMARY, SUMMARY) for g in GROUPS for name in ("each", "pooled")}
    linear |= {"hidden": (HIDDEN, (1 + len(GROUPS)) * SUMMARY), "out": (devices, HIDDEN)}
    biases = {f"{name}.bias": shape[:1] for name, shape in linear.items()}
    return {**{f"{name}.weight": shape for name, shape in linear.items()}, **biases}


@kernel
def scores(network: Network, view: View, sight: Sight, upstream: Bools, v: int) -> Singles:
    """Score of every device [D] for operator v."""
    along = summaries(network.along, 0, view, sight, False)
    against = summaries(network.against, 0, view, sight, True)
    known = np.concatenate((along, against), axis=1)
    n = len(known)
    group = np.full(n, 2, np.int64)
    for u in range(n):
        if upstream[v, u]:
            group[u] = 0
        elif upstream[u, v]:
            group[u] = 1
    group[v] = -1
    joined = np.zeros((1, (1 + len(GROUPS)) * known.shape[1]), np.float32)
    joined[0, : known.shape[1]] = known[v]
    size = known.shape[1]
    for g, part in enumerate(network.groups):
        joined[0, (1 + g) * size : (2 + g) * size] = _pooled(part, known, group, g)
    hidden = np.maximum(product(joined, network.hidden) + network.hidden_bias, np.float32(0))
    return (product(hidden, network.out) + network.out_bias)[0]


@kernel
def _pooled(part: Group, known: Singles, group: NDArray[np.int64], g: int) -> Singles:
    """What is made of the operators of a group."""
    each = np.maximum(product(known, part.each) + part.each_bias, np.float32(0))
    mean, count = np.zeros((1, each.shape[1]), np.float32), 0
    for u in range(len(each)):
        if group[u] == g:
            count += 1
            mean[0] += each[u]
    mean /= np.float32(max(1, count))
    return np.maximum(product(mean, part.pooled) + part.pooled_bias, np.float32(0))[0]
