"""Capacity: share of the source rates that a layout of a job carries, by the model."""

from typing import NamedTuple

import numpy as np

from streamplace.engines.flink.measure.key_shares import Shares
from streamplace.engines.flink.measure.placed_subtasks import placed
from streamplace.model.arrays import Floats
from streamplace.model.cluster import Cluster
from streamplace.model.graph import StreamGraph


class Limit(NamedTuple):
    """The resource that limits a layout first."""

    load: float  # its load at the full rates of the sources, as a fraction of its capacity
    # [N] load that each operator puts on the device. Only the operator of one subtask has one if
    # the core of that subtask limits, and none has if a link or a network card does.
    cpu: Floats


def capacity(
    graph: StreamGraph,
    cluster: Cluster,
    devices: dict[str, list[str]],
    shares: Shares | None = None,
) -> float:
    """Multiple of the source rates that a placement of subtasks carries.

    Operators that Flink fused run on the device of the first of them.
    """
    load = first_limit(graph, cluster, devices, shares).load
    return 1 / load if load else np.inf


def first_limit(
    graph: StreamGraph,
    cluster: Cluster,
    devices: dict[str, list[str]],
    shares: Shares | None = None,
) -> Limit:
    """Return the resource that limits a placement of subtasks first."""
    from streamsim import bottleneck, resource_loads

    job = placed(graph, cluster, devices, shares)
    instance = job.problem.instance
    worst = bottleneck(resource_loads(instance, job.placement))
    there = np.empty(0, np.int64)
    if worst.kind in ("device", "core"):
        there = job.on(worst.device)
        kind = instance.device_type[worst.device]
        if worst.kind == "core":
            there = there[[int(np.argmax(instance.core_pressure[there, kind]))]]
    return Limit(worst.load, job.cpu(there))
