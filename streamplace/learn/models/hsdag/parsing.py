"""Graph parsing: groups from the scores of edges, as many as come of them (HSDAG, section 2.4)."""

from typing import NamedTuple

import numpy as np
from streamsim.jit import kernel

from streamplace.model.arrays import Longs, Singles

ALONE = -1


class Parsed(NamedTuple):
    """Groups of nodes.

    Attributes
    ----------
    edge
        [V] edge of the highest score at every node, `ALONE` where it has none.
    group
        [V] group of every node, numbered by first node.
    """

    edge: Longs
    group: Longs


def parse(edges: Longs, scores: Singles, n_nodes: int) -> Parsed:
    """Groups of nodes that are connected by the edges [2, E] that some node keeps (equation 9).

    Every node keeps the edge of the highest score among those that touch it, of equals the first.
    So a node with an edge is never alone in its group.

    >>> parse(np.array([[0, 1, 2], [1, 2, 3]]), np.array([0.9, 0.1, 0.4], np.float32), 5)
    Parsed(edge=array([ 0,  0,  2,  2, -1]), group=array([0, 0, 1, 1, 2]))
    """
    edge = _dominant(edges[0], edges[1], scores, n_nodes)
    return Parsed(edge, _joined(edges[0], edges[1], edge))


@kernel
def _dominant(source: Longs, target: Longs, scores: Singles, n: int) -> Longs:
    edge = np.full(n, ALONE, np.int64)
    for e in range(len(source)):
        for v in (source[e], target[e]):
            if edge[v] == ALONE or scores[e] > scores[edge[v]]:
                edge[v] = e
    return edge


@kernel
def _joined(source: Longs, target: Longs, edge: Longs) -> Longs:
    n = len(edge)
    root = np.arange(n)
    for v in range(n):
        if edge[v] != ALONE:
            a, b = _root(root, source[edge[v]]), _root(root, target[edge[v]])
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
