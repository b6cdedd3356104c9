"""Worth: what a job gains where it is to be moved, against what moving it costs."""

from dataclasses import dataclass

import numpy as np

from streamplace.engines.flink.chains import unfused
from streamplace.engines.flink.rest import FlinkError, Rest
from streamplace.engines.flink.state import last_checkpoint_seconds
from streamplace.engines.live import Measurement
from streamplace.model.cluster import Cluster
from streamplace.model.expansion import expand
from streamplace.model.graph import StreamGraph
from streamplace.model.messages import quoted
from streamplace.model.problem import Problem

LEAST_GAIN = 0.02
"""Predictions are not so exact that a smaller gain should move a job."""
START_SECONDS = 1.0
"""What a small job takes from its savepoint until it runs again (docs/how-to/flink.md)."""


@dataclass(frozen=True, slots=True)
class Worth:
    """What a move gains.

    Attributes
    ----------
    rate
        Tuples/s that the sources emit now.
    carried, carriable
        Tuples/s that the present placement and the new one can carry.
    is_limited
        Whether the sources are held back now.
    outage
        Seconds that the job is expected to stand still.
    """

    rate: float
    carried: float
    carriable: float
    is_limited: bool
    outage: float

    @property
    def gain(self) -> float:
        """Tuples/s more that the job will read; 0 where it reads everything already."""
        if not self.is_limited:
            return 0.0
        return max(0.0, self.rate * (self.carriable / self.carried - 1))

    @property
    def pays(self) -> bool:
        """Whether the job gains more than predictions may err."""
        return self.gain > LEAST_GAIN * self.rate

    def __str__(self) -> str:
        if not self.is_limited:
            return (
                f"the job keeps up with its sources where it runs ({self.rate:.4g} tuples/s; it "
                f"could carry {self.carried:.4g}, elsewhere {self.carriable:.4g}), so moving it "
                "gains nothing"
            )
        if not self.pays:
            return (
                f"the job reads {self.rate:.4g} tuples/s, and no placement was found that carries "
                f"over {LEAST_GAIN:.0%} more, so that moving it gains nothing"
            )
        lost = self.outage * self.rate
        return (
            f"moving it should gain {self.gain:.4g} tuples/s ({self.gain / self.rate:.0%}) and "
            f"stops it for about {self.outage:.2g} s, which is made up for in "
            f"{lost / self.gain:.2g} s"
        )


def worth_of(
    rest: Rest,
    job: str,
    measured: Measurement,
    before: dict[str, list[str]],
    after: dict[str, list[str]],
) -> Worth:
    """What moving a job gains that was measured where it runs.

    Parameters
    ----------
    before, after
        Operator → the device of each of its subtasks.
    """
    graph, cluster = measured.graph, measured.cluster
    return Worth(
        graph.source_rate,
        graph.source_rate * capacity(graph, cluster, before),
        graph.source_rate * capacity(graph, cluster, after),
        measured.is_limited,
        START_SECONDS + last_checkpoint_seconds(rest, job),
    )


def capacity(graph: StreamGraph, cluster: Cluster, devices: dict[str, list[str]]) -> float:
    """Multiple of the sources' rates that a placement of subtasks carries.

    Operators that Flink fused run where the first of them does.
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
