"""Rates that a layout allows to sources that are held back, beside those that keep up.

If back-pressure holds some sources back and not others, another layout changes the rates of the
former only. On every device, core, link and network card, the others take their part first. If the
held-back sources send f times as much, then

    others + f · held back ≤ scale,

where loads are fractions of what constant loads leave, and ``scale`` is the load at which the
present layout was measured to be full, 1 if the model is exact. The largest f that fits everywhere
is that of the layout.
"""

from collections.abc import Set
from dataclasses import dataclass, replace

import numpy as np

from streamplace.engines.flink.measure.key_shares import Shares
from streamplace.engines.flink.measure.placed_subtasks import PlacedSubtasks, placed
from streamplace.model.arrays import Bools, Floats
from streamplace.model.cluster import Cluster
from streamplace.model.graph import StreamGraph
from streamplace.model.problem import Problem

TRACE = 1e-9
"""Share of a rate that stands for none, because every operator of a graph needs a source."""
ROUNDING = 1e-12
"""Share of a load below which a difference is one of rounding."""


@dataclass(frozen=True, slots=True)
class DividedLoads:
    """Loads of a layout by all sources, and by those that are not held back.

    There is one for each device, link, outgoing and incoming network card, and for the core of each
    subtask, in this order, as a fraction of what constant loads leave.
    """

    job: PlacedSubtasks
    whole: Floats
    others: Floats

    @property
    def _concerned(self) -> Bools:
        """Resources that tuples of the held-back sources use."""
        return self.whole > (1 + ROUNDING) * self.others

    @property
    def fullest(self) -> float:
        """Largest load where tuples of the held-back sources have one; 0 if nowhere."""
        return float(self.whole[self._concerned].max(initial=0.0))

    def limit(self, scale: float) -> float | None:
        """Load 1 / f of the resource that limits the held-back sources first.

        None if the others leave no room for them, or would be held back themselves.

        A resource is full at a load of ``scale``.
        """
        concerned = self._concerned
        room = np.where(concerned, scale, max(scale, 1.0)) - self.others
        if (room <= 0).any():
            return None
        loads = np.zeros(len(room))
        loads[concerned] = (self.whole - self.others)[concerned] / room[concerned]
        return float(loads.max(initial=0.0))


def divided_loads(
    graph: StreamGraph,
    cluster: Cluster,
    devices: dict[str, list[str]],
    held_back: Set[str],
    shares: Shares | None = None,
) -> DividedLoads:
    """Loads of a placement of subtasks; see `capacity`.

    Messages at the measured rates count as constant loads.
    """
    job = placed(graph, cluster, devices, shares)
    subtasks = job.expansion.graph
    rows = rows_of(graph, held_back)[job.expansion.operator]
    others = Problem(without(subtasks, rows), cluster)
    return DividedLoads(job, _pressures(job, job.problem), _pressures(job, others))


def rows_of(graph: StreamGraph, names: Set[str]) -> Bools:
    """[N] whether each operator is one of these."""
    return np.array([name in names for name in graph.operators.name])


def without(graph: StreamGraph, sources: Bools) -> StreamGraph:
    """Graph of which some sources, [N], send next to nothing."""
    return with_rates(graph, np.where(sources, TRACE, 1.0) * graph.operators.rate)


def with_rates(graph: StreamGraph, rates: Floats) -> StreamGraph:
    """Graph with other rates of its sources, [N]."""
    return graph.with_operators(replace(graph.operators, rate=rates))


def _pressures(job: PlacedSubtasks, problem: Problem) -> Floats:
    """Loads at the rates of a problem, in the order of `DividedLoads`."""
    from streamsim import resource_loads

    instance, place = problem.instance, job.placement
    loads = resource_loads(instance, place)
    cores = instance.core_pressure[np.arange(len(place)), instance.device_type[place]]
    return np.concatenate(
        [loads.pressures, loads.links.ravel(), loads.egress, loads.ingress, cores]
    )
