"""Where operators stand in a drawing: left to right by depth, few crossings."""

import numpy as np

from streamplace.model.arrays import Floats, Ints
from streamplace.model.graph import StreamGraph

SWEEPS = 12


def layered_layout(graph: StreamGraph) -> Floats:
    """Positions [N, 2]: x is the longest path from a source, y spreads each layer around 0.

    Operators of a layer are ordered by the mean position of their neighbours, swept back and forth.
    """
    depth = _depth(graph)
    y = np.zeros(graph.n_operators)
    layers = [
        np.flatnonzero(depth == level).astype(np.int32) for level in range(int(depth.max()) + 1)
    ]
    for layer in layers:
        y[layer] = _spread(np.arange(len(layer), dtype=np.float64))
    source, target = graph.streams.source, graph.streams.target
    for sweep in range(SWEEPS):
        mine, theirs = (target, source) if sweep % 2 == 0 else (source, target)
        for layer in layers if sweep % 2 == 0 else layers[::-1]:
            y[layer] = _spread(_means(layer, mine, theirs, y))
    return np.column_stack([depth.astype(np.float64), y])


def _depth(graph: StreamGraph) -> Ints:
    depth = np.zeros(graph.n_operators, np.int32)
    position = np.argsort(graph.order)
    streams = np.argsort(position[graph.streams.source], kind="stable")
    for u, v in zip(graph.streams.source[streams], graph.streams.target[streams], strict=True):
        depth[v] = max(depth[v], depth[u] + 1)
    return depth


def _means(layer: Ints, mine: Ints, theirs: Ints, y: Floats) -> Floats:
    """Mean position of each operator's neighbours, its own where it has none."""
    return np.array([y[theirs[mine == v]].mean() if (mine == v).any() else y[v] for v in layer])


def _spread(wanted: Floats) -> Floats:
    """Even places around 0 in the order of the wanted ones."""
    places = np.empty(len(wanted))
    places[np.argsort(wanted, kind="stable")] = np.arange(len(wanted)) - (len(wanted) - 1) / 2
    return places
