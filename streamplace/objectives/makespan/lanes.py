"""Who runs where and when, in lanes: a core of a device, or a transfer beside others on a link."""

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from streamplace.model.arrays import Bools, Floats, Ints
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem

if TYPE_CHECKING:
    from streamsim.passes import Schedule


@dataclass(frozen=True, slots=True)
class Bars:
    """What goes on in one row of a chart: things from begin to end, each in a lane of its own.

    Attributes
    ----------
    thing
        Operator rows on a device, stream rows on a link.
    critical
        Whether each is part of the critical chain.
    """

    row: str
    thing: Ints
    begin: Floats
    end: Floats
    lane: Ints
    critical: Bools

    @property
    def n_lanes(self) -> int:
        """Most that goes on at once."""
        return int(self.lane.max(initial=0)) + 1


def runs(problem: Problem, placement: Placement, schedule: "Schedule") -> list[Bars]:
    """What every device runs."""
    critical = np.zeros(problem.n_operators, np.bool_)
    critical[schedule.chain.operator] = True
    devices = problem.cluster.devices.name
    return [
        _bars(name, np.flatnonzero(placement.index == d), schedule.start, schedule.finish, critical)
        for d, name in enumerate(devices)
    ]


def transfers(problem: Problem, placement: Placement, schedule: "Schedule") -> list[Bars]:
    """What every link that is used carries."""
    streams, devices = problem.graph.streams, problem.cluster.devices.name
    critical = np.zeros(len(streams), np.bool_)
    critical[schedule.chain.stream[schedule.chain.stream >= 0]] = True
    a, b = placement.index[streams.source], placement.index[streams.target]
    links = a.astype(np.int64) * problem.n_devices + b
    links_bars = []
    for link in np.unique(links[a != b]).tolist():
        row = f"{devices[link // problem.n_devices]}→{devices[link % problem.n_devices]}"
        carried = np.flatnonzero((links == link) & (a != b))
        links_bars.append(_bars(row, carried, schedule.departure, schedule.arrival, critical))
    return links_bars


def _bars(row: str, things: NDArray[np.intp], begin: Floats, end: Floats, critical: Bools) -> Bars:
    """Bars in the order in which they begin, each in the lowest lane that is free."""
    order = things[np.lexsort((end[things], begin[things]))].astype(np.int32)
    lanes = np.zeros(len(order), np.int32)
    busy: list[tuple[float, int]] = []
    free: list[int] = []
    for i, thing in enumerate(order.tolist()):
        while busy and busy[0][0] <= begin[thing]:
            heapq.heappush(free, heapq.heappop(busy)[1])
        lanes[i] = heapq.heappop(free) if free else len(busy)
        heapq.heappush(busy, (float(end[thing]), int(lanes[i])))
    return Bars(row, order, begin[order], end[order], lanes, critical[order])
