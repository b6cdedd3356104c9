"""The network of the policy that rebuilds schedules, in numba: a logit for every device.

With x_a the features of device a, s those of the step, the mean over the open devices, and all
weights learned,

    h_a = relu(A x_a + B s + b)
    g_a = relu(C h_a + D mean_b h_b + c)
    logit_a = o · g_a + k · x_a
"""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
from streamsim.jit import inlined_kernel, kernel
from streamsim.rows import copy_row

from streamplace.learn.algorithms.rows import add_multiple, bias_of, matrix_of
from streamplace.learn.models.pilot_makespan.measures import N_DEVICE, N_STEP
from streamplace.model.arrays import Bools, Floats, Singles


class PilotMakespanNetwork(NamedTuple):
    """All weights, matrices as [in, out]."""

    device: Singles  # A [F, H]
    step: Singles  # B [S, H]
    bias: Singles  # b
    own: Singles  # C
    mean: Singles  # D
    second: Singles  # c
    out: Singles  # o
    skip: Singles  # k [F]


def shapes(width: int) -> dict[str, tuple[int, ...]]:
    """Shapes of the named tensors; matrices there are [out, in], as torch has them."""
    return {
        "device.weight": (width, N_DEVICE),
        "device.bias": (width,),
        "step.weight": (width, N_STEP),
        "own.weight": (width, width),
        "own.bias": (width,),
        "mean.weight": (width, width),
        "out.weight": (1, width),
        "skip.weight": (1, N_DEVICE),
    }


def network_of(tensors: Mapping[str, Singles]) -> PilotMakespanNetwork:
    """Network from named tensors."""
    matrix, bias = partial(matrix_of, tensors), partial(bias_of, tensors)
    return PilotMakespanNetwork(
        matrix("device"),
        matrix("step"),
        bias("device"),
        matrix("own"),
        matrix("mean"),
        bias("own"),
        matrix("out")[:, 0].copy(),
        matrix("skip")[:, 0].copy(),
    )


@kernel
def preferences(
    net: PilotMakespanNetwork,
    rows: Singles,
    row: Singles,
    may: Bools,
    first: Singles,
    logits: Floats,
) -> None:
    """Write the preference for every device [D], -inf where it is not open.

    ``first`` [D, H] is a buffer.
    """
    base, mean = net.bias.copy(), np.zeros(len(net.out), np.float32)
    for f in range(N_STEP):
        add_multiple(base, net.step[f], row[f])
    count = np.float32(may.sum())
    for a in range(len(may)):
        if may[a]:
            copy_row(first[a], base)
            for f in range(N_DEVICE):
                add_multiple(first[a], net.device[f], rows[a, f])
            _rectify(first[a])
            add_multiple(mean, first[a], 1 / count)
    copy_row(base, net.second)
    for j in range(len(mean)):
        add_multiple(base, net.mean[j], mean[j])
    for a in range(len(may)):
        logits[a] = _preference(net, rows[a], first[a], base) if may[a] else -np.inf


@kernel
def _preference(net: PilotMakespanNetwork, device: Singles, first: Singles, base: Singles) -> float:
    second, total = base.copy(), np.float32(0)
    for j in range(len(first)):
        add_multiple(second, net.own[j], first[j])
    _rectify(second)
    for k in range(len(second)):
        total += second[k] * net.out[k]
    for f in range(N_DEVICE):
        total += device[f] * net.skip[f]
    return float(total)


@inlined_kernel
def _rectify(row: Singles) -> None:
    for k in range(len(row)):
        row[k] = max(row[k], np.float32(0))
