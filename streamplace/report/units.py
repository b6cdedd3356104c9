"""Units: rows of the document that stand for several operators of a very large graph.

Operators on one device and in neighbouring layers are one row. The page cannot compute with such
rows, so they have the sums of their operators' work and traffic.
"""

import numpy as np

from streamplace.drawing.layout import layers
from streamplace.model.arrays import Floats, Ints
from streamplace.model.graph import StreamGraph
from streamplace.report.document import OperatorsPart, ProblemPart, StreamsPart, numbers
from streamplace.report.layout import grid_layout

MOST_OPERATORS = 20_000
"""Most operators with rows of their own."""
MOST_UNITS = 3_000
"""Most units of a larger graph."""


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
