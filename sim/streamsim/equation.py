"""The load equation: loads of resources by work and streams, and the index of each resource.

The resources of D devices form one flat vector: D devices, D·D ordered links, D outgoing NICs, D
incoming NICs. Simulators, placers and proofs take their terms from here.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from streamsim.arrays import Floats
from streamsim.jit import inlined_kernel

#: Free share of a device below which constant loads count as filling it.
NO_ROOM = 1e-12
#: Share by which constant loads may exceed a device, for rounding.
OVERFULL = 1e-9


@inlined_kernel
def n_resources(d: int) -> int:
    """Length of the load vector of a cluster of d devices."""
    return d * (d + 3)


@inlined_kernel
def link_at(d: int, a: int, b: int) -> int:
    """Index of the link from device a to device b."""
    return d + a * d + b


@inlined_kernel
def egress_at(d: int, a: int) -> int:
    """Index of the outgoing NIC of device a."""
    return d + d * d + a


@inlined_kernel
def ingress_at(d: int, b: int) -> int:
    """Index of the incoming NIC of device b."""
    return d + d * d + d + b


@inlined_kernel
def link_load(traffic: float, tuples: float, seconds_per_byte: float, gap: float) -> float:
    """Load of a link by ``traffic`` bytes/s in ``tuples`` tuples/s."""
    return traffic * seconds_per_byte + tuples * gap


@inlined_kernel
def nic_load(traffic: float, seconds_per_byte: float) -> float:
    """Load of a NIC by ``traffic`` bytes/s."""
    return traffic * seconds_per_byte


@inlined_kernel
def handling_load(
    tuples: float, traffic: float, overhead: float, overhead_per_byte: float, free_cores: float
) -> float:
    """Load of a device by sending or receiving ``tuples`` tuples/s and ``traffic`` bytes/s."""
    return (tuples * overhead + traffic * overhead_per_byte) / free_cores


@inlined_kernel
def pressure(load: float, constant: float) -> float:
    """Load as a fraction of the capacity that constant loads leave free on a device or core.

    The flow that fits is 1 / pressure of the full rate: load · x + constant ≤ 1. The pressure is
    infinite if constant loads fill the device and there is a load, or if they exceed the device.
    """
    if constant <= 0.0:
        return load
    room = 1.0 - constant
    if room < NO_ROOM:
        return np.inf if load > NO_ROOM or room < -OVERFULL else 0.0
    return load / room


def pressures(loads: Floats, constants: Floats) -> Floats:
    """`pressure` of many loads at once."""
    room = 1.0 - constants
    none = room < NO_ROOM
    stuck = none & ((loads > NO_ROOM) | (room < -OVERFULL))
    shares = np.where(none, 0.0, loads / np.where(none, 1.0, room))
    return np.asarray(np.where(stuck, np.inf, shares), np.float64)


def link_loads(traffic: Floats, tuples: Floats, seconds_per_byte: ArrayLike, gap: float) -> Floats:
    """`link_load` of many streams at once."""
    loads: Any = traffic * np.asarray(seconds_per_byte) + tuples * gap
    return np.asarray(loads, np.float64)
