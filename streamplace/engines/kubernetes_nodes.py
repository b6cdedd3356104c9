"""Nodes of Kubernetes that are devices: labels, sizes, and instructions for users."""

import math
from collections.abc import Iterator

from streamplace.engines.deployment import Deployment
from streamplace.engines.flink.local.config import Settings
from streamplace.engines.names import slug
from streamplace.errors import FormatError
from streamplace.model.devices import Device
from streamplace.model.messages import quoted

DEVICE = "streamplace-device"
MEBIBYTE = 2**20
USUAL_MEMORY = 1728 * MEBIBYTE
"""Flink's own default for the process of a TaskManager."""


def labels(device: Device) -> Iterator[tuple[str, str]]:
    """Labels of the node of a device."""
    yield DEVICE, slug(device.name)
    for tag in sorted(device.tags):
        yield f"streamplace-tag-{slug(tag)}", "true"


def sizes(device: Device) -> Settings:
    """Settings of a TaskManager for the size of its device."""
    return {
        "taskmanager.cpu.cores": float(device.cores),
        "taskmanager.memory.process.size": f"{mebibytes(device)}m",
    }


def mebibytes(device: Device) -> int:
    """Memory of a device in whole mebibytes, as requested from Kubernetes."""
    memory = float(device.memory)
    if memory < MEBIBYTE:
        raise FormatError(
            f"device {quoted(device.name)} has less than 1 MiB of memory, too little for a pod; "
            "give it more"
        )
    return int((USUAL_MEMORY if math.isinf(memory) else memory) // MEBIBYTE)


def node_labels(deployment: Deployment) -> Iterator[str]:
    """Instructions for labelling nodes as devices."""
    yield "Use: 1. Label one node per device, and nodes with special hardware, once:"
    for device in deployment.problem.cluster.devices:
        pairs = " ".join(f"{key}={value}" for key, value in labels(device))
        yield f"          kubectl label node NODE {pairs}"
