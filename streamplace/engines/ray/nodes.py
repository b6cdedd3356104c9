"""A local Ray of several nodes on loopback, one for each device."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from streamplace.errors import SettingError
from streamplace.io.extras import extra

MOST_DEVICES = 16
STORE_BYTES = 96 * 2**20
"""Memory of a node's object store."""


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

    This takes some seconds for each node. Ray and all of its processes end with the block.

    Parameters
    ----------
    offers
        Resources of each node, as arguments of ``ray.cluster_utils.Cluster.add_node``.
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
