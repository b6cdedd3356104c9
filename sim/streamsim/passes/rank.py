"""Ranks of operators: their upward ranks and their levels."""

import numpy as np

from streamsim.arrays import Floats, Ints
from streamsim.jit import kernel
from streamsim.passes.compiled import Pass
from streamsim.passes.sending import fixed_seconds, sending_seconds


def upward_rank(one_pass: Pass) -> Floats:
    """Upward rank of HEFT (Topcuoglu et al., 2002, eq. 8), shape [N], in seconds.

    rank(v) = w̄(v) + max over streams (v, u) of (c̄(v, u) + rank(u)), where w̄ is the mean over
    devices and c̄ the mean over ordered pairs of different devices.
    """
    d, links = one_pass.n_devices, one_pass.links
    share = np.bincount(one_pass.devices["type"], minlength=one_pass.work.shape[1]) / d
    pairs = max(1, d * (d - 1))
    latency, wire = links["latency"].sum() / pairs, links["seconds_per_byte"].sum() / pairs
    return _longest_to_end(one_pass, one_pass.work @ share, float(latency), float(wire))


@kernel
def _longest_to_end(one_pass: Pass, work: Floats, latency: float, wire: float) -> Floats:
    rank = work.copy()
    for e in range(len(one_pass.streams) - 1, -1, -1):
        stream = one_pass.streams[e]
        transfer = sending_seconds(latency, stream.size, wire, fixed_seconds(one_pass, e))
        u = stream.source
        rank[u] = max(rank[u], work[u] + transfer + rank[stream.target])
    return rank


@kernel
def levels(source: Ints, target: Ints, n: int) -> Ints:
    """Level of each operator: most streams on a path to it from an operator without inputs."""
    level = np.zeros(n, np.int32)
    for e in range(len(source)):
        level[target[e]] = max(level[target[e]], level[source[e]] + 1)
    return level
