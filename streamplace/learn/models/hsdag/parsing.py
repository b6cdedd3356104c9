"""Graph parsing: groups from the scores of edges, as many as come of them (HSDAG, section 2.4)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from streamsim.jit import kernel

Floats = NDArray[np.float32]
Longs = NDArray[np.int64]

ALONE = -1


class Parsed(NamedTuple):
    """Groups of nodes.

    Attributes
    ----------
    kept
        [V] edge of the highest score at every node, `ALONE` where it has none.
    group
        [V] group of every node, numbered by first node.
    """

    kept: Longs
    group: Longs


def parse(edges: Longs, scores: Floats, n_nodes: int) -> Parsed:
    """Groups of nodes that are connected by the edges [2, E] that some node keeps (equation 9).

    Every node keeps the edge of the highest score among those that touch it, of equals the first.
    So a node with an edge is never alone in its group.

    >>> parse(np.array([[0, 1, 2], [1, 2, 3]]), np.array([0.9, 0.1, 0.4], np.float32), 5)
    Parsed(kept=array([ 0,  0,  2,  2, -1]), group=array([0, 0, 1, 1, 2]))
    """
    kept = _dominant(edges[0], edges[1], scores, n_nodes)
    return Parsed(kept, _joined(edges[0], edges[1], kept))


@kernel
def _dominant(source: Longs, target: Longs, scores: Floats, n: int) -> Longs:
    kept = np.full(n, ALONE, np.int64)
    for e in range(len(source)):
        for v in (source[e], target[e]):
            if kept[v] == ALONE or scores[e] > scores[kept[v]]:
                kept[v] = e
    return kept


@kernel
def _joined(source: Longs, target: Longs, kept: Longs) -> Longs:
    n = len(kept)
    root = np.arange(n)
    for v in range(n):
        if kept[v] != ALONE:
            a, b = _root(root, source[kept[v]]), _root(root, target[kept[v]])
            root[max(a, b)] = min(a, b)
    group, count = np.empty(n, np.int64), 0
    for v in range(n):
        first = _root(root, v)
        if first == v:
            group[v] = count
            count += 1
        else:
            group[v] = group[first]
    return group


@kernel
def _root(root: Longs, v: int) -> int:
    while root[v] != v:
        root[v] = root[root[v]]
        v = root[v]
    return v
