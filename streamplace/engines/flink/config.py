"""What stands in the ``config.yaml`` of JobManager and TaskManagers."""

from collections.abc import Mapping, Sequence

from streamplace.engines.flink.names import GROUPS, groups_offered
from streamplace.engines.flink.spread import offers
from streamplace.engines.names import resources, slug
from streamplace.engines.text import quoted_yaml

Settings = Mapping[str, str | int | float]


def device_settings(
    device: str, devices: Sequence[str], groups: int = GROUPS
) -> dict[str, str | int | float]:
    """Settings that make a TaskManager the device of this name.

    >>> device_settings("a", ["a", "b"], groups=0)  # doctest: +NORMALIZE_WHITESPACE
    {'taskmanager.resource-id': 'a', 'external-resources': 'dev-a',
     'external-resource.dev-a.amount': 10000}
    """
    amounts = offers(device, devices, groups)
    return {
        "taskmanager.resource-id": device,
        "external-resources": ";".join(amounts),
        **{f"external-resource.{name}.amount": amount for name, amount in amounts.items()},
    }


def cluster_settings(devices: Sequence[str], needed: int = 0) -> dict[str, str]:
    """YAML files that make TaskManagers the devices of a cluster.

    Parameters
    ----------
    needed
        Group indexes that are needed now; a large cluster offers no more.
    """
    resources(devices)  # refuses devices that would share one
    groups = groups_offered(len(devices), needed)
    return {f"{slug(d)}.yaml": as_yaml(device_settings(d, devices, groups)) for d in devices}


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
