"""Shapes of a panel and around it: boxes with names, streams with arrowheads, and legends.

Legends tell the devices of the colours, and the meanings of the lines.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from streamplace.drawing import style
from streamplace.drawing.layout import LayeredLayout, layered_layout
from streamplace.drawing.scene import Arrowhead, Curve, Label, Point, Rectangle, Shape
from streamplace.drawing.style import Scale, text_width
from streamplace.model.arrays import Bools, Floats, Ints

INSET = 9.0
"""Space between the text of a box and its sides."""

ROW, SWATCH, GAP = 18.0, 12.0, 16.0
MOST_ENTRIES = 24
SAMPLE = 34.0
"""Length of the sample lines."""


class Entry(NamedTuple):
    """An entry of a legend: its width, and its shapes at the position of its upper left corner."""

    width: float
    shapes: Callable[[float, float], Iterator[Shape]]


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

    layout: LayeredLayout
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


def arranged(
    source: Ints, target: Ints, widths: Floats, scale: Scale, downwards: bool
) -> LayeredLayout:
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


def device_legend(devices: Sequence[tuple[str, str]]) -> list[Entry]:
    """Colours of devices with their meanings, at most 24, the last of which counts the others."""
    if len(devices) > MOST_ENTRIES:
        more = len(devices) - MOST_ENTRIES + 1
        devices = [*devices[: MOST_ENTRIES - 1], (style.PAPER, f"and {more} more devices")]
    return [_swatch(colour, text) for colour, text in devices]


def key(tasks: bool, placed: bool) -> list[Entry]:
    """Meanings of the lines of task graphs or other graphs, with or without placements."""
    lines = [_sample(style.INSIDE, False, "inside a device" if placed else "stream")]
    if placed:
        limit = "on the critical chain" if tasks else "limits the rate"
        lines += [
            _sample(style.ACROSS, True, "crosses the network"),
            _sample(style.LIMIT, False, limit),
        ]
    text = f"width: bytes{'' if tasks else '/s'}"

    def note(x: float, y: float) -> Iterator[Shape]:
        yield Label(x, y + SWATCH - 2, text, style.SMALL, style.GREY)

    return [*lines, Entry(text_width(text, style.SMALL), note)]


def _swatch(colour: str, text: str) -> Entry:
    def shapes(x: float, y: float) -> Iterator[Shape]:
        outline = "none" if colour == style.PAPER else style.OUTLINE
        yield Rectangle(x, y, SWATCH, SWATCH, colour, outline, 0.6, 2.5)
        yield Label(x + SWATCH + 6, y + SWATCH - 2, text, style.SMALL, style.INK)

    return Entry(SWATCH + 6 + text_width(text, style.SMALL), shapes)


def _sample(colour: str, dashed: bool, text: str) -> Entry:
    def shapes(x: float, y: float) -> Iterator[Shape]:
        middle, tip, third = y + SWATCH / 2, x + SAMPLE, SAMPLE / 3
        points = ((x, middle), (x + third, middle), (x + 2 * third, middle), (tip - 6, middle))
        yield Curve(points, colour, 2.0, dashed)
        yield Arrowhead(((tip, middle), (tip - 8, middle - 4), (tip - 8, middle + 4)), colour)
        yield Label(tip + 6, y + SWATCH - 2, text, style.SMALL, style.GREY)

    return Entry(SAMPLE + 6 + text_width(text, style.SMALL), shapes)


def entries_height(entries: Sequence[Entry], widest: float) -> float:
    """Height of entries in rows of a width."""
    return ROW * len(wrapped([entry.width + GAP for entry in entries], widest + GAP))


def entries_shapes(
    entries: Sequence[Entry], left: float, top: float, widest: float
) -> Iterator[Shape]:
    """Shapes of entries in rows of a width."""
    widths = [entry.width + GAP for entry in entries]
    for row, numbers in enumerate(wrapped(widths, widest + GAP)):
        x = left
        for i in numbers:
            yield from entries[i].shapes(x, top + row * ROW)
            x += widths[i]


def wrapped(widths: Sequence[float], widest: float) -> list[list[int]]:
    """Distribute entries over rows, as many in each as fit.

    >>> wrapped([40, 40, 40], 100)
    [[0, 1], [2]]
    """
    rows: list[list[int]] = []
    free = -1.0
    for i, width in enumerate(widths):
        if not rows or width > free:
            rows.append([])
            free = widest
        rows[-1].append(i)
        free -= width
    return rows
