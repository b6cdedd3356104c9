"""Load that one placement puts on every resource at full rate.

The resources stand in one flat vector: D devices, D·D ordered links, D outgoing NICs, D incoming.
"""

import numpy as np
from numpy.typing import NDArray

from streamsim.instance import Instance
from streamsim.jit import borrowing_kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


@borrowing_kernel
def n_resources(d: int) -> int:
    """Length of the load vector of a cluster of d devices."""
    return d * (d + 3)


@borrowing_kernel
def stream_loads(instance: Instance, e: int, a: int, b: int) -> tuple[float, float, float]:
    """Load of stream e on link a→b, on a's outgoing NIC and on b's incoming NIC, at full rate."""
    traffic = instance.traffic[e]
    link = traffic * instance.seconds_per_byte[a, b] + instance.tuples[e] * instance.gap
    return link, traffic * instance.egress[a], traffic * instance.ingress[b]


@borrowing_kernel
def add_operator(instance: Instance, loads: Floats, v: int, d: int, share: float) -> None:
    """Put ``share`` of the flow of operator v on device d."""
    loads[d] += share * instance.load[v, instance.device_type[d]]


@borrowing_kernel
def add_stream(instance: Instance, loads: Floats, e: int, a: int, b: int, share: float) -> None:
    """Put ``share`` of the flow of stream e on what lies between devices a and b."""
    if a == b:
        return
    d = len(instance.device_type)
    link, egress, ingress = stream_loads(instance, e, a, b)
    handling = share * instance.tuples[e] * instance.overhead
    loads[a] += handling / instance.cores[a]
    loads[b] += handling / instance.cores[b]
    loads[d + a * d + b] += share * link
    loads[d + d * d + a] += share * egress
    loads[d + d * d + d + b] += share * ingress


@borrowing_kernel
def add_all(instance: Instance, placement: Ints, loads: Floats, share: Floats) -> None:
    """Put on every resource the given share of each operator's flow."""
    for v in range(len(placement)):
        add_operator(instance, loads, v, placement[v], share[v])
    for e in range(len(instance.source)):
        u = instance.source[e]
        add_stream(instance, loads, e, placement[u], placement[instance.target[e]], share[u])


@borrowing_kernel
def core_load(instance: Instance, v: int, d: int) -> float:
    """Fraction of one core of device d that a subtask of operator v takes at full rate."""
    return instance.core_load[v, instance.device_type[d]]
