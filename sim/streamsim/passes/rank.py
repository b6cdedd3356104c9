"""Ranks of operators: their upward ranks and their levels."""

import numpy as np

from streamsim.arrays import Floats, Ints, Records
from streamsim.jit import kernel
from streamsim.passes.compiled import Pass
from streamsim.passes.sending import fixed_times, sending_times


def upward_rank(one_pass: Pass) -> Floats:
    """Upward rank of HEFT (Topcuoglu et al., 2002, eq. 8), shape [N], in seconds.

    rank(v) = w̄(v) + max over streams (v, u) of (c̄(v, u) + rank(u)), where w̄ is the mean over
    devices and c̄ the mean over ordered pairs of different devices.
    """
    d, streams, links = one_pass.n_devices, one_pass.streams, one_pass.links
    share = np.bincount(one_pass.devices["type"], minlength=one_pass.work.shape[1]) / d
    pairs = max(1, d * (d - 1))
    transfer = sending_times(
        links["latency"].sum() / pairs,
        streams["size"],
        links["seconds_per_byte"].sum() / pairs,
        fixed_times(one_pass),
    )
    return _longest_to_end(streams, one_pass.work @ share, transfer)


@kernel
def _longest_to_end(streams: Records, work: Floats, transfer: Floats) -> Floats:
    rank = work.copy()
    for e in range(len(streams) - 1, -1, -1):
        u = streams[e].source
        rank[u] = max(rank[u], work[u] + transfer[e] + rank[streams[e].target])
    return rank


@kernel
def levels(source: Ints, target: Ints, n: int) -> Ints:
    """Level of each operator: most streams on a path to it from an operator without inputs."""
    level = np.zeros(n, np.int32)
    for e in range(len(source)):
        level[target[e]] = max(level[target[e]], level[source[e]] + 1)
    return level
