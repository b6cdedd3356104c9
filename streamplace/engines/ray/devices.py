"""Devices as nodes of a local Ray, each with the cores of its device."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamplace.engines.names import resources
from streamplace.engines.ray.nodes import check_devices
from streamplace.model.cluster import Cluster

FOR_OPERATORS = 0.5
"""Maximum part of this machine's cores for operators; Ray itself needs the rest."""
OFFER = 1000


@dataclass(frozen=True, slots=True)
class LocalDevices:
    """The nodes of a local Ray.

    Attributes
    ----------
    ray
        The module ``ray``, connected to them.
    folder
        Folder with a file for each core of each device; the lock of a file represents the core.
    share
        Share of a core of this machine that represents a core of a device.
    """

    ray: Any
    cluster: Cluster
    folder: Path
    share: float

    def mips(self, device: str) -> float:
        """Speed of a core of a device."""
        return float(self.cluster.devices.mips[self.cluster.devices.index(device)])

    def cores(self, device: str) -> tuple[Path, ...]:
        """Files of the cores of a device."""
        row = self.cluster.devices.index(device)
        return tuple(self.folder / f"{row}-{k}" for k in range(self.cluster.devices.cores[row]))

    def device_of_node(self) -> dict[str, str]:
        """Id of each node that is alive → device."""
        names = {own: device for device, own in resources(self.cluster.devices.name).items()}
        return {
            node["NodeID"]: device
            for node in self.ray.nodes()
            if node["Alive"]
            for own, device in names.items()
            if own in node["Resources"]
        }


def share_of(cluster: Cluster) -> float:
    """Share of a core of this machine for each core of a cluster."""
    cores = int(cluster.devices.cores.sum())
    return min(1.0, FOR_OPERATORS * len(os.sched_getaffinity(0)) / cores)


def offers_of(cluster: Cluster) -> list[dict[str, Any]]:
    """Resources that the node of each device offers."""
    check_devices(cluster.n_devices)
    names = resources(cluster.devices.name).values()
    return [
        {"num_cpus": int(cores), "resources": {name: OFFER}}
        for name, cores in zip(names, cluster.devices.cores, strict=True)
    ]
