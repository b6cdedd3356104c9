"""The load equation: what work and streams put on the resources they meet, and where these stand.

The resources of D devices are one flat vector: D devices, D·D ordered links, D outgoing NICs, D
incoming. Whatever adds up loads, here or in a search, takes its terms from this page.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from streamsim.arrays import Floats
from streamsim.jit import inlined_kernel

#: Constant loads that leave less than this of a device leave nothing.
NO_ROOM = 1e-12
#: Constant loads above 1 by more than this are more than a device has, whatever else it does.
OVERFULL = 1e-9


@inlined_kernel
def n_resources(d: int) -> int:
    """Length of the load vector of a cluster of d devices."""
    return d * (d + 3)


@inlined_kernel
def link_at(d: int, a: int, b: int) -> int:
    """Place of the link from device a to device b."""
    return d + a * d + b


@inlined_kernel
def egress_at(d: int, a: int) -> int:
    """Place of the outgoing NIC of device a."""
    return d + d * d + a


@inlined_kernel
def ingress_at(d: int, b: int) -> int:
    """Place of the incoming NIC of device b."""
    return d + d * d + d + b


@inlined_kernel
def link_load(traffic: float, tuples: float, seconds_per_byte: float, gap: float) -> float:
    """Load of a link that carries so many bytes/s in so many tuples/s."""
    return traffic * seconds_per_byte + tuples * gap


@inlined_kernel
def nic_load(traffic: float, seconds_per_byte: float) -> float:
    """Load of a NIC through which so many bytes/s go."""
    return traffic * seconds_per_byte


@inlined_kernel
def handling_load(
    tuples: float, traffic: float, overhead: float, overhead_per_byte: float, cores: float
) -> float:
    """Load of a device that sends or receives so many remote tuples/s, of so many bytes/s."""
    return (tuples * overhead + traffic * overhead_per_byte) / cores


@inlined_kernel
def pressure(load: float, constant: float) -> float:
    """Load as a fraction of what constant loads leave of a device or core.

    The flow that fits is 1 / pressure of the full rate: load · x + constant ≤ 1. Constant loads
    that fill the device leave nothing for a load; those beyond it are an infinite pressure.
    """
    if constant <= 0.0:
        return load
    room = 1.0 - constant
    if room < NO_ROOM:
        return np.inf if load > NO_ROOM or room < -OVERFULL else 0.0
    return load / room


def pressures(loads: Floats, constants: Floats) -> Floats:
    """`pressure` of many at once."""
    room = 1.0 - constants
    none = room < NO_ROOM
    stuck = none & ((loads > NO_ROOM) | (room < -OVERFULL))
    shares = np.where(none, 0.0, loads / np.where(none, 1.0, room))
    return np.asarray(np.where(stuck, np.inf, shares), np.float64)


def link_loads(traffic: Floats, tuples: Floats, seconds_per_byte: ArrayLike, gap: float) -> Floats:
    """`link_load` of many streams at once."""
    loads: Any = traffic * np.asarray(seconds_per_byte) + tuples * gap
    return np.asarray(loads, np.float64)
