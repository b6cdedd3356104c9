"""Rooms: how many tuples each stream may hold, given by the user or from what flows through it."""

import numpy as np

from streamsim.arrays import Floats, Ints
from streamsim.engine.wiring import Wiring
from streamsim.instance import Instance
from streamsim.jit import kernel

TICKS = 4.0  # of full rate in a stream without latency; two would do if nothing ever swung


@kernel
def rooms(instance: Instance, wiring: Wiring, remote: Ints, delay: Ints) -> Floats:
    """Tuples that each stream may hold under one placement.

    That is one number for all streams where the user gave one. Otherwise it is what the stream
    carries at full rate in `TICKS` ticks, in its latency, and in the longer of two times: twice the
    longest latency (a sender that waits for room on one stream starves the receivers of its others
    for so long), and the longest advance of a window (whose results come all at once, while what
    shares a device or link with them waits). Into a join, it is also what the stream carries in the
    time by which the other inputs come later. Queues in proportion to their rates fill in the same
    time, so that a slow stream does not settle later than a fast one.
    """
    m = len(instance.source)
    if wiring.capacity > 0.0:
        return np.full(m, wiring.capacity)
    ticks = np.full(m, TICKS)
    for e in range(m):
        ticks[:] = np.maximum(ticks, TICKS + 2.0 * delay[e])
    for k in range(len(instance.windows)):
        ticks[:] = np.maximum(ticks, TICKS + instance.windows[k, 2] / wiring.dt)
    if np.any(wiring.joins):
        ticks += _lead(instance, wiring, remote, delay)
    return instance.tuples * (wiring.peak * wiring.dt) * (ticks + delay)


@kernel
def _lead(instance: Instance, wiring: Wiring, remote: Ints, delay: Ints) -> Floats:
    """Ticks by which what a stream brings to a join comes earlier than the last of its inputs."""
    latest = np.zeros(len(instance.rate))
    arrival = np.empty(len(instance.source))
    for e in range(len(instance.source)):
        u = instance.source[e]
        arrival[e] = latest[u] + remote[e] * (1.0 + delay[e])
        if wiring.window_of[u] >= 0:
            row = instance.windows[wiring.window_of[u]]
            arrival[e] += (row[1] + row[2]) / wiring.dt
        v = instance.target[e]
        latest[v] = max(latest[v], arrival[e])
    for e in range(len(arrival)):
        v = instance.target[e]
        arrival[e] = latest[v] - arrival[e] if wiring.joins[v] else 0.0
    return arrival
