"""Max–min fair rates of several sources by progressive filling.

All sources rise together; when a resource is full, the sources that use it stay where they are and
the others rise on. A round costs one pass forward and one pass backward over the streams, so no
matrix of sources × operators is ever held.
"""

import numpy as np
from numpy.typing import NDArray

from streamsim.instance import Instance
from streamsim.jit import kernel
from streamsim.loads import add_all, core_load, n_resources, stream_loads

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Flags = NDArray[np.bool_]

TIE = 1e-12


@kernel
def fill(instance: Instance, placement: Ints) -> Floats:
    """Fraction of its nominal rate that every source reaches; 0 for operators that are none."""
    rates = np.zeros(len(placement))
    rising = instance.rate > 0
    while rising.any():
        moving = _share(instance, rising.astype(np.float64))
        frozen = _share(instance, rates)
        level, full, full_core = _next_stop(instance, placement, moving, frozen)
        stopped = _upstream_sources(instance, placement, moving, full, full_core)
        none_stopped = not (stopped & rising).any()
        for v in range(len(rising)):
            if rising[v] and (level >= 1.0 or stopped[v] or none_stopped):
                rates[v] = level
                rising[v] = False
    return rates


@kernel
def _share(instance: Instance, at_sources: Floats) -> Floats:
    """Fraction of each operator's full input that flows when the sources run at ``at_sources``."""
    flow = instance.rate * at_sources
    for e in range(len(instance.source)):
        u = instance.source[e]
        if instance.input_rate[u] > 0:
            flow[instance.target[e]] += instance.tuples[e] * (flow[u] / instance.input_rate[u])
    for v in range(len(flow)):
        if instance.input_rate[v] > 0:
            flow[v] /= instance.input_rate[v]
    return flow


@kernel
def _next_stop(
    instance: Instance, placement: Ints, moving: Floats, frozen: Floats
) -> tuple[float, Flags, Flags]:
    """Level at which the rising sources meet the next full resource, and what is full there."""
    size = n_resources(len(instance.device_type))
    used, rising = np.zeros(size), np.zeros(size)
    add_all(instance, placement, used, frozen)
    add_all(instance, placement, rising, moving)
    stop = np.full(size, np.inf)
    for r in range(size):
        if rising[r] > 0:
            stop[r] = max(0.0, 1.0 - used[r]) / rising[r]
    core_stop = np.full(len(placement), np.inf)
    for v in range(len(placement)):
        per_core = core_load(instance, v, placement[v])
        if per_core * moving[v] > 0:
            core_stop[v] = max(0.0, 1.0 - per_core * frozen[v]) / (per_core * moving[v])
    level = min(1.0, min(stop.min(), core_stop.min()))
    return level, stop <= level * (1 + TIE), core_stop <= level * (1 + TIE)


@kernel
def _upstream_sources(
    instance: Instance, placement: Ints, moving: Floats, full: Flags, full_core: Flags
) -> Flags:
    """Operators whose flow reaches a full resource."""
    n_devices = len(instance.device_type)
    touched = full_core.copy()
    for v in range(len(placement)):
        d = placement[v]
        if full[d] and instance.load[v, instance.device_type[d]] * moving[v] > 0:
            touched[v] = True
    for e in range(len(instance.source) - 1, -1, -1):
        u, v = instance.source[e], instance.target[e]
        if instance.tuples[e] * moving[u] <= 0:
            continue
        if touched[v] or _meets_full(instance, e, placement[u], placement[v], full, n_devices):
            touched[u] = True
    return touched


@kernel
def _meets_full(instance: Instance, e: int, a: int, b: int, full: Flags, d: int) -> bool:
    """Whether stream e loads a full link, NIC or (through its overhead) device."""
    if a == b:
        return False
    link, egress, ingress = stream_loads(instance, e, a, b)
    return (
        (full[d + a * d + b] and link > 0)
        or (full[d + d * d + a] and egress > 0)
        or (full[d + d * d + d + b] and ingress > 0)
        or (instance.overhead > 0 and (full[a] or full[b]))
    )
