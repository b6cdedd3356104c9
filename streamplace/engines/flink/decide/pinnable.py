"""Layouts that can be pinned with the indexes and layers that TaskManagers have left.

Every operator that is spread over devices takes an index on each of them, unless another one has
the same devices in the same order. There are few of them: see
`streamplace.engines.flink.pin.spread`.
"""

from streamplace.engines.flink.decide.layouts import Layout
from streamplace.engines.flink.pin.fitting import Managers, limits_of
from streamplace.engines.flink.pin.pinning import pinning
from streamplace.errors import PlacementError
from streamplace.model.graph import StreamGraph

UNPAIRED = ("hash", "rebalance")
"""Partitionings that join every subtask to every other one, so that their order does not matter."""


def pinnable(layout: Layout, graph: StreamGraph, managers: Managers) -> Layout | None:
    """Return a layout as it can be pinned; None if that is impossible.

    If it takes more indexes than are left, the devices of operators without partners are sorted,
    so that operators with equal numbers on the same devices have one index together. Layouts on
    TaskManagers that are not there yet are returned as they are.

    Parameters
    ----------
    managers
        TaskManagers with the resources that the job may use.
    """
    there = {manager["id"] for manager in managers}
    if any(device not in there for devices in layout.values() for device in devices):
        return layout
    return next((one for one in (layout, _merged(layout, graph)) if _fits(one, managers)), None)


def _merged(layout: Layout, graph: StreamGraph) -> Layout:
    """Layout with sorted devices of the operators of which no subtask has a partner."""
    paired = {
        name
        for stream in graph.streams
        if stream.partitioning not in UNPAIRED
        for name in (stream.source, stream.target)
    }
    return {
        name: devices if name in paired else sorted(devices) for name, devices in layout.items()
    }


def _fits(layout: Layout, managers: Managers) -> bool:
    spread = {d for devices in layout.values() if len(set(devices)) > 1 for d in devices}
    try:
        pinning(layout, limits_of(managers, spread))
    except PlacementError:
        return False
    return True
