"""The subtasks of a job on devices, as a problem with a placement, and what it carries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from streamplace.engines.flink.measure.key_shares import Shares
from streamplace.engines.flink.program.chains import operators_in
from streamplace.engines.flink.rest.client import FlinkError
from streamplace.model.arrays import Floats, Ints, Longs
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

    def on(self, device: int) -> Longs:
        """Subtasks on a device."""
        return np.flatnonzero(self.placement == device)

    def cpu(self, subtasks: Longs) -> Floats:
        """[N] load that some subtasks put on their devices, by operator."""
        instance = self.problem.instance
        loads = instance.load[subtasks, instance.device_type[self.placement[subtasks]]]
        cpu = np.zeros(self.expansion.original.n_operators)
        np.add.at(cpu, self.expansion.operator[subtasks], loads)
        return cpu


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
    """Multiple of the source rates that a placement of subtasks carries; infinite without loads.

    Operators that Flink fused run on the device of the first of them.
    """
    load = first_limit(graph, cluster, devices, shares).load
    return 1 / load if load else np.inf


def finite(rate: float | None) -> float | None:
    """Rate for a JSON document: None if it is unknown, or if nothing limits it."""
    return rate if rate is not None and np.isfinite(rate) else None


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
