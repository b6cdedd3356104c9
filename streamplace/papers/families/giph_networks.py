"""GiPH's device networks (appendix B.2 of its paper): speeds, links and hardware, all drawn.

The paper's numbers bear no units. Here a speed of 1 is 1 MIPS and a bandwidth of 1 is one byte per
second, so that with `giph_programs` a time of 1 is one second.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamplace.families.drawing import around, short
from streamplace.model.arrays import Floats
from streamplace.model.cluster import Cluster
from streamplace.model.devices import Devices

TYPES = 5
SPEED, BANDWIDTH, DELAY = 5.0, 100.0, 10.0
"""Mean speed of a device, bytes/s and seconds of a link."""


@dataclass(frozen=True, slots=True)
class NetworkShape:
    """Parameters of a random device network."""

    devices: int = 20
    support: float = 0.2  # probability that a device has a hardware type
    bandwidth_spread: float = 0.8  # the inverses are uniform on mean · (1 ± spread / 2)
    speed_spread: float = 0.8  # values are uniform on mean · (1 ± spread / 2)


@dataclass(frozen=True, slots=True)
class DeviceNetwork:
    """Devices and links, as the paper writes them."""

    names: tuple[str, ...]  # [D] of the devices
    speed: Floats  # [D] compute per second
    has: NDArray[np.bool_]  # [D, TYPES] whether a device has a hardware type
    delay: Floats  # [D, D] seconds, symmetric
    seconds_per_byte: Floats  # [D, D] of a link, symmetric

    def cluster(self) -> Cluster:
        """Cluster of these devices."""
        tags = [[hardware(kind) for kind in np.flatnonzero(row).tolist()] for row in self.has]
        remote = ~np.eye(len(self.names), dtype=bool)
        bandwidth = np.full(remote.shape, BANDWIDTH * 8)
        bandwidth[remote] = short(8 / self.seconds_per_byte[remote])
        devices = Devices(self.names, mips=short(self.speed), tags=tags)
        return Cluster(devices, bandwidth, short(self.delay))


def hardware(kind: int) -> str:
    """Tag of a hardware type."""
    return f"h{kind}"


def draw_network(shape: NetworkShape, rng: np.random.Generator) -> DeviceNetwork:
    """Draw a network in which every device has a hardware type and every type a device.

    In the paper's code a type may be on no device, and then a task may run nowhere; here it is
    given to a device drawn at random.
    """
    size = shape.devices
    delay = symmetric(rng.uniform(0, 2 * DELAY, (size, size)))
    inverse = symmetric(around(rng, 1 / BANDWIDTH, shape.bandwidth_spread, (size, size)))
    speed = around(rng, SPEED, shape.speed_spread, size)
    has = draw_hardware(shape.support, size, rng)
    supply_missing(has, rng)
    return DeviceNetwork(tuple(f"d{d}" for d in range(size)), speed, has, delay, inverse)


def draw_hardware(support: float, size: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Hardware of some devices [size, TYPES]; each has at least one type."""
    has = rng.random((size, TYPES)) < support
    only = rng.integers(TYPES, size=size)
    bare = ~has.any(axis=1)
    has[bare, only[bare]] = True
    return has


def supply_missing(has: NDArray[np.bool_], rng: np.random.Generator) -> None:
    """Give every hardware type that no device has to one of them, in place."""
    missing = np.flatnonzero(~has.any(axis=0))
    has[rng.integers(len(has), size=len(missing)), missing] = True


def symmetric(drawn: Floats) -> Floats:
    """Matrix with the upper half of the drawn one in both its halves, and 0 between."""
    upper = np.triu(drawn, 1)
    return np.asarray(upper + upper.T)
