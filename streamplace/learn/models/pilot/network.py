"""The weights of pilot and their arithmetic in numpy: from the view of a problem to its heads.

Units pass messages along their streams a few times. With h the state of a unit, x_e the pair
features of an entry e from unit u to its peer p, and the mean over u's entries,

    m_u = mean_e relu(A h_p + B x_e),    h_u ← h_u + relu(C [h_u : m_u : mean_v h_v : n_u] + c)

where n_u is the mean over the units that will be placed after u.

`streamplace.learn.models.pilot.module` is the same in torch, for training.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from streamsim.jit import kernel

from streamplace.learn.models.pilot.measures import N_DEVICE, N_STEP
from streamplace.learn.models.pilot.rollout import Heads
from streamplace.learn.models.pilot.view import PAIR_FEATURES, UNIT_FEATURES, View

Singles = NDArray[np.float32]


class Round(NamedTuple):
    """One round of messages, matrices as [in, out]."""

    peer: Singles  # A
    pair: Singles  # B
    update: Singles  # C
    bias: Singles  # c


class Network(NamedTuple):
    """All weights, matrices as [in, out]."""

    enter: Singles
    enter_bias: Singles
    rounds: tuple[Round, ...]
    unit: Singles  # [3 H, H] of [h_u : mean : max]
    unit_bias: Singles
    content: Singles
    device: Singles
    step: Singles
    own: Singles
    mean: Singles
    bias: Singles
    out: Singles


def network_of(tensors: Mapping[str, Singles]) -> Network:
    """Network from named tensors; matrices there are [out, in], as torch has them.

    Raises
    ------
    KeyError, ValueError
        When a tensor is missing or of another shape, naming it.
    """
    width = tensors["enter.bias"].size

    def matrix(name: str, inputs: int, outputs: int = width) -> Singles:
        found = tensors[f"{name}.weight"]
        if found.shape != (outputs, inputs):
            raise ValueError(f"{name}.weight is {found.shape}, not {(outputs, inputs)}")
        return np.ascontiguousarray(found.T, np.float32)

    def bias(name: str) -> Singles:
        found = tensors[f"{name}.bias"]
        if found.shape != (width,) or not width:
            raise ValueError(f"{name}.bias is {found.shape}, not {(width,)}")
        return np.asarray(found, np.float32)

    n_rounds = sum(name.startswith("rounds.") and name.endswith("peer.weight") for name in tensors)
    return Network(
        matrix("enter", len(UNIT_FEATURES)),
        bias("enter"),
        tuple(
            Round(
                matrix(f"rounds.{r}.peer", width),
                matrix(f"rounds.{r}.pair", len(PAIR_FEATURES)),
                matrix(f"rounds.{r}.update", 4 * width),
                bias(f"rounds.{r}.update"),
            )
            for r in range(n_rounds)
        ),
        matrix("unit", 3 * width),
        bias("unit"),
        matrix("content", width),
        matrix("device", N_DEVICE),
        matrix("step", N_STEP),
        matrix("own", width),
        matrix("mean", width),
        bias("own"),
        matrix("out", width, 1)[:, 0].copy(),
    )


def heads_of(network: Network, view: View) -> Heads:
    """What the network says about the units of a problem."""
    h = _relu(product(view.units, network.enter) + network.enter_bias)
    for turn in network.rounds:
        messages = _mean_messages(
            product(h, turn.peer),
            product(view.pairs, turn.pair),
            view.level.start,
            view.level.peer,
        )
        whole = np.broadcast_to(h.mean(axis=0), h.shape)
        joined = np.concatenate([h, messages, whole, _coming_mean(h, view.order)], axis=1)
        h = h + _relu(product(joined, turn.update) + turn.bias)
    pooled = np.concatenate([h.mean(axis=0), h.max(axis=0)])
    both = np.concatenate([h, np.broadcast_to(pooled, (len(h), len(pooled)))], axis=1)
    return Heads(
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
def product(x: Singles, matrix: Singles) -> Singles:
    """Product of a matrix with zeros in it and another.

    These are small, and BLAS would spread them over threads: slow on a busy machine, and with
    results that depend on the number of threads.
    """
    out = np.zeros((len(x), matrix.shape[1]), np.float32)
    for i in range(len(x)):
        for j in range(len(matrix)):
            factor = x[i, j]
            if factor != 0:
                for k in range(matrix.shape[1]):
                    out[i, k] += factor * matrix[j, k]
    return out


@kernel
def _mean_messages(
    of_peer: Singles, of_pair: Singles, start: NDArray[np.int64], peer: NDArray[np.int32]
) -> Singles:
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
def _coming_mean(h: Singles, order: NDArray[np.int32]) -> Singles:
    """Mean state of the units that are placed after each unit."""
    mean, total = np.zeros_like(h), np.zeros(h.shape[1], np.float32)
    for t in range(len(order) - 1, -1, -1):
        u, later = order[t], np.float32(max(1, len(order) - 1 - t))
        for k in range(h.shape[1]):
            mean[u, k] = total[k] / later
            total[k] += h[u, k]
    return mean
