"""The Gantt chart of a pass: what every device runs and every link carries, from when to when."""

from typing import TYPE_CHECKING

import numpy as np

from streamplace.model.messages import shown
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.report import quantity
from streamplace.objectives.makespan.lanes import Bars, runs, transfers
from streamplace.objectives.makespan.options import PassOptions
from streamplace.objectives.makespan.timeline import pass_schedule

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_ROWS = 40
"""Devices and links drawn; of more, those with most to do."""
MOST_NAMED = 400
"""Bars that bear names; in a picture of more, nobody could read any."""
RUN, SEND, CRITICAL, PALE = "#3366aa", "#dd7733", "#bb2222", "#f2f2f2"
INCHES, TALLEST, LEAST_ROW, LETTER = 11.0, 60.0, 0.32, 0.065
"""Width and greatest height of the chart, height of a row, and what a letter of a name takes."""


def gantt(problem: Problem, placement: Placement, options: PassOptions, figure: "Figure") -> None:
    """Draw devices as rows, links that are used below them, and the critical chain in red."""
    schedule = pass_schedule(problem, placement, options)
    devices = _busiest(runs(problem, placement, schedule))
    links = _busiest(transfers(problem, placement, schedule))
    rows = [(bars, RUN) for bars in devices] + [(bars, SEND) for bars in links]
    axis = figure.subplots()
    height = LEAST_ROW * sum(bars.n_lanes**0.5 for bars, _ in rows)
    figure.set_size_inches(INCHES, min(1.3 + height, TALLEST))
    scale, unit = _scale(schedule.makespan)
    names = _names(problem, rows)
    for i, (bars, colour) in enumerate(rows):
        _draw(axis, i, bars, colour, scale, schedule.makespan * scale, names[i])
    axis.set_yticks(range(len(rows)), [shown(bars.row, 24).replace("$", r"\$") for bars, _ in rows])
    axis.set(
        xlabel=unit, xlim=(0, max(schedule.makespan * scale, 1e-300)), ylim=(len(rows) - 0.5, -0.5)
    )
    axis.tick_params(labelsize=8)
    axis.spines[["top", "right", "left"]].set_visible(False)
    summary = f"{shown(problem.graph.name)}: a pass takes {quantity(schedule.makespan, 's')}"
    left_out = problem.n_devices - len(devices)
    more = f", {left_out} devices with less to do left out" if left_out > 0 else ""
    held = options.rules_of(placement)[0].queue == "order"
    order = ", devices hold the order" if held else ""
    title = f"{summary} (critical chain in red{order}{more})"
    axis.set_title(title.replace("$", r"\$"), fontsize=10, loc="left")


def _busiest(rows: list[Bars]) -> list[Bars]:
    """Rows in their order, of too many those with most to do."""
    busy = [float((bars.end - bars.begin).sum()) for bars in rows]
    busiest = sorted(np.argsort(-np.array(busy), kind="stable")[:MOST_ROWS].tolist())
    return [rows[i] for i in busiest]


def _names(problem: Problem, rows: list[tuple[Bars, str]]) -> list[list[str]]:
    """Names of the bars of every row, none where there are too many."""
    if sum(len(bars.thing) for bars, _ in rows) > MOST_NAMED:
        return [[] for _ in rows]
    operators, label = problem.graph.operators.name, problem.graph.streams.label
    return [
        [operators[v] if colour == RUN else label(v) for v in bars.thing.tolist()]
        for bars, colour in rows
    ]


def _draw(
    axis: "Axes", row: int, bars: Bars, colour: str, scale: float, span: float, names: list[str]
) -> None:
    """Draw one row: all bars of a colour are one collection, so that 10⁵ of them are quick."""
    from matplotlib.collections import PolyCollection

    axis.axhspan(row - 0.42, row + 0.42, color=PALE, linewidth=0, zorder=0)
    height = 0.8 / bars.n_lanes
    low = row - 0.4 + bars.lane * height
    begin, end = bars.begin * scale, bars.end * scale
    corners = np.stack(
        [
            np.stack([begin, low], 1),
            np.stack([end, low], 1),
            np.stack([end, low + 0.92 * height], 1),
            np.stack([begin, low + 0.92 * height], 1),
        ],
        axis=1,
    )
    for critical, fill in ((False, colour), (True, CRITICAL)):
        chosen = corners[bars.critical == critical]
        edge = "white" if names else "none"
        axis.add_collection(
            PolyCollection(chosen, facecolors=fill, edgecolors=edge, linewidths=0.4)
        )
    for i, name in enumerate(names):
        room = (end[i] - begin[i]) / span * (INCHES - 2) / LETTER if span else 0
        if height >= 0.25 and room >= 2:
            text = name if len(name) <= room else f"{name[: int(room) - 1]}…"
            axis.text(
                (begin[i] + end[i]) / 2,
                low[i] + 0.46 * height,
                shown(text).replace("$", r"\$"),
                ha="center",
                va="center",
                fontsize=7,
                color="white",
                clip_on=True,
            )


def _scale(makespan: float) -> tuple[float, str]:
    """Factor from seconds to the unit that reads best."""
    for factor, unit in ((1.0, "seconds"), (1e3, "milliseconds")):
        if makespan * factor >= 1 or makespan == 0:
            return factor, unit
    return 1e6, "microseconds"
