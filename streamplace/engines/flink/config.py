"""What stands in the ``config.yaml`` of JobManager and TaskManagers."""

from collections.abc import Mapping, Sequence

from streamplace.engines.flink.names import unborn
from streamplace.engines.flink.spread import offers
from streamplace.engines.names import resources, slug
from streamplace.engines.text import quoted_yaml

Settings = Mapping[str, str | int | float]


def device_settings(
    device: str, devices: Sequence[str], layers: int | None = None
) -> dict[str, str | int | float]:
    """Settings that make a TaskManager the device of this name.

    >>> settings = device_settings("a", ["a", "b"], layers=1)
    >>> settings["taskmanager.resource-id"], settings["external-resource.lim-0-dev-a.amount"]
    ('a', 1000000)
    """
    amounts = offers(device, devices, layers)
    return {
        "taskmanager.resource-id": device,
        "external-resources": ";".join(amounts),
        **{f"external-resource.{name}.amount": amount for name, amount in amounts.items()},
    }


def cluster_settings(
    devices: Sequence[str], room: int = 0, layers: int | None = None
) -> dict[str, str]:
    """YAML files that make TaskManagers the devices of a cluster.

    Parameters
    ----------
    room
        Number of further devices, ``new-1`` and so on, that may come later.
    layers
        Operators whose subtasks are spread unevenly over the same device at a time, if not the
        usual number.
    """
    every = [*devices, *unborn(devices, room)]
    resources(every)  # refuses devices that would share one
    return {f"{slug(d)}.yaml": as_yaml(device_settings(d, every, layers)) for d in every}


def as_yaml(settings: Settings) -> str:
    """Settings as the flat YAML that Flink reads.

    >>> print(as_yaml({"taskmanager.resource-id": "dev-0", "rest.port": 8081}), end="")
    taskmanager.resource-id: "dev-0"
    rest.port: 8081
    """
    return "".join(
        f"{key}: {quoted_yaml(value) if isinstance(value, str) else value}\n"
        for key, value in settings.items()
    )
