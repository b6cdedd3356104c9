"""Ranks of operators: how much of the pass is still to come after them, and how deep they are."""

import numpy as np
from numpy.typing import NDArray

from streamsim.jit import kernel
from streamsim.passes.compiled import Pass, Records

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


def upward_rank(one: Pass) -> Floats:
    """Upward rank of HEFT (Topcuoglu et al., 2002, eq. 8), shape [N], in seconds.

    rank(v) = w̄(v) + max over streams (v, u) of (c̄(v, u) + rank(u)), where w̄ is the mean over
    devices and c̄ the mean over ordered pairs of different devices.
    """
    d, streams, links = one.n_devices, one.streams, one.links
    share = np.bincount(one.devices["type"], minlength=one.work.shape[1]) / d
    pairs = max(1, d * (d - 1))
    transfer = (
        links["latency"].sum() / pairs
        + streams["size"] * (links["seconds_per_byte"].sum() / pairs)
        + streams["tuples"] * (one.gap + 2 * one.overhead)
    )
    return _longest_to_end(streams, one.work @ share, transfer)


@kernel
def _longest_to_end(streams: Records, work: Floats, transfer: Floats) -> Floats:
    rank = work.copy()
    for e in range(len(streams) - 1, -1, -1):
        u = streams[e].source
        rank[u] = max(rank[u], work[u] + transfer[e] + rank[streams[e].target])
    return rank


@kernel
def levels(source: Ints, target: Ints, n: int) -> Ints:
    """Most streams on a path to each operator from one without inputs."""
    level = np.zeros(n, np.int32)
    for e in range(len(source)):
        level[target[e]] = max(level[target[e]], level[source[e]] + 1)
    return level
