"""Flink on Kubernetes: a session cluster, and a job of Flink's operator; devices are nodes.

A FlinkDeployment has one template for all TaskManagers (``spec.taskManager.podTemplate``). In
native mode, Flink itself starts identical TaskManagers and accepts no others. Therefore standalone
mode is used, and every pod looks up the device of its node, and uses the settings of that device.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from streamplace.engines.deployment import Deployment
from streamplace.engines.kubernetes import labels, node_labels
from streamplace.engines.names import resource, slug
from streamplace.engines.registry import export
from streamplace.engines.text import comment, group_notes, listed, quoted_yaml
from streamplace.errors import FormatError
from streamplace.flink.engines.flink import MAX_PARALLELISM, filled, text, usual_max_parallelism
from streamplace.flink.pin.pinning import (
    EXTERNAL,
    Settings,
    amount_settings,
    device_settings,
    offers,
)
from streamplace.model import Device
from streamplace.model.message_text import quoted

IMAGE = "flink:2.3.0"
USUAL_MEMORY = 1728 * 2**20
"""Bytes of a TaskManager's process by Flink's default."""
PINS = {
    True: "Limits (lim-…) let subtasks be placed one by one, now and later.",
    False: "Whole operators can be placed on it. For subtasks, export a placement of subtasks.",
}
"""Comment on what can be pinned, by whether the placement is of subtasks."""


@export("flink-kubernetes", all_devices=True)
def as_flink_kubernetes(deployment: Deployment) -> dict[str, str]:
    """Flink on Kubernetes: a session cluster, and an application for Flink's operator."""
    devices = deployment.problem.cluster.devices
    layers = None if deployment.is_split else 0
    resources = deployment.resources
    pins = PINS[deployment.is_split]
    control = filled("control.yaml", **_facts(deployment), image=IMAGE, pins=pins)
    managers = (_task_manager(device, resources, layers) for device in devices)
    return {
        "session.yaml": control + "".join(managers),
        "application.yaml": _application(deployment),
    }


def _task_manager(device: Device, resources: Mapping[str, str], layers: int | None) -> str:
    settings = {
        "taskmanager.rpc.port": 6122,
        "taskmanager.numberOfTaskSlots": 1,
        **_sizes(device),
        **device_settings(device.name, tuple(resources), layers),
    }
    # `$(` would begin a variable
    arguments = (f"-D{key}={value}".replace("$", "$$") for key, value in settings.items())
    selector = "".join(f"{' ' * 8}{key}: {quoted_yaml(value)}\n" for key, value in labels(device))
    return filled(
        "taskmanager.yaml",
        title=comment([f"Device {listed([device.name])}"]),
        name=slug(device.name),
        resource=resources[device.name],
        selector=selector.rstrip("\n"),
        image=IMAGE,
        cores=f"{device.cores}",
        memory=f"{_mebibytes(device)}",
        settings="\n".join(f"{' ' * 12}- {quoted_yaml(argument)}" for argument in arguments),
    )


def _facts(deployment: Deployment) -> dict[str, str]:
    """Facts of a deployment in the comments at the top of its manifests."""
    return {
        "title": comment([f"{deployment.title}."]),
        "labels": comment(node_labels(deployment)),
        "groups": comment(group_notes(deployment)),
    }


def _sizes(device: Device) -> Settings:
    """Settings of a TaskManager for the size of its device."""
    return {
        "taskmanager.cpu.cores": float(device.cores),
        "taskmanager.memory.process.size": f"{_mebibytes(device)}m",
    }


def _mebibytes(device: Device) -> int:
    """Memory of a device in whole mebibytes, as requested from Kubernetes."""
    memory = float(device.memory)
    if memory < 2**20:
        raise FormatError(
            f"device {quoted(device.name)} has less than 1 MiB of memory, too little for a pod; "
            "give it more"
        )
    return int((USUAL_MEMORY if math.isinf(memory) else memory) // 2**20)


def _application(deployment: Deployment) -> str:
    """Manifest of a FlinkDeployment and of its configuration maps."""
    devices = deployment.problem.cluster.devices
    options = {slug(d.name): _options(_settings_of(deployment, i)) for i, d in enumerate(devices)}
    documents = [
        _config_map("streamplace-devices", options),
        _config_map("streamplace-entry", {"entry.sh": text("entry.sh")}),
        _flink_deployment(deployment),
    ]
    head = filled("application.txt", **_facts(deployment), image=IMAGE)
    return head + "---\n".join(map(_yaml, documents))


def _yaml(document: dict[str, Any]) -> str:
    """Format a document as JSON without characters that only YAML regards as line breaks."""
    plain = json.dumps(document, indent=1, ensure_ascii=False)
    return "".join(c if c.isprintable() or c == "\n" else f"\\U{ord(c):08x}" for c in plain) + "\n"


def _flink_deployment(deployment: Deployment) -> dict[str, Any]:
    """FlinkDeployment: one pod on each node that is a device and has all of its tags."""
    document: dict[str, Any] = json.loads(text("application.json"))
    spec, devices = document["spec"], list(deployment.problem.cluster.devices)
    cores, memory = [d.cores for d in devices], [_mebibytes(d) for d in devices]
    operators = deployment.problem.graph.operators
    settings: dict[str, float | str] = {
        "kubernetes.taskmanager.cpu.limit-factor": max(cores) / min(cores),
        "kubernetes.taskmanager.memory.limit-factor": max(memory) / min(memory),
        **(_shared([device.name for device in devices]) if deployment.is_split else {}),
    }
    if groups := operators.key_groups:
        settings[MAX_PARALLELISM] = usual_max_parallelism(groups)
    spec["flinkConfiguration"] |= {key: str(value) for key, value in settings.items()}
    spec["job"]["parallelism"] = int(max(operators.parallelism))
    pods = spec["taskManager"]
    pods |= {
        "replicas": len(devices),
        "resource": {"cpu": min(cores), "memory": f"{min(memory)}m"},
    }
    affinity = pods["podTemplate"]["spec"]["affinity"]["nodeAffinity"]
    affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] = [
        {
            "matchExpressions": [
                {"key": key, "operator": "In", "values": [value]} for key, value in labels(device)
            ]
        }
        for device in devices
    ]
    return document


def _shared(names: Sequence[str]) -> dict[str, str | int]:
    """Settings of every TaskManager if operators are spread.

    They list the resources of all devices; a TaskManager offers the resources with an amount.
    """
    amounts = offers("", names)
    del amounts[resource("")]
    every = ";".join([*map(resource, names), *amounts])
    return {EXTERNAL: every, **amount_settings(amounts)}


def _settings_of(deployment: Deployment, index: int) -> Settings:
    """Settings that make a TaskManager a device, in addition to the shared settings."""
    devices = list(deployment.problem.cluster.devices)
    names = [device.name for device in devices]
    settings = device_settings(names[index], names, None if deployment.is_split else 0)
    if deployment.is_split:
        shared = _shared(names)
        settings = {k: v for k, v in settings.items() if k != EXTERNAL and shared.get(k) != v}
    return {**settings, **_sizes(devices[index])}


def _options(settings: Settings) -> str:
    """Format options of a TaskManager, one per line."""
    for value in map(str, settings.values()):
        if "\n" in value:
            raise FormatError(
                f"{quoted(value)} contains a line break, which an option cannot contain; rename it"
            )
    return "".join(f"-D{key}={value}\n" for key, value in settings.items())


def _config_map(name: str, data: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
