"""A pass in lanes: runs on the cores of devices, and simultaneous transfers on links.

The lanes are drawn, or written in the Trace Event Format, which Perfetto and Chrome show.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from streamplace.model.arrays import Bools, Floats, Ints
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.makespan.options import PassOptions
from streamplace.objectives.makespan.timeline import pass_schedule

if TYPE_CHECKING:
    from streamsim.passes import Schedule

MICROSECONDS = 1e6


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


def trace(problem: Problem, placement: Placement, options: PassOptions) -> dict[str, Any]:
    """Devices and links as processes, cores as threads, streams between devices as arrows."""
    schedule = pass_schedule(problem, placement, options)
    operators, streams = problem.graph.operators.name, problem.graph.streams
    events: list[dict[str, Any]] = []
    thread: dict[int, dict[str, int]] = {}
    devices = runs(problem, placement, schedule)
    for pid, bars in enumerate(devices, 1):
        events += _process(pid, bars, "core")
        for event, v in _complete(pid, bars, "running"):
            thread[v] = {"pid": pid, "tid": event["tid"]}
            events.append({**event, "name": operators[v]})
    for pid, bars in enumerate(transfers(problem, placement, schedule), len(devices) + 1):
        events += _process(pid, bars, "lane")
        for event, e in _complete(pid, bars, "sending"):
            u, v = int(streams.source[e]), int(streams.target[e])
            events.append({**event, "name": streams.label(e)})
            leaves = float(schedule.start[u] + 0.99 * (schedule.finish[u] - schedule.start[u]))
            arrow = {"cat": "stream", "name": streams.label(e), "id": e}
            events.append({**arrow, "ph": "s", "ts": leaves * MICROSECONDS, **thread[u]})
            arrives = {"ts": float(schedule.start[v]) * MICROSECONDS, **thread[v]}
            events.append({**arrow, "ph": "f", "bp": "e", **arrives})
    return {
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "otherData": {
            "graph": problem.graph.name,
            "makespan_s": schedule.makespan,
            "queue": options.rules_of(placement)[0].queue,
        },
    }


def _process(pid: int, bars: Bars, lane: str) -> Iterator[dict[str, Any]]:
    """Name a device or link and its lanes."""
    about: dict[str, Any] = {"ph": "M", "pid": pid, "tid": 0}
    yield {**about, "name": "process_name", "args": {"name": bars.row}}
    yield {**about, "name": "process_sort_index", "args": {"sort_index": pid}}
    for i in range(bars.n_lanes):
        yield {**about, "tid": i + 1, "name": "thread_name", "args": {"name": f"{lane} {i}"}}


def _complete(pid: int, bars: Bars, what: str) -> Iterator[tuple[dict[str, Any], int]]:
    """Events without their names, and the rows of their operators or streams."""
    columns = (bars.thing, bars.begin, bars.end, bars.lane, bars.critical)
    for thing, begin, end, lane, critical in zip(*(c.tolist() for c in columns), strict=True):
        event = {
            "ph": "X",
            "cat": f"{what},critical" if critical else what,
            "pid": pid,
            "tid": lane + 1,
            "ts": begin * MICROSECONDS,
            "dur": (end - begin) * MICROSECONDS,
            "args": {"critical": critical},
        }
        yield event, thing
