"""Scenes: shapes on a page, as SVG with text, reproducible, or in matplotlib, for PNG and PDF."""

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from streamplace.drawing.figures import PAPER, empty_figure
from streamplace.drawing.style import FONT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Point = tuple[float, float]
PER_INCH, POINTS = 96.0, 0.75
"""CSS pixels per inch, and points per pixel."""


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A box with round corners, by its upper left corner; ``hint`` is its tooltip."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    stroke: str = "none"
    stroke_width: float = 0.0
    radius: float = 4.0
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Curve:
    """Connected cubic Bézier curves: a first point, then three points for each of them."""

    points: tuple[Point, ...]
    colour: str
    width: float
    dashed: bool = False
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Arrowhead:
    """A triangle."""

    points: tuple[Point, Point, Point]
    colour: str


@dataclass(frozen=True, slots=True)
class Label:
    """A line of text; (x, y) is the beginning or the middle of its baseline."""

    x: float
    y: float
    text: str
    size: float
    colour: str
    centred: bool = False
    bold: bool = False


Shape = Rectangle | Curve | Arrowhead | Label


@dataclass(frozen=True, slots=True)
class Scene:
    """Shapes on a page, in drawing order."""

    width: float
    height: float
    title: str
    shapes: tuple[Shape, ...]


def as_svg(scene: Scene) -> str:
    """Convert a scene to an SVG document."""
    width, height = _number(scene.width), _number(scene.height)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" font-family="{FONT}">\n'
        f"<title>{escape(scene.title)}</title>\n"
        f'<rect width="{width}" height="{height}" rx="6" fill="{PAPER}"/>\n'
        + "".join(f"{_shape(shape)}\n" for shape in scene.shapes)
        + "</svg>\n"
    )


def dashes(width: float) -> tuple[float, float]:
    """Lengths of the dashes of a stream and of its gaps."""
    return 3 + 0.7 * width, 2.5 + 0.4 * width


def _shape(shape: Shape) -> str:
    if isinstance(shape, Rectangle):
        return _rectangle(shape)
    if isinstance(shape, Curve):
        return _curve(shape)
    if isinstance(shape, Arrowhead):
        return f'<path d="M{_points(shape.points)}z" fill="{shape.colour}"/>'
    return _label(shape)


def _rectangle(box: Rectangle) -> str:
    stroke = (
        f' stroke="{box.stroke}" stroke-width="{_number(box.stroke_width)}"'
        if box.stroke_width
        else ""
    )
    head = (
        f'<rect x="{_number(box.x)}" y="{_number(box.y)}" width="{_number(box.width)}" '
        f'height="{_number(box.height)}" rx="{_number(box.radius)}" fill="{box.fill}"{stroke}'
    )
    return _hinted("rect", head, box.hint)


def _curve(curve: Curve) -> str:
    first, *rest = curve.points
    on, off = dashes(curve.width)
    dashed = f' stroke-dasharray="{_number(on)} {_number(off)}"' if curve.dashed else ""
    head = (
        f'<path d="M{_points((first,))}C{_points(tuple(rest))}" fill="none" '
        f'stroke="{curve.colour}" stroke-width="{_number(curve.width)}"{dashed}'
    )
    return _hinted("path", head, curve.hint)


def _label(label: Label) -> str:
    anchor = ' text-anchor="middle"' if label.centred else ""
    weight = ' font-weight="bold"' if label.bold else ""
    return (
        f'<text x="{_number(label.x)}" y="{_number(label.y)}" '
        f'font-size="{_number(label.size)}"{anchor}{weight} fill="{label.colour}">'
        f"{escape(label.text)}</text>"
    )


def _hinted(tag: str, head: str, hint: str) -> str:
    return f"{head}><title>{escape(hint)}</title></{tag}>" if hint else f"{head}/>"


def _points(points: tuple[Point, ...]) -> str:
    return " ".join(f"{_number(x)} {_number(y)}" for x, y in points)


def _number(value: float) -> str:
    """Format a number to a tenth, as short as possible."""
    text = f"{value:.1f}"
    return "0" if text == "-0.0" else text.removesuffix(".0")


def as_figure(scene: Scene) -> "Figure":
    """Convert a scene to a figure of its size on screen."""
    figure = empty_figure(scene.width / PER_INCH, scene.height / PER_INCH)
    figure.set_layout_engine("none")
    axis = figure.add_axes((0, 0, 1, 1))
    axis.set(xlim=(0, scene.width), ylim=(scene.height, 0))
    axis.axis("off")
    for depth, shape in enumerate(scene.shapes):
        if isinstance(shape, Rectangle):
            _add_rectangle(axis, shape, depth)
        elif isinstance(shape, Curve):
            _add_curve(axis, shape, depth)
        elif isinstance(shape, Label):
            _add_label(axis, shape, depth)
        else:
            from matplotlib.patches import Polygon

            head = Polygon(shape.points, closed=True, color=shape.colour, linewidth=0, zorder=depth)
            axis.add_patch(head)
    return figure


def _add_rectangle(axis: "Axes", box: Rectangle, depth: int) -> None:
    from matplotlib.patches import FancyBboxPatch

    axis.add_patch(
        FancyBboxPatch(
            (box.x, box.y), box.width, box.height, zorder=depth, facecolor=box.fill,
            boxstyle=f"round,pad=0,rounding_size={box.radius}", edgecolor=box.stroke,
            linewidth=box.stroke_width * POINTS,
        )
    )  # fmt: skip


def _add_curve(axis: "Axes", curve: Curve, depth: int) -> None:
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


def _add_label(axis: "Axes", label: Label, depth: int) -> None:
    axis.text(
        label.x, label.y, label.text, fontsize=label.size * POINTS, color=label.colour,
        ha="center" if label.centred else "left", va="baseline", zorder=depth,
        fontweight="bold" if label.bold else "normal", parse_math=False,
    )  # fmt: skip
