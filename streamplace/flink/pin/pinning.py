"""Pinning: resources that TaskManagers offer, and slot sharing groups that request them.

README.md derives the amounts, and explains why they pin a job.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isqrt

from streamplace.engines.names import resource, resources, slug
from streamplace.engines.text import quoted_yaml
from streamplace.errors import PlacementError
from streamplace.flink.constants import INDEXES, MAX_LIMITS
from streamplace.flink.layout import Layout
from streamplace.model.message_text import listed, quoted

PIN_UNITS = 10_000
"""Maximum number of slots that can be pinned to one TaskManager at a time, over all jobs."""
UNITS = 10**6
PLENTY = UNITS**2
MAX_PER_DEVICE = isqrt(UNITS) - 1
"""Maximum number of slots of one group on one device; beyond it, ⌊A / c⌋ would allow one more."""
EXTERNAL = "external-resources"
Settings = Mapping[str, str | int | float]


def index_name(index: int) -> str:
    """Name of the resource that limits the slots of a group by the same number on every device."""
    return f"lim-{index}"


def limit_name(layer: int, pin: str) -> str:
    """Name of the resource that further limits the slots of a group on the device of ``pin``."""
    return f"lim-{layer}-{pin}"


def layers_offered(devices: int) -> int:
    """Number of layers that every TaskManager of a cluster of so many devices should offer.

    >>> layers_offered(5), layers_offered(100), layers_offered(1000)
    (32, 2, 1)
    """
    return max(1, min(INDEXES, MAX_LIMITS // max(1, devices)))


def offers(device: str, devices: Sequence[str], layers: int | None = None) -> dict[str, int]:
    """Amount of every external resource that the TaskManager of a device offers.

    Without layers, a device offers its own resource only, and no operator can be spread.

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
        limit_name(layer, resource(other)): UNITS if other == device else PLENTY
        for layer in range(count)
        for other in devices
    }
    return {resource(device): PIN_UNITS, **{index_name(j): UNITS for j in range(INDEXES)}, **limits}


def future_devices(devices: Iterable[str], number: int) -> list[str]:
    """Return names for devices that may join later.

    >>> future_devices(["dev-0", "new-1"], 2)
    ['new-2', 'new-3']
    """
    used = {resource(device) for device in devices}
    names = (f"new-{i}" for i in range(1, len(used) + number + 1))
    return [name for name in names if resource(name) not in used][:number]


def device_settings(
    device: str, devices: Sequence[str], layers: int | None = None
) -> dict[str, str | int | float]:
    """Settings that make a TaskManager the device of this name.

    Three settings are enough to place every operator on one device:

    >>> device_settings("a", ["a", "b"], layers=0)["external-resources"]
    'dev-a'

    Operators that are spread over devices need limits as well:

    >>> settings = device_settings("a", ["a", "b"], layers=1)
    >>> settings["taskmanager.resource-id"], settings["external-resource.lim-0-dev-a.amount"]
    ('a', 1000000)
    """
    amounts = offers(device, devices, layers)
    return {
        "taskmanager.resource-id": device,
        EXTERNAL: ";".join(amounts),
        **amount_settings(amounts),
    }


def amount_settings(amounts: Mapping[str, int]) -> dict[str, int]:
    """Settings of a TaskManager that offers these amounts of resources."""
    return {f"external-resource.{name}.amount": amount for name, amount in amounts.items()}


def cluster_settings(
    devices: Sequence[str], future: int = 0, layers: int | None = None
) -> dict[str, str]:
    """YAML files that make TaskManagers the devices of a cluster.

    ``future``: number of devices, ``new-1`` and so on, that may be added later.
    ``layers``: maximum number of operators that are spread unevenly over one device at a time; 0 if
    every operator stays on one device.
    """
    every = [*devices, *future_devices(devices, future)]
    resources(every)  # raises an error if two devices would share a resource
    return {f"{slug(d)}.yaml": as_yaml(device_settings(d, every, layers)) for d in every}


def as_yaml(settings: Settings) -> str:
    """Format settings as the flat YAML that Flink reads.

    >>> print(as_yaml({"taskmanager.resource-id": "dev-0", "rest.port": 8081}), end="")
    taskmanager.resource-id: "dev-0"
    rest.port: 8081
    """
    return "".join(
        f"{key}: {quoted_yaml(value) if isinstance(value, str) else value}\n"
        for key, value in settings.items()
    )


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
    # Device → its free numbers.
    indexes: dict[str, set[int]]
    layers: dict[str, set[int]]

    @classmethod
    def untouched(cls, devices: Sequence[str], layers: int | None = None) -> "SpreadLimits":
        """Limits of TaskManagers without spread groups."""
        count = layers_offered(len(devices)) if layers is None else layers
        indexes = {device: set(range(INDEXES)) for device in devices}
        pins = tuple(resource(device) for device in devices)
        return cls(pins, indexes, {device: set(range(count)) for device in devices})

    def take(self, counts: Mapping[str, int]) -> dict[str, int]:
        """Reserve an index and a layer; return the resources that each slot requests."""
        largest = max(counts.values())
        if unknown := set(counts).difference(self.indexes):
            raise PlacementError(
                f"subtasks of a spread operator are on {quoted(min(unknown))}, which is not a "
                "device that operators can be spread over"
            )
        if largest > MAX_PER_DEVICE:
            raise PlacementError(
                f"{largest} subtasks of one operator are on one device, which can hold "
                f"{MAX_PER_DEVICE}; spread them over more devices"
            )
        index = _reserved(self.indexes, list(counts), "group indexes")
        low = [device for device, count in counts.items() if count < largest]
        layer = _reserved(self.layers, low, "layers for uneven numbers of subtasks")
        placed = {resource(device): count for device, count in counts.items()}
        limits = {
            limit_name(layer, pin): UNITS // placed[pin] if pin in placed else UNITS + 1
            for pin in self.pins
            if placed.get(pin, 0) < largest
        }
        return {index_name(index): UNITS // largest, **limits}


def _reserved(free: dict[str, set[int]], devices: list[str], kind: str) -> int:
    """Reserve the first number that is free on all of these devices; return it."""
    common = set[int].intersection(*(free[device] for device in devices)) if devices else {0}
    if not common:
        raise PlacementError(
            f"an operator cannot be spread over {listed(devices)}: no {kind} are free on all of "
            "them; cancel other jobs that spread operators there, place some operators whole, or "
            "configure the TaskManagers with more ('streamplace flink config --layers')"
        )
    for device in devices:
        free[device].remove(min(common))
    return min(common)


@dataclass(frozen=True, slots=True)
class Pinning:
    """Slot sharing groups and their operators.

    Examples
    --------
    >>> limits = SpreadLimits.untouched(["a", "b"])
    >>> pins = pinning(Layout.of({"src": "a", "map": ["a", "b", "b"]}), limits)
    >>> pins.operators, pins.parallelism
    ({'src': 'a', 'map': 'spread-0'}, {'map': 3})
    >>> pins.groups
    {'a': {'dev-a': 1}, 'spread-0': {'lim-0': 500000, 'lim-0-dev-a': 1000000}}
    >>> pins.spread
    {'spread-0': {'a': 1, 'b': 2}}
    """

    groups: dict[str, dict[str, int]]  # group → external resources that each of its slots requests
    operators: dict[str, str]  # operator → group
    parallelism: dict[str, int]  # operator → number of subtasks, if known
    # Group with slots on several devices → device → number of slots. Any other group has the name
    # of the device of its slots.
    spread: dict[str, dict[str, int]]
    # TaskManager → managed memory in MB for its slots, if known.
    managed: Mapping[str, int] = field(default_factory=dict)


def pinning(layout: Layout, limits: SpreadLimits) -> Pinning:
    """Pin operators to the devices of a cluster.

    The indexes and layers of new spread groups are removed from ``limits``.
    """
    pins = Pinning({}, {}, {}, {})
    used = layout.devices
    spread: dict[tuple[str, ...], str] = {}
    for operator, devices in layout.items():
        if len(set(devices)) == 1:
            group = devices[0]
            pins.groups[group] = {resource(group): 1}
        else:
            group = spread.setdefault(devices, f"spread-{len(spread)}")
            if group in used:  # it would also get the operators of that device
                raise PlacementError(
                    f"TaskManager {quoted(group)} has the name of a group of spread operators; "
                    "give it another one (taskmanager.resource-id)"
                )
            if group not in pins.spread:
                pins.spread[group] = layout.counts(operator)
                pins.groups[group] = limits.take(pins.spread[group])
        if operator not in layout.uncounted:
            pins.parallelism[operator] = len(devices)
        pins.operators[operator] = group
    return pins
