"""The subtasks of a job on devices, as a problem with a placement, and what it carries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from streamplace.engines.flink.measure.key_shares import Shares
from streamplace.engines.flink.program.chains import operators_in
from streamplace.engines.flink.rest.client import FlinkError
from streamplace.model.arrays import Ints
from streamplace.model.cluster import Cluster
from streamplace.model.expansion import Expansion, expand
from streamplace.model.graph import StreamGraph
from streamplace.model.messages import quoted
from streamplace.model.problem import Problem


@dataclass(frozen=True, slots=True)
class PlacedSubtasks:
    """Subtasks of a job on devices."""

    expansion: Expansion
    problem: Problem  # the problem of placing its subtasks
    placement: Ints  # [S] device of each subtask


def placed(
    graph: StreamGraph,
    cluster: Cluster,
    devices: Mapping[str, Sequence[str]],
    shares: Shares | None = None,
) -> PlacedSubtasks:
    """Put the subtasks of a job on devices.

    Operators that Flink fused run on the device of the first of them.

    ``devices``: operator → device of each of its subtasks.
    ``shares``: shares of the subtasks in the tuples of operators where they are uneven.
    """
    expansion = expand(graph, shares)
    problem = Problem(expansion.graph, cluster)
    number = {name: i for i, name in enumerate(cluster.devices.name)}
    placement = np.empty(problem.n_operators, np.int32)
    for row, name in enumerate(graph.operators.name):
        subtasks = np.flatnonzero(expansion.operator == row)
        try:
            (first, *_) = (one for one in (name, *operators_in(name)) if one in devices)
            for subtask, device in zip(subtasks, devices[first], strict=True):
                placement[subtask] = number[device]
        except (KeyError, ValueError):
            raise FlinkError(
                f"the devices that {quoted(name)} runs on are not those of the cluster's "
                "description"
            ) from None
    return PlacedSubtasks(expansion, problem, placement)


def capacity(
    graph: StreamGraph,
    cluster: Cluster,
    devices: Mapping[str, Sequence[str]],
    shares: Shares | None = None,
) -> float:
    """Multiple of the source rates that a placement of subtasks carries; infinite without loads.

    Operators that Flink fused run on the device of the first of them.
    """
    from streamsim import bottleneck, resource_loads

    job = placed(graph, cluster, devices, shares)
    load = bottleneck(resource_loads(job.problem.instance, job.placement)).load
    return 1 / load if load else np.inf


def finite(rate: float | None) -> float | None:
    """Rate for a JSON document: None if it is unknown, or if nothing limits it."""
    return rate if rate is not None and np.isfinite(rate) else None
