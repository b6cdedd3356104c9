"""Fractal dimension of the nodes of a graph (HSDAG, equation 4)."""

import numpy as np
from streamsim.jit import kernel
from streamsim.topology import group_by

from streamplace.model.arrays import Floats, Longs


def fractal_dimensions(edges: Longs, n_nodes: int) -> Floats:
    """How fast the mass around every node grows with the distance, [V].

    With r_1 … r_m the distances from v to other nodes along edges [2, E] in either direction, and
    N(v, r) the nodes within distance r, the slope of log N over log r:

        D(v) = Σ_k (log r_k - mean log r)(log N(v, r_k) - mean log N) / Σ_k (log r_k - mean log r)²

    and 0 where all other nodes are equally far.

    >>> fractal_dimensions(np.array([[0, 1, 2, 3], [1, 2, 3, 4]]), 5).round(3).tolist()
    [0.657, 0.46, 0.737, 0.46, 0.657]
    """
    return _slopes(edges[0], edges[1], n_nodes)


@kernel
def _slopes(source: Longs, target: Longs, n: int) -> Floats:
    m = len(source)
    start, entry = group_by(np.concatenate((source, target)), n)
    dimension = np.zeros(n)
    far, queue = np.empty(n, np.int64), np.empty(n, np.int64)
    for v in range(n):
        far[:] = -1
        far[v], queue[0] = 0, v
        end, at = 1, 0
        while at < end:
            u = queue[at]
            at += 1
            for i in range(start[u], start[u + 1]):
                e = entry[i]
                w = target[e] if e < m else source[e - m]
                if far[w] < 0:
                    far[w], queue[end] = far[u] + 1, w
                    end += 1
        dimension[v] = _slope(far[queue[:end]])
    return dimension


@kernel
def _slope(distance: Longs) -> float:
    """Slope of log N over log r for distances in ascending order, the node's own 0 first."""
    most = distance[-1]
    if most < 2:
        return 0.0
    log_r = np.log(np.arange(1.0, most + 1))
    mass = np.zeros(most)
    for r in distance:
        mass[max(r, 1) - 1] += 1
    log_n = np.log(np.cumsum(mass))
    along = log_r - log_r.mean()
    return float((along * (log_n - log_n.mean())).sum() / (along * along).sum())
