"""NICs: progressive filling for streams that share links, egress and ingress caps."""

from typing import NamedTuple

import numpy as np

from streamsim.arrays import Floats, Indices, Ints
from streamsim.instance import Instance
from streamsim.jit import inlined_kernel, kernel


class Nics(NamedTuple):
    """Resources that each of the R remote streams shares, in the order of ``link_streams``.

    The P resources are the links in use, then egress and ingress of every device. All arrays are
    empty if no NIC is capped.
    """

    resources: Ints  # [R, 3] link, egress, ingress
    seconds: Floats  # [R, 3] for which a tuple occupies each of them
    weight: Floats  # [R] sum of these
    demand: Floats  # [R] tuples in the send buffer
    granted: Floats  # [R] tuples that may move this tick
    active: Ints  # [R] 1 while a stream may still gain
    left: Floats  # [P] seconds not yet granted
    load: Floats  # [P] seconds taken per second gained by every active stream


@kernel
def nic_resources(
    instance: Instance, placement: Ints, wire: Floats, link_start: Indices, link_streams: Indices
) -> Nics:
    """Compile the resources that remote streams share under one placement."""
    capped = np.any(instance.egress > 0.0) or np.any(instance.ingress > 0.0)
    r = len(link_streams) if capped else 0
    links, d = len(link_start) - 1, len(instance.cores)
    resources, seconds = np.empty((r, 3), np.int32), np.empty((r, 3))
    link = 0
    for i in range(r):
        if i == link_start[link + 1]:
            link += 1
        e = link_streams[i]
        a, b = placement[instance.source[e]], placement[instance.target[e]]
        resources[i, 0], seconds[i, 0] = link, wire[e]
        resources[i, 1], seconds[i, 1] = links + a, instance.payload[e] * instance.egress[a]
        resources[i, 2], seconds[i, 2] = links + d + b, instance.payload[e] * instance.ingress[b]
    p = links + 2 * d if capped else 0
    return Nics(
        resources,
        seconds,
        seconds.sum(axis=1),
        np.empty(r),
        np.empty(r),
        np.empty(r, np.int32),
        np.empty(p),
        np.empty(p),
    )


@inlined_kernel
def grant(dt: float, nics: Nics) -> None:
    """Divide ``dt`` seconds of every resource among the streams, given their demand.

    Max-min fairness by progressive filling: all streams gain occupied seconds (of link and NICs
    together) at the same pace; those whose buffer is empty or that meet an exhausted resource stop.
    """
    nics.left[:] = dt
    active = 0
    for i in range(len(nics.demand)):
        free = nics.weight[i] <= 0.0 or nics.demand[i] <= 0.0
        nics.granted[i] = nics.demand[i] if free else 0.0
        nics.active[i] = 0 if free else 1
        active += nics.active[i]
    for _ in range(len(nics.demand) + len(nics.left)):  # each pass stops a stream
        if active == 0:
            break
        pace = _pace(nics)
        for p in range(len(nics.left)):
            nics.left[p] -= pace * nics.load[p]
        active = _gain(pace, 1e-12 * dt, nics)


@inlined_kernel
def _pace(nics: Nics) -> float:
    """Seconds that every active stream can gain until the first has to stop."""
    pace = np.inf
    nics.load[:] = 0.0
    for i in range(len(nics.demand)):
        if nics.active[i]:
            pace = min(pace, (nics.demand[i] - nics.granted[i]) * nics.weight[i])
            for j in range(3):
                nics.load[nics.resources[i, j]] += nics.seconds[i, j] / nics.weight[i]
    for p in range(len(nics.left)):
        if nics.load[p] > 0.0:
            pace = min(pace, nics.left[p] / nics.load[p])
    return max(pace, 0.0)


@inlined_kernel
def _gain(pace: float, tolerance: float, nics: Nics) -> int:
    """Let active streams gain ``pace`` seconds; return how many remain active."""
    active = 0
    for i in range(len(nics.demand)):
        if nics.active[i]:
            nics.granted[i] += pace / nics.weight[i]
            if nics.granted[i] >= nics.demand[i] * (1.0 - 1e-12):
                nics.granted[i] = nics.demand[i]
                nics.active[i] = 0
            for j in range(3):
                if nics.seconds[i, j] > 0.0 and nics.left[nics.resources[i, j]] <= tolerance:
                    nics.active[i] = 0
            active += nics.active[i]
    return active
