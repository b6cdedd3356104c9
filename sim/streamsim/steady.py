"""Steady state: the relative throughput of placements, and their bottlenecks.

All flows scale together, so the relative throughput, the largest share of their rates at which all
sources can run at once, is x = min(1, 1 / max load). If operators have constant loads, the load of
a device or core counts as a fraction of the capacity that these leave
(`streamsim.equation.pressure`).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from streamsim import _core
from streamsim.arrays import Floats, Ints
from streamsim.equation import pressures
from streamsim.instance import Instance, as_ints
from streamsim.loads import limits_subtasks, only_devices_and_links


class Loads(NamedTuple):
    """Load of every resource at full rate, as a fraction of its capacity.

    Loads of devices and cores include constant loads.
    """

    devices: Floats  # [D]
    links: Floats  # [D, D] from row to column
    egress: Floats  # [D] outgoing NICs, 0 where uncapped
    ingress: Floats  # [D] incoming NICs
    cores: Floats  # [D] load of the core that limits a single subtask first
    constants: Floats  # [D] constant loads of devices
    pressures: Floats  # [D] load of devices as a fraction of the capacity constant loads leave
    core_pressures: Floats  # [D] the same for cores


class Bottleneck(NamedTuple):
    """The resource that limits first: its kind, its device (or pair of devices), its load.

    With constant loads, the load of a device or core is a fraction of the capacity that they leave,
    so that 1 / load of the full rate is carried; ``use`` is the fraction of the total capacity.
    """

    kind: str  # "device", "link", "egress", "ingress" or "core"
    device: int
    peer: int  # receiving device of a link, else -1
    load: float
    use: float


def throughput(instance: Instance, placements: ArrayLike) -> Floats:
    """Relative throughput of each placement, in [0, 1].

    Parameters
    ----------
    placements
        Device of every operator, shape [B, N].

    Examples
    --------
    >>> from streamsim import build_instance
    >>> instance = build_instance(rate=[100, 0], seconds=[[1e-3], [5e-3]], source=[0], target=[1],
    ...                           payload=[20_000], device_type=[0, 0],
    ...                           seconds_per_byte=[[0, 1e-6], [1e-6, 0]])
    >>> throughput(instance, [[0, 0], [0, 1]])  # the link needs 2 s for the bytes of one second
    array([1. , 0.5])
    """
    return _core.throughput(instance.core, as_ints(placements))


def throughput_of(instance: Instance, placement: ArrayLike) -> float:
    """`throughput` of one placement (shape [N])."""
    return _core.throughput_of(instance.core, as_ints(placement))


def resource_loads(instance: Instance, placement: ArrayLike) -> Loads:
    """Load of every resource under one placement (shape [N]) at full rate."""
    place = as_ints(placement)
    d = instance.n_devices
    flat = _core.full_rate_loads(instance.core, place)
    devices, links, egress, ingress = np.split(flat, np.cumsum([d, d * d, d]))  # as in `equation`
    pressed = devices
    rows = np.arange(len(place)), instance.device_type[place]
    constants, core_pressures = np.zeros(d), _largest(instance.core_pressure[rows], place, d)
    cores = core_pressures
    if len(instance.constant):
        constants = np.bincount(place, instance.constant[rows], d).astype(np.float64)
        pressed, devices = pressures(devices, constants), devices + constants
        limits = instance.core_pressure[rows] >= core_pressures[place]
        cores = _largest(instance.full_core_load[rows][limits], place[limits], d)
    return Loads(
        devices=devices,
        links=links.reshape(d, d),
        egress=egress,
        ingress=ingress,
        cores=cores,
        constants=constants,
        pressures=pressed,
        core_pressures=core_pressures,
    )


def _largest(shares: Floats, place: Ints, n_devices: int) -> Floats:
    """Largest of the shares on each device, 0 if there are none."""
    largest = np.zeros(n_devices)
    np.maximum.at(largest, place, shares)
    return largest


def bottleneck(loads: Loads) -> Bottleneck:
    """Return the resource that limits first; in a tie devices come before links, then NICs."""
    tops = [
        _top("device", loads.pressures, loads.devices),
        _top("link", loads.links, loads.links),
        _top("egress", loads.egress, loads.egress),
        _top("ingress", loads.ingress, loads.ingress),
        _top("core", loads.core_pressures, loads.cores),
    ]
    return max(tops, key=lambda top: top.load)


def is_plain(instance: Instance) -> bool:
    """Whether only devices and links can limit, so that the short kernel applies."""
    return only_devices_and_links(instance) and not limits_subtasks(instance)


def _top(kind: str, loads: Floats, uses: Floats) -> Bottleneck:
    where = np.unravel_index(int(np.argmax(loads)), loads.shape)
    peer = int(where[1]) if loads.ndim == 2 else -1
    return Bottleneck(kind, int(where[0]), peer, float(loads[where]), float(uses[where]))
