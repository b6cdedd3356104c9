"""Names and amounts of the external resources that determine the TaskManager of a slot.

Every TaskManager represents one device and offers

- one resource of its own, ``dev-k``: a slot that requests a unit of it can only be allocated
  on this TaskManager. It pins operators with a single device;
- for every index j a resource ``lim-j``, and for every layer l and every device m a resource
  ``lim-l-m``: they limit the number of its slots for a spread group, see
  `streamplace.engines.flink.pin.spread`.
"""

from collections.abc import Iterable

from streamplace.engines.names import resource

PIN_UNITS = 10_000
"""Maximum number of slots that can be pinned to one TaskManager at a time, over all jobs."""
GROUPS = 32
"""Number of indexes that a TaskManager offers, and so of spread groups on it at a time."""
MOST_LIMITS = 256
"""Maximum number of limits of all layers that a TaskManager offers; one layer is always offered."""
FUTURE = "new-"
"""Prefix of the names of devices that can be added later."""
FUSED = " -> "
"""Separator of the names of operators that Flink fused into one task."""


def index_name(index: int) -> str:
    """Name of the resource that limits the slots of a group by the same number on every device.

    >>> index_name(2)
    'lim-2'
    """
    return f"lim-{index}"


def limit_name(layer: int, pin: str) -> str:
    """Name of the resource that further limits the slots of a group on the device of ``pin``.

    >>> limit_name(2, "dev-3")
    'lim-2-dev-3'
    """
    return f"lim-{layer}-{pin}"


def limited(layer: int, name: str) -> str | None:
    """Resource of the device that a resource of a layer limits; None for other resources.

    >>> limited(2, "lim-2-dev-3"), limited(2, "lim-22"), limited(2, "dev-3")
    ('dev-3', None, None)
    """
    start = limit_name(layer, "")
    return name.removeprefix(start) if name.startswith(start) else None


def layers_offered(devices: int) -> int:
    """Number of layers that every TaskManager of a cluster of ``devices`` should offer.

    >>> layers_offered(5), layers_offered(100), layers_offered(1000)
    (32, 2, 1)
    """
    return max(1, min(GROUPS, MOST_LIMITS // max(1, devices)))


def future_devices(devices: Iterable[str], number: int) -> list[str]:
    """Return names for devices that may join later.

    >>> future_devices(["dev-0", "new-1"], 2)
    ['new-2', 'new-3']
    """
    taken = {resource(device) for device in devices}
    names: list[str] = []
    i = 1
    while len(names) < number:
        if resource(f"{FUTURE}{i}") not in taken:
            names.append(f"{FUTURE}{i}")
        i += 1
    return names
