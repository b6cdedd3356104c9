"""Capacities of streams in tuples, given by the user or derived from rates."""

import numpy as np

from streamsim.arrays import Floats, Ints
from streamsim.engine.wiring import Wiring
from streamsim.instance import Instance
from streamsim.jit import kernel

TICKS = 4.0  # capacity in ticks of full rate without latency; two suffice without oscillation


@kernel
def capacities(instance: Instance, wiring: Wiring, remote: Ints, delay: Ints) -> Floats:
    """Capacity of each stream in tuples under one placement.

    A capacity given by the user holds for all streams. Otherwise it is the number of tuples at full
    rate in `TICKS` ticks, in the stream's latency, and in the longer of two times: twice the
    longest latency (for so long a sender blocked on one stream starves the receivers of its
    others), and the longest advance of a window (whose results come all at once and delay
    everything on the same device or link). Into a join, the time by which the other inputs arrive
    later is added. Queues in proportion to their rates fill in the same time, so that a slow stream
    does not settle later than a fast one.
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
    """Ticks by which the tuples of a stream reach a join earlier than those of its last input."""
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
