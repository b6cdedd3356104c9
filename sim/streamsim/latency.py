"""Latency of one tuple in an empty system: the longest path, in seconds."""

import numpy as np
from numpy.typing import ArrayLike

from streamsim.arrays import Floats, Ints
from streamsim.instance import Instance, writable
from streamsim.jit import kernel
from streamsim.loads import wire_between
from streamsim.passes.sending import sending_seconds


def latencies(instance: Instance, placements: ArrayLike) -> Floats:
    """Seconds from a source to the sink that is reached last, for each placement [B, N].

    T(v) = c(v) + max over streams (u, v) of T(u) + L + g + 2·o + payload · (G + 2·o'), where the
    network terms are 0 within a device, G is that of the slowest of link and network cards, and o'
    is the overhead per byte. Windows are assumed to emit at once.

    Examples
    --------
    >>> from streamsim import build_instance
    >>> instance = build_instance(rate=[100, 0], seconds=[[1e-3], [5e-3]], source=[0], target=[1],
    ...                           payload=[20_000], device_type=[0, 0],
    ...                           seconds_per_byte=[[0, 1e-6], [1e-6, 0]])
    >>> latencies(instance, [[0, 0], [0, 1]]).round(6).tolist()
    [0.006, 0.026]
    """
    batch = writable(placements)
    out = np.empty(len(batch))
    _latencies(instance, batch, out)
    return out


@kernel
def _latencies(instance: Instance, placements: Ints, out: Floats) -> None:
    n = len(instance.rate)
    arrival = np.empty(n)
    per_tuple, per_byte = instance.gap + 2.0 * instance.overhead, 2.0 * instance.overhead_per_byte
    for i in range(len(placements)):
        place = placements[i]
        arrival[:] = 0.0
        last = 0.0
        for v in instance.order:
            done = arrival[v] + instance.seconds[v, instance.device_type[place[v]]]
            last = max(last, done)
            for e in range(instance.out_start[v], instance.out_end[v]):
                a, b = place[v], place[instance.target[e]]
                at = done
                if a != b:
                    latency, wire = instance.latency[a, b], wire_between(instance, a, b)
                    size = instance.payload[e]
                    fixed_s = per_tuple + size * per_byte
                    at += sending_seconds(latency, size, wire, fixed_s)
                arrival[instance.target[e]] = max(arrival[instance.target[e]], at)
        out[i] = last
