"""Shapes of one graph: boxes with names, streams with arrowheads."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from streamplace.drawing import style
from streamplace.drawing.layout import Layout, layered_layout
from streamplace.drawing.scene import Arrowhead, Curve, Label, Point, Rectangle, Shape
from streamplace.drawing.style import Scale, text_width
from streamplace.model.arrays import Bools, Floats, Ints

INSET = 9.0
"""Space between the text of a box and its sides."""


@dataclass(frozen=True, slots=True)
class Look:
    """Appearance of the boxes and streams of one panel."""

    # Colour of every box, and the text below its name.
    fills: tuple[str, ...]
    notes: tuple[str, ...]
    # Boxes and streams of the bottleneck.
    limits: Bools
    stream_limits: Bools
    across: Bools  # streams that cross the network


@dataclass(frozen=True, slots=True)
class Skeleton:
    """Layout of a graph: boxes with names and sizes, streams with widths."""

    layout: Layout
    scale: Scale
    labels: tuple[str, ...]
    hints: tuple[str, ...]
    stream_hints: tuple[str, ...]
    widths: Floats
    traffic: Floats
    downwards: bool  # whether streams run down rather than to the right

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the graph without titles and legends."""
        breadth, length = self.layout.breadth, self.layout.length
        return (breadth, length) if self.downwards else (length, breadth)

    def rectangle(self, box: int) -> tuple[float, float, float, float]:
        """Upper left corner, width and height of a box."""
        x, y = self.point(self.layout.across[box], self.layout.along[box])
        width, height = float(self.widths[box]), self.scale.height
        return x - width / 2, y - height / 2, width, height

    def point(self, across: float, along: float) -> Point:
        """Convert coordinates of the layout to those of the page."""
        return (across, along) if self.downwards else (along, across)


def box_widths(labels: tuple[str, ...], notes: tuple[str, ...], scale: Scale) -> Floats:
    """Width of every box, large enough for both of its texts."""
    if not scale.font:
        return np.full(len(labels), scale.widest)
    texts = [
        max(text_width(label, scale.font), text_width(note, scale.note) if scale.note else 0.0)
        for label, note in zip(labels, notes, strict=True)
    ]
    return np.maximum(np.array(texts) + 2 * INSET, scale.height)


def arranged(source: Ints, target: Ints, widths: Floats, scale: Scale, downwards: bool) -> Layout:
    """Lay out boxes in one of the two directions."""
    heights = np.full(len(widths), scale.height)
    breadth, length = (widths, heights) if downwards else (heights, widths)
    return layered_layout(source, target, breadth, length, scale.spacing)


def shapes_of(skeleton: Skeleton, look: Look, left: float, top: float) -> Iterator[Shape]:
    """Shapes of a graph at the position of its upper left corner: first streams, then boxes."""
    order = np.lexsort((np.arange(len(look.across)), look.across, look.stream_limits))
    for e in order.tolist():
        yield from _stream(skeleton, look, e, left, top)
    for box in range(len(skeleton.labels)):
        yield from _box(skeleton, look, box, left, top)


def _box(skeleton: Skeleton, look: Look, box: int, left: float, top: float) -> Iterator[Shape]:
    x, y, width, height = skeleton.rectangle(box)
    scale, limit, note = skeleton.scale, bool(look.limits[box]), look.notes[box]
    hint = skeleton.hints[box] + (f" ({note})" if note else "")
    yield Rectangle(
        left + x, top + y, width, height, look.fills[box],
        style.LIMIT if limit else style.OUTLINE, 3.0 if limit else 0.8, min(5.0, height / 4), hint,
    )  # fmt: skip
    middle, name = left + x + width / 2, skeleton.labels[box]
    two = bool(scale.note and note)
    if scale.font:
        base = top + y + height / 2 + scale.font * (-0.12 if two else 0.36)
        yield Label(middle, base, name, scale.font, style.INK, centred=True)
    if two:
        base = top + y + height / 2 + scale.note * 1.18
        yield Label(middle, base, note, scale.note, style.INK, centred=True)


def _stream(skeleton: Skeleton, look: Look, e: int, left: float, top: float) -> Iterator[Shape]:
    across, limit = bool(look.across[e]), bool(look.stream_limits[e])
    colour = style.LIMIT if limit else style.ACROSS if across else style.INSIDE
    width = style.THIN + (style.WIDE - style.THIN) * float(skeleton.traffic[e])
    head = min(style.HEAD, skeleton.scale.spacing.layers / 2) + width
    route = skeleton.layout.routes[e].copy()
    tip = tuple(route[-1])
    route[-1, 1] -= head * 0.9
    points = [
        (left + x, top + y)
        for x, y in (skeleton.point(float(a), float(b)) for a, b in _smooth(route))
    ]
    yield Curve(tuple(points), colour, width, across, skeleton.stream_hints[e])
    wing = head * 0.45
    triangle = [
        skeleton.point(float(a), float(b))
        for a, b in (tip, (tip[0] - wing, tip[1] - head), (tip[0] + wing, tip[1] - head))
    ]
    first, second, third = ((left + x, top + y) for x, y in triangle)
    yield Arrowhead((first, second, third), colour)


def _smooth(route: Floats) -> list[tuple[float, float]]:
    """Points of cubic Bézier curves through a route, with ends in the direction of the layers."""
    (across, along), *rest = route.tolist()
    points = [(across, along)]
    for a, b in rest:
        middle = (along + b) / 2
        points += [(across, middle), (a, middle), (a, b)]
        across, along = a, b
    return points
