"""The network of pilot in numpy and numba: from the features of a problem to `PilotHeads`.

Units pass messages along their streams a few times. With h the state of a unit, x_e the pair
features of an entry e from unit u to its peer p, and the mean over u's entries,

    m_u = mean_e relu(A h_p + B x_e),    h_u ← h_u + relu(C [h_u : m_u : mean_v h_v : n_u] + c)

where n_u is the mean over the units that will be placed after u.

`streamplace.learn.models.pilot.module` is the same in torch, for training.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
from streamsim.jit import kernel

from streamplace.learn.algorithms.rows import add_multiple, bias_of, matrix_of, product
from streamplace.learn.models.pilot.features import PAIR_FEATURES, UNIT_FEATURES, PilotFeatures
from streamplace.learn.models.pilot.measures import N_DEVICE, N_STEP
from streamplace.learn.models.pilot.rollout import PilotHeads
from streamplace.model.arrays import Ints, Longs, Singles


class RoundWeights(NamedTuple):
    """All R rounds of messages, matrices as [in, out]."""

    peer: Singles  # [R, H, H] A
    pair: Singles  # [R, 6, H] B
    update: Singles  # [R, 4 H, H] C
    bias: Singles  # [R, H] c


class PilotNetwork(NamedTuple):
    """All weights, matrices as [in, out]."""

    enter: Singles
    enter_bias: Singles
    rounds: RoundWeights
    unit: Singles  # [3 H, H] of [h_u : mean : max]
    unit_bias: Singles
    content: Singles
    device: Singles
    step: Singles
    own: Singles
    mean: Singles
    bias: Singles
    out: Singles


def shapes(width: int, rounds: int) -> dict[str, tuple[int, ...]]:
    """Shapes of the named tensors; matrices there are [out, in], as torch has them."""
    square = (width, width)
    linear = {"enter": (width, len(UNIT_FEATURES)), "unit": (width, 3 * width), "own": square}
    plain = {"content": square, "device": (width, N_DEVICE), "step": (width, N_STEP)}
    plain |= {"mean": square, "out": (1, width)}
    for r in range(rounds):
        linear[f"rounds.{r}.update"] = (width, 4 * width)
        plain |= {f"rounds.{r}.peer": square, f"rounds.{r}.pair": (width, len(PAIR_FEATURES))}
    biases = {f"{name}.bias": (width,) for name in linear}
    return {**{f"{name}.weight": shape for name, shape in (linear | plain).items()}, **biases}


def network_of(tensors: Mapping[str, Singles]) -> PilotNetwork:
    """Network from named tensors."""
    matrix, bias = partial(matrix_of, tensors), partial(bias_of, tensors)
    n_rounds = sum(name.endswith("peer.weight") for name in tensors)

    def stacked(read: Callable[[str], Singles], name: str, empty: tuple[int, ...]) -> Singles:
        rounds = [read(f"rounds.{r}.{name}") for r in range(n_rounds)]
        return np.stack(rounds) if rounds else np.zeros(empty, np.float32)

    return PilotNetwork(
        matrix("enter"),
        bias("enter"),
        RoundWeights(
            stacked(matrix, "peer", (0, 0, 0)),
            stacked(matrix, "pair", (0, 0, 0)),
            stacked(matrix, "update", (0, 0, 0)),
            stacked(bias, "update", (0, 0)),
        ),
        matrix("unit"),
        bias("unit"),
        matrix("content"),
        matrix("device"),
        matrix("step"),
        matrix("own"),
        matrix("mean"),
        bias("own"),
        matrix("out")[:, 0].copy(),
    )


@kernel
def heads_of(network: PilotNetwork, features: PilotFeatures) -> PilotHeads:
    """Evaluate the network on the units of a problem."""
    h, level, turns = product(features.units, network.enter), features.level, network.rounds
    width = h.shape[1]
    _add_and_rectify(h, network.enter_bias)
    for r in range(len(turns.bias)):
        of_peer, of_pair = product(h, turns.peer[r]), product(features.pairs, turns.pair[r])
        joined = np.empty((len(h), 4 * width), np.float32)
        joined[:, :width] = h
        joined[:, width : 2 * width] = _mean_messages(of_peer, of_pair, level.start, level.peer)
        joined[:, 2 * width : 3 * width] = _pooled(h)[:width]
        joined[:, 3 * width :] = _mean_of_unplaced(h, features.order)
        update = product(joined, turns.update[r])
        _add_and_rectify(update, turns.bias[r])
        h += update
    both = np.empty((len(h), 3 * width), np.float32)
    both[:, :width] = h
    both[:, width:] = _pooled(h)
    unit = product(both, network.unit)
    for u in range(len(unit)):
        add_multiple(unit[u], network.unit_bias, np.float32(1))
    return PilotHeads(
        unit,
        product(h, network.content),
        network.device,
        network.step,
        network.own,
        network.mean,
        network.bias,
        network.out,
    )


@kernel
def _add_and_rectify(x: Singles, bias: Singles) -> None:
    for i in range(len(x)):
        for k in range(len(bias)):
            x[i, k] = max(x[i, k] + bias[k], np.float32(0))


@kernel
def _pooled(h: Singles) -> Singles:
    """Mean and largest state [2 H] of all units."""
    width = h.shape[1]
    pooled = np.zeros(2 * width, np.float32)
    pooled[width:] = -np.inf
    for row in h:
        for k in range(width):
            pooled[k] += row[k]
            pooled[width + k] = max(pooled[width + k], row[k])
    for k in range(width):
        pooled[k] /= np.float32(len(h))
    return pooled


@kernel
def _mean_messages(of_peer: Singles, of_pair: Singles, start: Longs, peer: Ints) -> Singles:
    """Mean over the entries of every unit of relu(of_peer + of_pair)."""
    mean = np.zeros_like(of_peer)
    for u in range(len(mean)):
        for e in range(start[u], start[u + 1]):
            for k in range(mean.shape[1]):
                mean[u, k] += max(of_peer[peer[e], k] + of_pair[e, k], np.float32(0))
        for k in range(mean.shape[1]):
            mean[u, k] /= np.float32(max(1, start[u + 1] - start[u]))
    return mean


@kernel
def _mean_of_unplaced(h: Singles, order: Ints) -> Singles:
    """Mean state of the units that are placed after each unit."""
    mean, total = np.zeros_like(h), np.zeros(h.shape[1], np.float32)
    for t in range(len(order) - 1, -1, -1):
        u, later = order[t], np.float32(max(1, len(order) - 1 - t))
        for k in range(h.shape[1]):
            mean[u, k] = total[k] / later
            total[k] += h[u, k]
    return mean
