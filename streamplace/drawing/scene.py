"""Scenes: shapes on a page, as SVG with text; equal scenes give equal bytes."""

from dataclasses import dataclass
from html import escape

from streamplace.drawing.figures import PAPER
from streamplace.drawing.style import FONT

Point = tuple[float, float]


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


@dataclass(frozen=True, slots=True)
class Curve:
    """Connected cubic Bézier curves: a first point, then three points for each of them."""

    points: tuple[Point, ...]
    colour: str
    width: float
    dashed: bool = False
    hint: str = ""

    def svg(self) -> str:
        """SVG element."""
        on, off = 3 + 0.7 * self.width, 2.5 + 0.4 * self.width
        dashed = f' stroke-dasharray="{_number(on)} {_number(off)}"' if self.dashed else ""
        head = (
            f'<path d="M{_points(self.points[:1])}C{_points(self.points[1:])}" fill="none" '
            f'stroke="{self.colour}" stroke-width="{_number(self.width)}"{dashed}'
        )
        return _hinted("path", head, self.hint)


@dataclass(frozen=True, slots=True)
class Arrowhead:
    """A triangle."""

    points: tuple[Point, Point, Point]
    colour: str

    def svg(self) -> str:
        """SVG element."""
        return f'<path d="M{_points(self.points)}z" fill="{self.colour}"/>'


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
        f"<!-- streamplace --><title>{escape(scene.title)}</title>\n"
        f'<rect width="{width}" height="{height}" rx="6" fill="{PAPER}"/>\n'
        + "".join(f"{shape.svg()}\n" for shape in scene.shapes)
        + "</svg>\n"
    )


def _hinted(tag: str, head: str, hint: str) -> str:
    return f"{head}><title>{escape(hint)}</title></{tag}>" if hint else f"{head}/>"


def _points(points: tuple[Point, ...]) -> str:
    return " ".join(f"{_number(x)} {_number(y)}" for x, y in points)


def _number(value: float) -> str:
    """Format a number to a tenth, as short as possible."""
    text = f"{value:.1f}"
    return "0" if text == "-0.0" else text.removesuffix(".0")
