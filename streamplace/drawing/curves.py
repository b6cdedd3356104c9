"""Curves in steps: values by number of moves, and fronts of two objectives."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from streamplace.drawing.figures import BLUE, finish, legend_text, panels, save
from streamplace.placers.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save_steps(result: Result, path: Path) -> None:
    """Write the curve of the moves from the present placement."""
    judge, times = result.judge, 100 if result.judge.is_share else 1
    points = [(step.moves, times * step.value, step.proven) for step in result.steps]
    name, title = legend_text(result.problem.graph.name), "operators that move"
    figure = dotted_steps(
        points, title, f"{judge.quantity}{', %' if judge.is_share else ''}", f"Moves\n{name}"
    )
    figure.axes[0].locator_params("x", integer=True)
    save(figure, path)


def dotted_steps(
    points: Sequence[tuple[float, float, bool]], x: str, y: str, title: str
) -> "Figure":
    """Draw points as steps: dots for points that are proven to be best, circles for others."""
    figure, (axis,) = panels([""])
    axis.plot([p[0] for p in points], [p[1] for p in points], color=BLUE, drawstyle="steps-post")
    for is_proven, label, fill in ((True, "proven", BLUE), (False, "found", "none")):
        chosen = [(a, b) for a, b, proven in points if proven == is_proven]
        if chosen:
            axis.plot(
                *zip(*chosen, strict=True), "o", color=BLUE, markerfacecolor=fill, label=label
            )
    axis.set(xlabel=x, ylabel=y)
    return finish(figure, title)
