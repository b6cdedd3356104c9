"""Spreading the slots of one group over TaskManagers in given counts, on a running cluster.

Flink does not support such counts. But it allocates a slot on a TaskManager only if every resource
that the slot requests is free there. TaskManager k offers

- ``lim-j`` = A for every index j,
- ``lim-l-k`` = A and, for all m ≠ k, ``lim-l-m`` = H, for every layer l.

Each slot of a group with index j, layer l and counts c with maximum C requests ⌊A / C⌋ of ``lim-j``
and, for **every** device m, present or not, the following amount of ``lim-l-m``:

    lim-l-m = nothing  where c_m = C,    ⌊A / c_m⌋  where 0 < c_m < C,    A + 1  where c_m = 0.

Then TaskManager m holds at most c_m slots of the group; and as Σ c_m is their number, the result is
exactly c, in whatever order Flink allocates them. Groups that share a device must have different
indexes. If both have fewer slots there than their C, they must also have different layers, because
a layer constrains only those devices.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streamplace.engines.flink.pin.names import (
    GROUPS,
    PIN_UNITS,
    index_name,
    layers_offered,
    limit_name,
)
from streamplace.engines.names import resource
from streamplace.errors import PlacementError
from streamplace.model.messages import quoted

OFFER = 10**6
PLENTY = 10**12
MOST_SLOTS = 999
"""Maximum number of slots of one group on one device; beyond it, ⌊A / c⌋ would allow one more."""
Demand = dict[str, int]


@dataclass(frozen=True, slots=True)
class SpreadLimits:
    """Indexes and layers of TaskManagers that are free for spread groups.

    Examples
    --------
    >>> limits = SpreadLimits.untouched(["a", "b", "c"])
    >>> limits.take({"a": 2, "b": 1})
    {'lim-0': 500000, 'lim-0-dev-b': 1000000, 'lim-0-dev-c': 1000001}
    >>> limits.take({"b": 1, "c": 1})
    {'lim-1': 1000000, 'lim-0-dev-a': 1000001}
    """

    # Resources of all devices that the TaskManagers are configured for, present or not.
    pins: tuple[str, ...]
    # Device → numbers of those that no group uses there.
    indexes: dict[str, set[int]]
    layers: dict[str, set[int]]

    @classmethod
    def untouched(cls, devices: Sequence[str], layers: int | None = None) -> "SpreadLimits":
        """Limits of TaskManagers without spread groups."""
        count = layers_offered(len(devices)) if layers is None else layers
        indexes = {device: set(range(GROUPS)) for device in devices}
        pins = tuple(resource(device) for device in devices)
        return cls(pins, indexes, {device: set(range(count)) for device in devices})

    @property
    def layers_taken(self) -> int:
        """Number of layers that TaskManagers need for those in use, if ``GROUPS`` were offered."""
        taken = (set(range(GROUPS)) - free for free in self.layers.values())
        return max((1 + max(numbers) for numbers in taken if numbers), default=0)

    def take(self, counts: Mapping[str, int]) -> Demand:
        """Reserve an index and a layer; return the resources that each slot requests."""
        most = max(counts.values())
        if unknown := set(counts).difference(self.indexes):
            raise PlacementError(
                f"{quoted(min(unknown))} is not a device that operators can be spread over, but "
                "subtasks are placed on it"
            )
        if most > MOST_SLOTS:
            crowded = next(device for device, count in counts.items() if count == most)
            raise PlacementError(
                f"{most} subtasks of one operator are on {quoted(crowded)}; Flink supports at "
                f"most {MOST_SLOTS}, spread them over more devices"
            )
        index = _taken(self.indexes, list(counts), "group indexes")
        low = [device for device, count in counts.items() if count < most]
        layer = _taken(self.layers, low, "layers for uneven numbers of subtasks")
        placed = {resource(device): count for device, count in counts.items()}
        limits = {
            limit_name(layer, pin): OFFER // placed[pin] if pin in placed else OFFER + 1
            for pin in self.pins
            if placed.get(pin, 0) < most
        }
        return {index_name(index): OFFER // most, **limits}


def _taken(free: dict[str, set[int]], devices: Sequence[str], what: str) -> int:
    """Reserve the first number that is free on all of these devices."""
    common = set[int].intersection(*(free[device] for device in devices)) if devices else {0}
    if not common:
        raise _used_up(free, devices, what)
    for device in devices:
        free[device].remove(min(common))
    return min(common)


def _used_up(free: dict[str, set[int]], devices: Sequence[str], what: str) -> PlacementError:
    scarce = min(devices, key=lambda device: len(free[device]))
    why = (
        f"TaskManager {quoted(scarce)} has no free {what} left"
        if not free[scarce]
        else f"no one number of the {what} is free on all of its TaskManagers"
    )
    return PlacementError(
        f"an operator cannot be spread: {why}; cancel other jobs that spread operators over it, "
        "place some operators whole, or configure the TaskManagers with more ('streamplace flink "
        "config --layers')"
    )


def offers(device: str, devices: Sequence[str], layers: int | None = None) -> dict[str, int]:
    """Amount of every external resource that the TaskManager of a device offers.

    Without layers no operator can be spread, and a device offers its own resource only.

    >>> list(offers("a", ["a", "b"], layers=1))[-4:]
    ['lim-30', 'lim-31', 'lim-0-dev-a', 'lim-0-dev-b']
    >>> offers("a", ["a", "b"], layers=1)["lim-0-dev-b"]
    1000000000000
    >>> offers("a", ["a", "b"], layers=0)
    {'dev-a': 10000}
    """
    count = layers_offered(len(devices)) if layers is None else layers
    if not count:
        return {resource(device): PIN_UNITS}
    limits = {
        limit_name(layer, resource(other)): OFFER if other == device else PLENTY
        for layer in range(count)
        for other in devices
    }
    return {resource(device): PIN_UNITS, **{index_name(j): OFFER for j in range(GROUPS)}, **limits}


def pin_demand(device: str) -> Demand:
    """Resources that a slot requests to be allocated on the TaskManager of a device."""
    return {resource(device): 1}
