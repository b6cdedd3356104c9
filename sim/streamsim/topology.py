"""Order and adjacency of graphs given as source and target columns."""

import numpy as np

from streamsim.arrays import Ints, Longs
from streamsim.jit import kernel


@kernel
def group_by(keys: Ints, n: int) -> tuple[Ints, Ints]:
    """Group positions by key: those of k are ``positions[start[k]:start[k + 1]]``, ascending."""
    start = np.zeros(n + 1, np.int32)
    for key in keys:
        start[key + 1] += 1
    for k in range(n):
        start[k + 1] += start[k]
    fill = start[:-1].copy()
    positions = np.empty(len(keys), np.int32)
    for i in range(len(keys)):
        positions[fill[keys[i]]] = i
        fill[keys[i]] += 1
    return start, positions


@kernel
def topological_order(n: int, source: Ints, target: Ints) -> Ints:
    """Operators in breadth-first topological order; shorter than n if there is a cycle."""
    start, streams = group_by(source, n)
    waiting = np.zeros(n, np.int32)
    for v in target:
        waiting[v] += 1
    order = np.empty(n, np.int32)
    end = 0
    for v in range(n):
        if waiting[v] == 0:
            order[end] = v
            end += 1
    done = 0
    while done < end:
        u = order[done]
        done += 1
        for i in range(start[u], start[u + 1]):
            v = target[streams[i]]
            waiting[v] -= 1
            if waiting[v] == 0:
                order[end] = v
                end += 1
    return order[:end]


@kernel
def undirected(source: Ints, target: Ints, weight: Longs, n: int) -> tuple[Longs, Longs, Longs]:
    """Neighbours of every vertex in ascending order; merges parallel edges and drops loops.

    Those of u are ``neighbour[start[u]:start[u + 1]]``, with summed weights at the same positions.
    Two passes of bucketing sort them in linear time.
    """
    begin = np.zeros(n + 1, np.int64)
    for e in range(len(source)):
        if source[e] != target[e]:
            begin[source[e] + 1] += 1
            begin[target[e] + 1] += 1
    for u in range(n):
        begin[u + 1] += begin[u]
    by_far, far_weight = np.empty(begin[n], np.int64), np.empty(begin[n], np.int64)
    cursor = begin[:-1].copy()
    for e in range(len(source)):
        u, v = source[e], target[e]
        if u != v:
            by_far[cursor[v]], far_weight[cursor[v]] = u, weight[e]
            by_far[cursor[u]], far_weight[cursor[u]] = v, weight[e]
            cursor[u] += 1
            cursor[v] += 1
    neighbour, sums = np.empty(begin[n], np.int64), np.empty(begin[n], np.int64)
    for u in range(n):
        cursor[u] = begin[u]
    for far in range(n):
        for i in range(begin[far], begin[far + 1]):
            near = by_far[i]
            last = cursor[near] - 1
            if last >= begin[near] and neighbour[last] == far:
                sums[last] += far_weight[i]
            else:
                neighbour[last + 1], sums[last + 1] = far, far_weight[i]
                cursor[near] += 1
    return _packed(begin, cursor, neighbour, sums)


@kernel
def _packed(
    begin: Longs, end: Longs, neighbour: Longs, weight: Longs
) -> tuple[Longs, Longs, Longs]:
    """Close the gaps between rows that merging created."""
    start = np.zeros(len(begin), np.int64)
    for u in range(len(end)):
        for i in range(begin[u], end[u]):
            at = start[u] + i - begin[u]
            neighbour[at], weight[at] = neighbour[i], weight[i]
        start[u + 1] = start[u] + end[u] - begin[u]
    return start, neighbour[: start[-1]], weight[: start[-1]]
