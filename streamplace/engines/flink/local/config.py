"""Settings for the ``config.yaml`` of JobManager and TaskManagers."""

from collections import Counter
from collections.abc import Mapping, Sequence

from streamplace.engines.flink.pin.names import (
    GROUPS,
    PIN_UNITS,
    future_devices,
    index_name,
    layers_offered,
    limit_name,
)
from streamplace.engines.flink.pin.spread import OFFER, PLENTY, offers
from streamplace.engines.names import resource, resources, slug
from streamplace.engines.text import quoted_yaml

Settings = Mapping[str, str | int | float]
EXTERNAL = "external-resources"
MAX_PARALLELISM = "pipeline.max-parallelism"


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
    return {"taskmanager.resource-id": device, **_amounts(offers(device, devices, layers))}


def usual_max_parallelism(groups: Mapping[str, int]) -> int:
    """Return the maximum parallelism of most operators; the largest one if there is a tie.

    >>> usual_max_parallelism({"src": 8, "map": 128, "join": 128})
    128
    """
    counts = Counter(groups.values())
    return max(counts, key=lambda number: (counts[number], number))


def shared_settings(devices: Sequence[str]) -> dict[str, str | int | float]:
    """Settings of every TaskManager of a cluster over which operators are spread.

    They list the resources of all devices; a TaskManager offers those that have an amount.
    """
    pins, layers = [resource(device) for device in devices], range(layers_offered(len(devices)))
    indexes = {index_name(j): OFFER for j in range(GROUPS)}
    amounts = indexes | {limit_name(layer, pin): PLENTY for layer in layers for pin in pins}
    return {**_amounts(amounts), EXTERNAL: ";".join([*pins, *amounts])}


def own_settings(device: str, devices: Sequence[str]) -> dict[str, str | int | float]:
    """Settings that, added to the shared ones, make a TaskManager the device of this name."""
    pin, layers = resource(device), range(layers_offered(len(devices)))
    return {
        "taskmanager.resource-id": device,
        _amount(pin): PIN_UNITS,
        **{_amount(limit_name(layer, pin)): OFFER for layer in layers},
    }


def _amounts(amounts: Mapping[str, int]) -> dict[str, str | int | float]:
    return {EXTERNAL: ";".join(amounts), **{_amount(name): n for name, n in amounts.items()}}


def _amount(name: str) -> str:
    return f"external-resource.{name}.amount"


def cluster_settings(
    devices: Sequence[str], room: int = 0, layers: int | None = None
) -> dict[str, str]:
    """YAML files that make TaskManagers the devices of a cluster.

    ``room``: number of devices, ``new-1`` and so on, that may be added later.
    ``layers``: maximum number of operators that are spread unevenly over the same device at a time,
    if not the default; 0 if every operator stays on one device.
    """
    every = [*devices, *future_devices(devices, room)]
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
