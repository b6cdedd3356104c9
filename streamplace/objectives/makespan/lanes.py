"""Runs on devices and transfers on links, in lanes: cores, or simultaneous transfers."""

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
    """Runs or transfers in one row of a chart, each in a lane from begin to end."""

    row: str
    thing: Ints  # rows of operators for a device, rows of streams for a link
    begin: Floats
    end: Floats
    lane: Ints
    critical: Bools  # whether each bar is part of the critical chain

    @property
    def n_lanes(self) -> int:
        """Most simultaneous bars."""
        return int(self.lane.max(initial=0)) + 1


def runs(problem: Problem, placement: Placement, schedule: "Schedule") -> list[Bars]:
    """Runs on every device."""
    critical = np.zeros(problem.n_operators, np.bool_)
    critical[schedule.chain.operator] = True
    devices = problem.cluster.devices.name
    return [
        _bars(name, np.flatnonzero(placement.index == d), schedule.start, schedule.finish, critical)
        for d, name in enumerate(devices)
    ]


def transfers(problem: Problem, placement: Placement, schedule: "Schedule") -> list[Bars]:
    """Transfers on every link that is used."""
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
    """Bars in order of their begins, each in the lowest free lane."""
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
