"""Shapes of a drawing, for SVG and matplotlib."""

from dataclasses import dataclass

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
