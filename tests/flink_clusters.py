"""What tests do to a running Flink cluster."""

import time

from streamplace.engines.flink.local import LocalCluster
from streamplace.engines.flink.rest import Rest


def come_back(rest: Rest, cluster: LocalCluster, device: str) -> None:
    """Start a TaskManager that has ended, and wait until the cluster knows the new one."""
    before = address(rest, device)
    cluster.start(device)
    while address(rest, device) in (None, before):  # the old one may still be listed
        time.sleep(0.1)


def address(rest: Rest, device: str) -> str | None:
    """Where a device's TaskManager takes calls, if the cluster knows one."""
    paths = {manager["id"]: manager["path"] for manager in rest.task_managers()}
    return paths.get(device)
