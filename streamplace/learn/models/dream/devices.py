"""What a device is and holds under the first decisions, for decoders that tell devices by it.

Loads are in yardsticks, see `peak_yardstick`. Nothing depends on the number of a device, nor on
how many there are.

Shapes: G graphs, S samples of each, N operators, D devices, F features of a device.
"""

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from streamplace.learn.numba_kernels.jit import kernel
from streamplace.model.arrays import Array


class DeviceTrait(IntEnum):
    """Features of a device for the next operator, by column; the last ones are of the decision."""

    LOAD = 0
    LOAD_AFTER = 1
    TOO_MUCH_AFTER = 2
    LINK_AFTER = 3
    LINK_TOO_MUCH_AFTER = 4
    FLOW_FROM = 5
    SHARE_OF_FLOW = 6
    SHARE_OF_UPSTREAM = 7
    FLOW_CUT = 8
    FLOW_LOOSE = 9
    FLOW_OUT = 10
    EMPTY = 11
    PREVIOUS = 12
    SPEED = 13
    PEAK_GROWTH = 14
    ROOM_OVER_COMING = 15
    PEAK = 16
    COMING = 17
    COMING_OVER_ROOM = 18
    USED = 19


N_FEATURES = len(DeviceTrait)
N_READ = 4 * N_FEATURES
"""Inputs of a decision: features in the mean, at least and at most, and those upstream."""
MOST = 4.0
"""Largest value of a feature."""
LEAST = 1e-3
"""Added to a load that others are divided by."""


class DeviceCosts(NamedTuple):
    """Costs of graphs in the order of decision; of length 0 where devices are told by number."""

    load: Array  # [G, N, D]
    least: Array  # [G, N] load where it is least
    coming: Array  # [G, N] sum of the least loads from this operator on
    upstream: Array  # [G, N, N] weights that average over the upstream operators
    inbound: Array  # [G, N, N] load of a link of usual speed, from the column's operator
    sent: Array  # [G, N] sum of these over all rows
    wire: Array  # [G, D, D] seconds per byte over those of a link of usual speed
    away: Array  # [G, D] mean of these over the links out of a device


class DeviceLoads(NamedTuple):
    """Loads under the first decisions."""

    device: Array  # [G, S, D]
    link: Array  # [G, S, D, D]
    loose: Array  # [G, S, D] flow from a device to operators that have none yet
    peak: Array  # [G, S]


def no_loads(shape: tuple[int, int, int], kind: Any) -> DeviceLoads:
    """Loads of this shape (G, S, D) before the first decision."""
    devices = shape[2]
    arrays = np.zeros(shape, kind), np.zeros((*shape, devices), kind), np.zeros(shape, kind)
    return DeviceLoads(*arrays, np.zeros(shape[:2], kind))


@kernel
def carry(loads: DeviceLoads, costs: DeviceCosts, graph: int, sample: int, row: Array) -> None:
    """Add the last decision of a row [t] of devices."""
    v, to = len(row) - 1, row[-1]
    device, link = loads.device[graph, sample], loads.link[graph, sample]
    loose, wire = loads.loose[graph, sample], costs.wire[graph]
    device[to] += costs.load[graph, v, to]
    peak = max(loads.peak[graph, sample], device[to])
    for other in range(v):
        flow, at = costs.inbound[graph, v, other], row[other]
        if flow > 0:
            loose[at] -= flow
            if at != to:
                link[at, to] += flow * wire[at, to]
                peak = max(peak, link[at, to])
    loose[to] += costs.sent[graph, v]
    loads.peak[graph, sample] = peak


@kernel
def describe(
    features: Array,
    loads: DeviceLoads,
    costs: DeviceCosts,
    graph: int,
    sample: int,
    row: Array,
    is_open: Array,
) -> None:
    """Write the features [D, F] of the open devices for the operator after a row of decisions."""
    v, n_devices = len(row), len(is_open)
    device, link = loads.device[graph, sample], loads.link[graph, sample]
    wire, away, coming = costs.wire[graph], costs.away[graph], costs.coming[graph, v]
    peak = loads.peak[graph, sample]
    flow, share, used = np.zeros(n_devices), np.zeros(n_devices), np.zeros(n_devices)
    for other in range(v):
        flow[row[other]] += costs.inbound[graph, v, other]
        share[row[other]] += costs.upstream[graph, v, other]
        used[row[other]] = 1
    exists = costs.load[graph, v] < np.inf
    whole, free = flow.sum(), 0.0
    for a in range(n_devices):
        free += max(0.0, 1 - device[a]) if exists[a] else 0.0
    senders = np.flatnonzero(flow)
    for a in range(n_devices):
        if not is_open[a]:
            continue
        own = costs.load[graph, v, a]
        after, worst, cut = device[a] + own, 0.0, 0.0
        for b in senders:
            if b != a:
                more = flow[b] * wire[b, a]
                worst, cut = max(worst, link[b, a] + more), cut + more
        x = features[a]
        x[DeviceTrait.LOAD] = min(MOST, device[a])
        x[DeviceTrait.LOAD_AFTER] = min(MOST, after)
        x[DeviceTrait.TOO_MUCH_AFTER] = min(MOST, max(0.0, after - 1))
        x[DeviceTrait.LINK_AFTER] = min(MOST, worst)
        x[DeviceTrait.LINK_TOO_MUCH_AFTER] = min(MOST, max(0.0, worst - 1))
        x[DeviceTrait.FLOW_FROM] = min(MOST, flow[a])
        x[DeviceTrait.SHARE_OF_FLOW] = flow[a] / whole if whole > 0 else 0.0
        x[DeviceTrait.SHARE_OF_UPSTREAM] = share[a]
        x[DeviceTrait.FLOW_CUT] = min(MOST, cut)
        x[DeviceTrait.FLOW_LOOSE] = min(MOST, loads.loose[graph, sample, a] * away[a])
        x[DeviceTrait.FLOW_OUT] = min(MOST, costs.sent[graph, v] * away[a])
        x[DeviceTrait.EMPTY] = 1 - used[a]
        x[DeviceTrait.PREVIOUS] = v > 0 and a == row[-1]
        x[DeviceTrait.SPEED] = costs.least[graph, v] / own if own > 0 else 1.0
        x[DeviceTrait.PEAK_GROWTH] = min(MOST, max(0.0, max(after, worst) - peak))
        x[DeviceTrait.ROOM_OVER_COMING] = min(MOST, max(0.0, 1 - after) / (coming + LEAST))
        x[DeviceTrait.PEAK] = min(MOST, peak)
        x[DeviceTrait.COMING] = coming / (costs.coming[graph, 0] + 1e-9)
        x[DeviceTrait.COMING_OVER_ROOM] = min(MOST, coming / (free + LEAST))
        x[DeviceTrait.USED] = used.sum() / exists.sum()


@kernel
def summarise(
    read: Array, features: Array, costs: DeviceCosts, graph: int, row: Array, is_open: Array
) -> None:
    """Write the inputs [4 F] of a decision: mean, least and most of the open devices, upstream."""
    n, v = features.shape[1], len(row)
    mean, least, most = read[:n], read[n : 2 * n], read[2 * n : 3 * n]
    upstream, opened = read[3 * n :], np.flatnonzero(is_open)
    least[:], most[:] = np.inf, -np.inf
    for a in opened:
        for f in range(n):
            x = features[a, f]
            mean[f] += x / len(opened)
            least[f], most[f] = min(least[f], x), max(most[f], x)
    for other in range(v):
        weight, a = costs.upstream[graph, v, other], row[other]
        if weight > 0 and is_open[a]:
            for f in range(n):
                upstream[f] += weight * features[a, f]
