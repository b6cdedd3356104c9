"""Drawing placements: operators coloured by device, streams as wide as their traffic."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from streamplace.drawing.figures import GREY, caption, new_figure
from streamplace.errors import SettingError
from streamplace.evaluate.layout import layered_layout
from streamplace.model.arrays import Bools, Floats, Ints
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import OBJECTIVES, Objective, suggested_by

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_OPERATORS = 500
LEGIBLE = 40
COLOURS = ("#4c86c6", "#e8964f", "#62b58f", "#c96a9b", "#b9a04a",
           "#8f7ac9", "#6fc3d6", "#a9746e", "#8a8f99", "#a7c957")  # fmt: skip
SATURATED = "#cc2222"


def draw_placements(
    problem: Problem,
    placements: Sequence[tuple[str, Placement]],
    objective: Objective | None = None,
) -> "Figure":
    """Draw several placements of one graph side by side, each with its value as title.

    Streams inside a device are thin and grey, streams between devices as wide as their traffic; red
    streams and operators with a red ring are what limits by the objective, by default the one that
    the graph suggests.
    """
    judge = objective or OBJECTIVES[suggested_by(problem.graph)]
    n = problem.n_operators
    if n > MOST_OPERATORS:
        raise SettingError(f"a drawing of {n} operators; draw at most {MOST_OPERATORS}")
    at = layered_layout(problem.graph)
    columns, rows = np.ptp(at, axis=0) + 1
    figure, axes = new_figure(
        len(placements), width=float(np.clip(1.1 * columns, 3.6, 12)),
        height=float(np.clip(0.62 * rows + 1.2, 2.6, 10)),
    )  # fmt: skip
    for axis, (name, placement) in zip(axes, placements, strict=True):
        _draw(axis, problem, placement, at, name, judge)
    return figure


def _draw(
    axis: "Axes", problem: Problem, placement: Placement, at: Floats, name: str,
    objective: Objective,
) -> None:  # fmt: skip
    picture = objective.pictured(problem, placement)
    _draw_streams(axis, problem, placement.index, at, picture.streams)
    _draw_operators(axis, problem, placement.index, at, picture.operators)
    axis.set_title(f"{caption(name)}: {picture.title}\n", fontsize=11)
    axis.text(0.5, 1.01, caption(picture.subtitle), transform=axis.transAxes, fontsize=8,
              ha="center", color=GREY)  # fmt: skip
    axis.set_xlim(at[:, 0].min() - 0.5, at[:, 0].max() + 0.5)
    axis.set_ylim(at[:, 1].min() - 0.8, at[:, 1].max() + 0.8)
    axis.axis("off")


def _draw_streams(
    axis: "Axes", problem: Problem, place: Ints,
    at: Floats, marked: Bools,
) -> None:  # fmt: skip
    instance = problem.instance
    heaviest = max(float(instance.traffic.max(initial=0.0)), 1e-12)
    red = marked[instance.stream_index]
    columns = zip(instance.source, instance.target, instance.traffic, red, strict=True)
    for u, v, traffic, full in columns:
        remote = place[u] != place[v]
        width = 0.8 + 4.2 * traffic / heaviest if remote else 0.8
        axis.plot(
            at[[u, v], 0], at[[u, v], 1], zorder=1, solid_capstyle="round", linewidth=width,
            color=SATURATED if full else "#555555" if remote else "#bbbbbb",
            alpha=0.85 if remote else 1.0,
        )  # fmt: skip


def _draw_operators(
    axis: "Axes", problem: Problem, place: Ints,
    at: Floats, marked: Bools,
) -> None:  # fmt: skip
    instance = problem.instance
    cpu = instance.load[np.arange(len(place)), instance.device_type[place]]
    size = 90 + 700 * cpu / max(float(cpu.max(initial=0.0)), 1e-12)
    axis.scatter(
        at[:, 0], at[:, 1], s=size, zorder=2, linewidths=1.6,
        c=[COLOURS[d % len(COLOURS)] for d in place],
        edgecolors=[SATURATED if red else "white" for red in marked],
    )  # fmt: skip
    if len(place) > LEGIBLE:
        return
    for v, (x, y) in enumerate(at):
        axis.annotate(caption(problem.graph.operators.name[v]), (x, y), zorder=3, ha="center",
                      va="center", fontsize=6.5)  # fmt: skip
