"""Positions of the boxes in a report: layers from left to right, as in drawings."""

import numpy as np

from streamplace.drawing.layout import Layout, Spacing, layered_layout
from streamplace.model.arrays import Floats, Ints
from streamplace.report.document import LayoutPart

WIDTH, HEIGHT = 132.0, 34.0
"""Size of a box in pixels."""
SPACING = Spacing(layers=56.0, boxes=16.0, bends=10.0, ports=6.0)


def layout_part(n: int, source: Ints, target: Ints) -> LayoutPart:
    """Lay out a graph of n operators.

    >>> layout_part(2, np.array([0]), np.array([1]))["x"]
    [66, 254]
    """
    layout = layered_layout(source, target, np.full(n, HEIGHT), np.full(n, WIDTH), SPACING)
    part = LayoutPart(
        width=WIDTH,
        height=HEIGHT,
        layer=layout.layer.tolist(),
        x=_rounded(layout.along),
        y=_rounded(layout.across),
        extent=(round(layout.length), round(layout.breadth)),
    )
    bends = _bends(layout)
    if any(bends):
        part["bends"] = [points or 0 for points in bends]
    return part


def grid_layout(layer: Ints, row: Ints) -> LayoutPart:
    """Lay out boxes in a grid, by layer and row numbers."""
    across, down = WIDTH + SPACING.layers, HEIGHT + SPACING.boxes
    x = WIDTH / 2 + across * layer.astype(np.float64)
    y = HEIGHT / 2 + down * row.astype(np.float64)
    return LayoutPart(
        width=WIDTH,
        height=HEIGHT,
        layer=layer.tolist(),
        x=_rounded(x),
        y=_rounded(y),
        extent=(
            round(float(x.max(initial=0.0)) + WIDTH / 2),
            round(float(y.max(initial=0.0)) + HEIGHT / 2),
        ),
    )


def _bends(layout: Layout) -> list[list[int]]:
    """Points between the ends of every stream: the middle of each layer that it crosses."""
    return [
        _rounded(
            np.column_stack([(route[1:-1:2, 1] + route[2:-1:2, 1]) / 2, route[1:-1:2, 0]]).ravel()
        )
        for route in layout.routes
    ]


def _rounded(values: Floats) -> list[int]:
    rounded: list[int] = np.rint(values).astype(np.int64).tolist()
    return rounded
