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

    def svg(self) -> str:
        """SVG element."""
        stroke = (
            f' stroke="{self.stroke}" stroke-width="{_number(self.stroke_width)}"'
            if self.stroke_width
            else ""
        )
        head = (
            f'<rect x="{_number(self.x)}" y="{_number(self.y)}" width="{_number(self.width)}" '
            f'height="{_number(self.height)}" rx="{_number(self.radius)}" '
            f'fill="{self.fill}"{stroke}'
        )
        return _hinted("rect", head, self.hint)

    def draw(self, axis: "Axes", depth: int) -> None:
        """Add the box to axes of matplotlib."""
        from matplotlib.patches import FancyBboxPatch

        axis.add_patch(
            FancyBboxPatch(
                (self.x, self.y), self.width, self.height, zorder=depth, facecolor=self.fill,
                boxstyle=f"round,pad=0,rounding_size={self.radius}", edgecolor=self.stroke,
                linewidth=self.stroke_width * POINTS,
            )
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Curve:
    """Connected cubic Bézier curves: a first point, then three points for each of them."""

    points: tuple[Point, ...]
    colour: str
    width: float
    dashed: bool = False
    hint: str = ""

    @property
    def dashes(self) -> tuple[float, float]:
        """Lengths of the dashes and of the gaps."""
        return 3 + 0.7 * self.width, 2.5 + 0.4 * self.width

    def svg(self) -> str:
        """SVG element."""
        on, off = self.dashes
        dashed = f' stroke-dasharray="{_number(on)} {_number(off)}"' if self.dashed else ""
        head = (
            f'<path d="M{_points(self.points[:1])}C{_points(self.points[1:])}" fill="none" '
            f'stroke="{self.colour}" stroke-width="{_number(self.width)}"{dashed}'
        )
        return _hinted("path", head, self.hint)

    def draw(self, axis: "Axes", depth: int) -> None:
        """Add the curves to axes of matplotlib."""
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path

        codes = [Path.MOVETO, *[Path.CURVE4] * (len(self.points) - 1)]
        line: str | tuple[float, tuple[float, float]] = "-"
        if self.dashed:
            on, off = self.dashes
            line = (0.0, (on / self.width, off / self.width))  # relative to the width of the line
        axis.add_patch(
            PathPatch(
                Path(list(self.points), codes), fill=False, zorder=depth, edgecolor=self.colour,
                linewidth=self.width * POINTS, linestyle=line, capstyle="butt",
            )
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Arrowhead:
    """A triangle."""

    points: tuple[Point, Point, Point]
    colour: str

    def svg(self) -> str:
        """SVG element."""
        return f'<path d="M{_points(self.points)}z" fill="{self.colour}"/>'

    def draw(self, axis: "Axes", depth: int) -> None:
        """Add the triangle to axes of matplotlib."""
        from matplotlib.patches import Polygon

        head = Polygon(self.points, closed=True, color=self.colour, linewidth=0, zorder=depth)
        axis.add_patch(head)


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

    def svg(self) -> str:
        """SVG element."""
        anchor = ' text-anchor="middle"' if self.centred else ""
        weight = ' font-weight="bold"' if self.bold else ""
        return (
            f'<text x="{_number(self.x)}" y="{_number(self.y)}" '
            f'font-size="{_number(self.size)}"{anchor}{weight} fill="{self.colour}">'
            f"{escape(self.text)}</text>"
        )

    def draw(self, axis: "Axes", depth: int) -> None:
        """Add the text to axes of matplotlib."""
        axis.text(
            self.x, self.y, self.text, fontsize=self.size * POINTS, color=self.colour,
            ha="center" if self.centred else "left", va="baseline", zorder=depth,
            fontweight="bold" if self.bold else "normal", parse_math=False,
        )  # fmt: skip


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
        + "".join(f"{shape.svg()}\n" for shape in scene.shapes)
        + "</svg>\n"
    )


def as_figure(scene: Scene) -> "Figure":
    """Convert a scene to a figure of its size on screen."""
    figure = empty_figure(scene.width / PER_INCH, scene.height / PER_INCH)
    figure.set_layout_engine("none")
    axis = figure.add_axes((0, 0, 1, 1))
    axis.set(xlim=(0, scene.width), ylim=(scene.height, 0))
    axis.axis("off")
    for depth, shape in enumerate(scene.shapes):
        shape.draw(axis, depth)
    return figure


def _hinted(tag: str, head: str, hint: str) -> str:
    return f"{head}><title>{escape(hint)}</title></{tag}>" if hint else f"{head}/>"


def _points(points: tuple[Point, ...]) -> str:
    return " ".join(f"{_number(x)} {_number(y)}" for x, y in points)


def _number(value: float) -> str:
    """Format a number to a tenth, as short as possible."""
    text = f"{value:.1f}"
    return "0" if text == "-0.0" else text.removesuffix(".0")
