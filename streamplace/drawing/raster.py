"""Conversion of a scene to a matplotlib figure, for PNG and PDF."""

from typing import TYPE_CHECKING

from streamplace.drawing.figures import empty_figure
from streamplace.drawing.scene import Curve, Label, Rectangle, Scene
from streamplace.drawing.svg import dashes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PER_INCH, POINTS = 96.0, 0.75
"""CSS pixels per inch, and points per pixel."""


def as_figure(scene: Scene) -> "Figure":
    """Convert a scene to a figure of its size on screen."""
    figure = empty_figure(scene.width / PER_INCH, scene.height / PER_INCH)
    figure.set_layout_engine("none")
    axis = figure.add_axes((0, 0, 1, 1))
    axis.set(xlim=(0, scene.width), ylim=(scene.height, 0))
    axis.axis("off")
    for depth, shape in enumerate(scene.shapes):
        if isinstance(shape, Rectangle):
            _rectangle(axis, shape, depth)
        elif isinstance(shape, Curve):
            _curve(axis, shape, depth)
        elif isinstance(shape, Label):
            _label(axis, shape, depth)
        else:
            from matplotlib.patches import Polygon

            head = Polygon(shape.points, closed=True, color=shape.colour, linewidth=0, zorder=depth)
            axis.add_patch(head)
    return figure


def _rectangle(axis: "Axes", box: Rectangle, depth: int) -> None:
    from matplotlib.patches import FancyBboxPatch

    axis.add_patch(
        FancyBboxPatch(
            (box.x, box.y), box.width, box.height, zorder=depth, facecolor=box.fill,
            boxstyle=f"round,pad=0,rounding_size={box.radius}", edgecolor=box.stroke,
            linewidth=box.stroke_width * POINTS,
        )
    )  # fmt: skip


def _curve(axis: "Axes", curve: Curve, depth: int) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    codes = [Path.MOVETO, *[Path.CURVE4] * (len(curve.points) - 1)]
    line: str | tuple[float, tuple[float, float]] = "-"
    if curve.dashed:
        on, off = dashes(curve.width)
        line = (0.0, (on / curve.width, off / curve.width))  # relative to the width of the line
    axis.add_patch(
        PathPatch(
            Path(list(curve.points), codes), fill=False, zorder=depth, edgecolor=curve.colour,
            linewidth=curve.width * POINTS, linestyle=line, capstyle="butt",
        )
    )  # fmt: skip


def _label(axis: "Axes", label: Label, depth: int) -> None:
    axis.text(
        label.x, label.y, label.text, fontsize=label.size * POINTS, color=label.colour,
        ha="center" if label.centred else "left", va="baseline", zorder=depth,
        fontweight="bold" if label.bold else "normal", parse_math=False,
    )  # fmt: skip
