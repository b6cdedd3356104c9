"""A pass in lanes: runs on the cores of devices, and simultaneous transfers on links.

The lanes are drawn as a Gantt chart, or written in the Trace Event Format, which Perfetto and
Chrome show.
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from streamplace.display.report import quantity
from streamplace.drawing.figures import BAND, LIMIT, PALETTE
from streamplace.drawing.style import cut_to, text_width
from streamplace.model.arrays import Bools, Floats, Ints
from streamplace.model.message_text import counted, shown
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.explanation import PassTimeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from streamsim.passes import Schedule

MICROSECONDS = 1e6
MAX_ROWS = 40
"""Devices, and links, that are drawn: the busiest ones."""
MIN_BUSY = 0.005
"""Busy share of the makespan for the row of a link off the critical chain."""
MAX_NAMED = 400
"""Bars in a chart with names; names of more would not be legible."""
RUN, SEND, CRITICAL = PALETTE[0], PALETTE[4], LIMIT
WIDTH, MAX_HEIGHT = 11.0, 60.0
"""Width and greatest height of the chart, in inches."""
NAME = 7.0
"""Size of names in bars, in points."""
DEVICE_ROW, LINK_ROW = 0.36, 0.2
"""Heights of rows with one lane, in inches."""
MAX_ROW_HEIGHT = 2.0
"""Height of a row with many lanes, relative to a row with one lane."""
SCALES = (
    (7200, 1 / 3600, "hours"),
    (120, 1 / 60, "minutes"),
    (1, 1.0, "seconds"),
    (1e-3, 1e3, "milliseconds"),
    (0, 1e6, "microseconds"),
)
"""Minimum makespan for a unit, units per second, and name of the unit."""


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
        """Maximum number of simultaneous bars."""
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


def trace(problem: Problem, placement: Placement, timeline: PassTimeline) -> dict[str, Any]:
    """Devices and links as processes, cores as threads, streams between devices as arrows."""
    schedule = timeline.schedule
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
            "queue": timeline.queue,
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


@dataclass(frozen=True, slots=True)
class ChartRow:
    """A row of the chart."""

    bars: Bars
    colour: str
    names: tuple[str, ...]  # of the bars; empty without names
    top: float  # inches below the upper end of the axes
    height: float  # inches


def gantt(problem: Problem, placement: Placement, timeline: PassTimeline, figure: "Figure") -> str:
    """Draw devices as rows, the used links below them, and the critical chain in red.

    Returns the title. The bars have labels for a legend.
    """
    schedule = timeline.schedule
    devices = _busiest(runs(problem, placement, schedule))
    used = transfers(problem, placement, schedule)
    least = MIN_BUSY * schedule.makespan
    links = _busiest([bars for bars in used if bars.critical.any() or _busy(bars) >= least])
    rows = _rows(problem, devices, links)
    axis = figure.subplots()
    bottom = rows[-1].top + rows[-1].height
    figure.set_size_inches(WIDTH, min(1.1 + bottom, MAX_HEIGHT))
    scale, unit = next(
        (factor, unit) for least, factor, unit in SCALES if schedule.makespan >= least
    )
    end = max(schedule.makespan * scale, 1e-300)
    for row in rows:
        _draw(axis, row, scale, end)
    middles = [row.top + row.height / 2 for row in rows]
    axis.set_yticks(middles, [shown(row.bars.row, 24).replace("$", r"\$") for row in rows])
    axis.set(xlabel=unit, xlim=(0, end), ylim=(bottom, 0))
    axis.tick_params(labelsize=8)
    axis.spines[["top", "right", "left"]].set_visible(False)
    colours = {"runs on the device": RUN, "on the critical chain": CRITICAL}
    if links:
        colours["is sent over the link"] = SEND
    for label, colour in colours.items():
        axis.bar(0, 0, color=colour, label=label)  # outside the axes, for the legend
    left_out = problem.n_devices - len(devices), len(used) - len(links)
    return _title(problem, schedule.makespan, left_out, held=timeline.queue == "order")


def _title(problem: Problem, makespan: float, left_out: tuple[int, int], *, held: bool) -> str:
    """Title with the makespan, and the numbers of omitted rows."""
    facts = [f"{shown(problem.graph.name)}: one pass takes {quantity(makespan, 's')}"]
    if held:
        facts.append("devices hold the order")
    for count, what in zip(left_out, ("device", "link"), strict=True):
        if count > 0:
            facts.append(f"{counted(count, what)} with little to do left out")
    return ", ".join(facts)


def _busy(bars: Bars) -> float:
    return float((bars.end - bars.begin).sum())


def _busiest(rows: list[Bars]) -> list[Bars]:
    """The busiest rows, in the given order."""
    busy = np.array([_busy(bars) for bars in rows])
    busiest = sorted(np.argsort(-busy, kind="stable")[:MAX_ROWS].tolist())
    return [rows[i] for i in busiest]


def _rows(problem: Problem, devices: list[Bars], links: list[Bars]) -> list[ChartRow]:
    """Rows from top to bottom; the bars have no names if there are too many."""
    operators, label = problem.graph.operators.name, problem.graph.streams.label
    named = sum(len(bars.thing) for bars in (*devices, *links)) <= MAX_NAMED
    rows: list[ChartRow] = []
    top = 0.0
    for bars in (*devices, *links):
        device = len(rows) < len(devices)
        names = [operators[v] if device else label(v) for v in bars.thing.tolist() if named]
        height = (DEVICE_ROW if device else LINK_ROW) * min(bars.n_lanes**0.5, MAX_ROW_HEIGHT)
        rows.append(ChartRow(bars, RUN if device else SEND, tuple(names), top, height))
        top += height
    return rows


def _draw(axis: "Axes", row: ChartRow, scale: float, span: float) -> None:
    """Draw one row; the bars of a colour are one collection, which is fast even for 10⁵ of them."""
    from matplotlib.collections import PolyCollection

    bars, inner = row.bars, 0.9 * row.height
    axis.axhspan(row.top + 0.05 * row.height, row.top + inner, color=BAND, linewidth=0, zorder=0)
    height = inner / bars.n_lanes
    low = row.top + 0.05 * row.height + bars.lane * height
    begin, end = bars.begin * scale, bars.end * scale
    high = low + 0.92 * height
    corners = np.stack([begin, low, end, low, end, high, begin, high], 1).reshape(-1, 4, 2)
    for critical, fill in ((False, row.colour), (True, CRITICAL)):
        chosen = corners[bars.critical == critical]
        edge = "white" if row.names else "none"
        axis.add_collection(
            PolyCollection(chosen, facecolors=fill, edgecolors=edge, linewidths=0.4)
        )
    widths = (end - begin) / span * (WIDTH - 2) * 72  # points
    if height >= 0.12:
        middle = np.stack([(begin + end) / 2, low + 0.46 * height], 1)
        _write(axis, row, middle, widths.tolist())


def _write(axis: "Axes", row: ChartRow, middle: Floats, widths: Sequence[float]) -> None:
    """Write names into the bars that are wide enough."""
    for i, name in enumerate(row.names):
        text = cut_to(shown(name), NAME, widths[i])
        if len(text) < min(2, len(name)) or text_width(text, NAME) > widths[i]:
            continue  # a letter of a longer name says nothing
        dark = row.colour == SEND and not row.bars.critical[i]
        axis.text(
            middle[i, 0],
            middle[i, 1],
            text,
            ha="center",
            va="center",
            fontsize=NAME,
            color="black" if dark else "white",
            clip_on=True,
            parse_math=False,
        )
