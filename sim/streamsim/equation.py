"""The load equation: loads of resources by work and streams.

The resources of D devices form one flat vector: D devices, D·D ordered links, D outgoing NICs, D
incoming NICs. Simulators, placers and proofs take their terms from here, or from the same file of
the core.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from streamsim.arrays import Floats

#: Free share of a device below which constant loads count as filling it.
NO_ROOM = 1e-12
#: Share by which constant loads may exceed a device, for rounding.
OVERFULL = 1e-9


def n_resources(d: int) -> int:
    """Length of the load vector of a cluster of d devices."""
    return d * (d + 3)


def pressures(loads: Floats, constants: Floats) -> Floats:
    """Loads as fractions of the capacity that constant loads leave free on devices or cores.

    The flow that fits is 1 / pressure of the full rate: load · x + constant ≤ 1. The pressure is
    infinite if constant loads fill the device and there is a load, or if they exceed the device.
    """
    room = 1.0 - constants
    none = room < NO_ROOM
    stuck = none & ((loads > NO_ROOM) | (room < -OVERFULL))
    shares = np.where(none, 0.0, loads / np.where(none, 1.0, room))
    return np.asarray(np.where(stuck, np.inf, shares), np.float64)


def link_loads(traffic: Floats, tuples: Floats, seconds_per_byte: ArrayLike, gap: float) -> Floats:
    """Loads of links by ``traffic`` bytes/s in ``tuples`` tuples/s."""
    loads: Any = traffic * np.asarray(seconds_per_byte) + tuples * gap
    return np.asarray(loads, np.float64)
