"""Boxes of a report: their positions, and units, which stand for several operators.

Layers run from left to right, as in drawings. In a very large graph, operators on one device and in
neighbouring layers are one unit, and so one row of the document. The page cannot compute with such
rows, so they have the sums of their operators' work and traffic.
"""

from collections.abc import Sequence

import numpy as np

from streamplace.drawing.layout import LayeredLayout, Spacing, layered_layout, layers
from streamplace.model.arrays import Floats, Ints
from streamplace.model.graph import StreamGraph
from streamplace.report.document import (
    LayoutPart,
    OperatorsPart,
    ProblemPart,
    StreamsPart,
    numbers,
)

WIDTH, HEIGHT = 132.0, 34.0
"""Size of a box in pixels, where its width does not follow the names."""
NARROWEST, WIDEST = 64.0, 230.0
LETTER, AROUND_NAME = 6.8, 42.0
"""Width of a letter, and of what a box has besides its name."""
SPACING = Spacing(layers=56.0, boxes=16.0, bends=10.0, ports=6.0)
MOST_OPERATORS = 20_000
"""Most operators with rows of their own."""
MOST_UNITS = 3_000
"""Most units of a larger graph."""


def layout_part(names: Sequence[str], source: Ints, target: Ints) -> LayoutPart:
    """Lay out a graph; boxes are as wide as the longest name, within limits.

    >>> layout_part(("read", "a long name"), np.array([0]), np.array([1]))["x"]
    [58, 232]
    """
    n, longest = len(names), max(map(len, names), default=0)
    width = float(round(min(max(NARROWEST, LETTER * longest + AROUND_NAME), WIDEST)))
    layout = layered_layout(source, target, np.full(n, HEIGHT), np.full(n, width), SPACING)
    part = LayoutPart(
        width=width,
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


def _bends(layout: LayeredLayout) -> list[list[int]]:
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


class DeviceLayers:
    """Units by device and layer: the unit ``of`` every operator [N], and facts of the units [U].

    ``first`` is the first operator of a unit, ``count`` the number of its operators, ``band`` the
    number of its band of layers from the sources, ``device`` 0 without a placement.
    """

    def __init__(self, graph: StreamGraph, place: Ints | None = None) -> None:
        n, streams = graph.n_operators, graph.streams
        device = np.zeros(n, np.int64) if place is None else place.astype(np.int64)
        layer = np.array(layers(n, streams.source, streams.target))
        n_layers, n_devices = int(layer.max()) + 1, int(device.max()) + 1
        n_bands = max(1, min(n_layers, MOST_UNITS // n_devices))
        band = layer * n_bands // n_layers
        _, self.first, self.of, self.count = np.unique(
            band * n_devices + device, return_index=True, return_inverse=True, return_counts=True
        )
        self.band = band[self.first].astype(np.int32)
        self.device = device[self.first].astype(np.int32)

    def __len__(self) -> int:
        return len(self.count)

    def summed(self, values: Floats) -> Floats:
        """Sum of the values over the operators of each unit."""
        return np.bincount(self.of, values, len(self)).astype(np.float64)


def units_part(graph: StreamGraph, units: DeviceLayers) -> ProblemPart:
    """Describe a graph whose rows are units."""
    work = graph.input_rate * graph.charged_ipt / 1e6
    sums = units.summed(work + graph.charged_constant)
    memory = units.summed(graph.operators.memory)
    names = graph.operators.name
    first = units.first.tolist()
    return ProblemPart(
        name=graph.name,
        level="units",
        count=units.count.tolist(),
        what_if=f"the graph has {graph.n_operators} operators, more than {MOST_OPERATORS}",
        operators=OperatorsPart(
            name=[
                f"{names[row]} +{count - 1}" if count > 1 else names[row]
                for row, count in zip(first, units.count.tolist(), strict=True)
            ],
            kind="",
            ipt=0,
            rate=0,
            parallelism=1,
            joins=0,
            memory=numbers(memory),
            work=numbers(sums),
        ),
        streams=_streams(graph, units),
        layout=grid_layout(units.band, units.device),
        groups=[],
        placements=[],
    )


def _streams(graph: StreamGraph, units: DeviceLayers) -> StreamsPart:
    """Streams between units, with their total traffic."""
    flow, streams = graph.flow, graph.streams
    tuples = np.empty(graph.n_streams)
    tuples[flow.stream_index] = flow.tuples
    pair = units.of[streams.source].astype(np.int64) * len(units) + units.of[streams.target]
    ends, of = np.unique(pair, return_inverse=True)
    traffic = np.bincount(of, tuples * streams.bytes_per_tuple(), len(ends))
    source, target = np.divmod(ends, len(units))
    away = source != target
    return StreamsPart(
        source=source[away].tolist(),
        target=target[away].tolist(),
        selectivity=1,
        payload=0,
        traffic=numbers(traffic[away]),
    )
