"""Capacity: share of the source rates that a layout of a job carries, by the model."""

import numpy as np

from streamplace.engines.flink.program.chains import unfused
from streamplace.engines.flink.rest.client import FlinkError
from streamplace.model.cluster import Cluster
from streamplace.model.expansion import expand
from streamplace.model.graph import StreamGraph
from streamplace.model.messages import quoted
from streamplace.model.problem import Problem


def capacity(graph: StreamGraph, cluster: Cluster, devices: dict[str, list[str]]) -> float:
    """Multiple of the source rates that a placement of subtasks carries.

    Operators that Flink fused run on the device of the first of them.
    """
    from streamsim import bottleneck, resource_loads

    expansion = expand(graph)
    problem = Problem(expansion.graph, cluster)
    number = {name: i for i, name in enumerate(cluster.devices.name)}
    placement = np.empty(problem.n_operators, np.int32)
    for row, name in enumerate(graph.operators.name):
        subtasks = np.flatnonzero(expansion.operator == row)
        try:
            (first, *_) = (one for one in (name, *unfused(name)) if one in devices)
            for subtask, device in zip(subtasks, devices[first], strict=True):
                placement[subtask] = number[device]
        except (KeyError, ValueError):
            raise FlinkError(
                f"the devices that {quoted(name)} runs on are not those of the cluster's "
                "description"
            ) from None
    load = bottleneck(resource_loads(problem.instance, placement)).load
    return 1 / load if load else np.inf
