"""The network of pilot in numpy and numba: from the features of a problem to `PilotHeads`.

Units pass messages along their streams a few times. With h the state of a unit, x_e the pair
features of an entry e from unit u to its peer p, and the mean over u's entries,

    m_u = mean_e relu(A h_p + B x_e),    h_u ← h_u + relu(C [h_u : m_u : mean_v h_v : n_u] + c)

where n_u is the mean over the units that will be placed after u.

`streamplace.learn.models.pilot.module` is the same in torch, for training.
"""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
from streamsim.jit import kernel

from streamplace.learn.algorithms.rows import bias_of, matrix_of, product
from streamplace.learn.models.pilot.features import PAIR_FEATURES, UNIT_FEATURES, PilotFeatures
from streamplace.learn.models.pilot.measures import N_DEVICE, N_STEP
from streamplace.learn.models.pilot.rollout import PilotHeads
from streamplace.model.arrays import Ints, Longs, Singles


class RoundWeights(NamedTuple):
    """One round of messages, matrices as [in, out]."""

    peer: Singles  # A
    pair: Singles  # B
    update: Singles  # C
    bias: Singles  # c


class PilotNetwork(NamedTuple):
    """All weights, matrices as [in, out]."""

    enter: Singles
    enter_bias: Singles
    rounds: tuple[RoundWeights, ...]
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
    return PilotNetwork(
        matrix("enter"),
        bias("enter"),
        tuple(
            RoundWeights(
                matrix(f"rounds.{r}.peer"),
                matrix(f"rounds.{r}.pair"),
                matrix(f"rounds.{r}.update"),
                bias(f"rounds.{r}.update"),
            )
            for r in range(n_rounds)
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


def heads_of(network: PilotNetwork, features: PilotFeatures) -> PilotHeads:
    """Evaluate the network on the units of a problem."""
    h = _relu(product(features.units, network.enter) + network.enter_bias)
    for turn in network.rounds:
        messages = _mean_messages(
            product(h, turn.peer),
            product(features.pairs, turn.pair),
            features.level.start,
            features.level.peer,
        )
        problem_mean = np.broadcast_to(h.mean(axis=0), h.shape)
        joined = np.concatenate(
            [h, messages, problem_mean, _mean_of_unplaced(h, features.order)], axis=1
        )
        h = h + _relu(product(joined, turn.update) + turn.bias)
    pooled = np.concatenate([h.mean(axis=0), h.max(axis=0)])
    both = np.concatenate([h, np.broadcast_to(pooled, (len(h), len(pooled)))], axis=1)
    return PilotHeads(
        product(both, network.unit) + network.unit_bias,
        product(h, network.content),
        network.device,
        network.step,
        network.own,
        network.mean,
        network.bias,
        network.out,
    )


def _relu(x: Singles) -> Singles:
    return np.maximum(x, np.float32(0))


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
