"""A local Ray with nodes on loopback, one for each device with its cores."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamplace.cores import available_cores
from streamplace.engines.names import resources
from streamplace.errors import SettingError
from streamplace.io.extras import extra
from streamplace.model.cluster import Cluster

FOR_OPERATORS = 0.5
"""Maximum part of this machine's cores for operators; Ray itself needs the rest."""
OFFER = 1000
MOST_DEVICES = 16
STORE_BYTES = 96 * 2**20
"""Memory of a node's object store."""


@dataclass(frozen=True, slots=True)
class LocalDevices:
    """The nodes of a local Ray."""

    ray: Any  # the module, connected to them
    cluster: Cluster
    folder: Path  # with a file for each core of each device; the lock of a file represents the core
    share: float  # of a core of this machine that represents a core of a device

    def speed(self, device: str) -> float:
        """MIPS of a core of a device, less what is reserved of it."""
        return float(self.cluster.devices.speed[self.cluster.devices.index(device)])

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
    return min(1.0, FOR_OPERATORS * available_cores() / cores)


def offers_of(cluster: Cluster) -> list[dict[str, Any]]:
    """Resources that the node of each device offers."""
    check_devices(cluster.n_devices)
    names = resources(cluster.devices.name).values()
    return [
        {"num_cpus": int(cores), "resources": {name: OFFER}}
        for name, cores in zip(names, cluster.devices.cores, strict=True)
    ]


def check_devices(number: int) -> None:
    """Raise SettingError if there are more devices than a local Ray can have nodes."""
    if number > MOST_DEVICES:
        raise SettingError(
            f"a local Ray represents at most {MOST_DEVICES} devices, not {number}; use a smaller "
            "cluster"
        )


@contextmanager
def local_ray(offers: Sequence[Mapping[str, Any]]) -> Iterator[Any]:
    """Start Ray and a node for each offer; yield the module ``ray``, connected to them.

    This takes some seconds for each node. Ray and all of its processes end with the block. An offer
    has the arguments of ``ray.cluster_utils.Cluster.add_node``.
    """
    os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # nodes on loopback
    for left_out in ("RAY_USAGE_STATS_ENABLED", "RAY_TQDM_PATCH_PRINT"):
        os.environ.setdefault(left_out, "0")
    ray = extra("ray")
    from ray.cluster_utils import Cluster

    cluster: Any = Cluster()
    try:
        for number, offer in enumerate(offers):
            head = {} if number else {"include_dashboard": False}
            cluster.add_node(
                include_log_monitor=False, object_store_memory=STORE_BYTES, **offer, **head
            )
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        cluster.wait_for_nodes()
        yield ray
    finally:
        ray.shutdown()
        cluster.shutdown()
