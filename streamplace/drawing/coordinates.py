"""Coordinates within layers: as close to the neighbours as order and distances allow.

Every sweep solves, layer by layer, min Σ wᵢ (xᵢ − aᵢ)² with xᵢ₊₁ − xᵢ at least a distance, where aᵢ
is the weighted mean of the neighbours. With the distances subtracted, this is isotonic regression,
which pooling adjacent violators solves in linear time.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import inf

import numpy as np

from streamplace.model.arrays import Floats

SWEEPS = 10
STRAIGHT = 8.0
"""Weight of a segment between two bends, relative to a stream between two boxes."""

Rows = Sequence[Sequence[int]]


def coordinates(
    rows: Rows, before: Rows, after: Rows, sizes: Sequence[float], n_boxes: int, boxes: float,
    bends: float,
) -> Floats:  # fmt: skip
    """Coordinate of every node; neighbours in a row are their sizes and a gap apart.

    Nodes from ``n_boxes`` on are bends. ``boxes`` is the least gap between two boxes, ``bends``
    that between a bend and another node.
    """
    x = [0.0] * len(sizes)
    distances = [_distances(row, sizes, n_boxes, boxes, bends) for row in rows]
    for row, distance in zip(rows, distances, strict=True):
        for v, at in zip(row, np.cumsum(distance) - sum(distance) / 2, strict=True):
            x[v] = float(at)
    for sweep in range(SWEEPS):
        forth, last = sweep % 2 == 0, sweep >= SWEEPS - 2
        for i in range(len(rows)) if forth else reversed(range(len(rows))):
            sides = (before, after) if last else (before,) if forth else (after,)
            _settle(rows[i], distances[i], sides, x, n_boxes)
    _straighten(rows, distances, before, after, x)
    return np.array(x)


def pooled(wanted: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Closest non-decreasing values in weighted least squares.

    >>> pooled([3, 1, 5], [1, 1, 1])
    [2.0, 2.0, 5.0]
    """
    pools: list[tuple[float, float, int]] = []
    for value, weight in zip(wanted, weights, strict=True):
        total, mass, size = value * weight, weight, 1
        while pools and pools[-1][0] * mass >= total * pools[-1][1]:
            earlier = pools.pop()
            total, mass, size = total + earlier[0], mass + earlier[1], size + earlier[2]
        pools.append((total, mass, size))
    return [total / mass for total, mass, size in pools for _ in range(size)]


def _distances(
    row: Sequence[int], sizes: Sequence[float], n_boxes: int, boxes: float, bends: float
) -> list[float]:
    """Least distance of every node from the one before it in its row, 0 for the first."""
    distances = [0.0]
    for u, v in pairwise(row):
        gap = boxes if max(u, v) < n_boxes else bends
        distances.append((sizes[u] + sizes[v]) / 2 + gap)
    return distances


def _settle(
    row: Sequence[int], distances: Sequence[float], sides: Sequence[Rows], x: list[float],
    n_boxes: int,
) -> None:  # fmt: skip
    """Move a row as close to its neighbours as its order allows."""
    wanted, weights, offset = [], [], 0.0
    for v, distance in zip(row, distances, strict=True):
        offset += distance
        total = mass = 0.0
        for side in sides:
            for u in side[v]:
                weight = STRAIGHT if u >= n_boxes and v >= n_boxes else 1.0
                total += weight * x[u]
                mass += weight
        wanted.append((total / mass if mass else x[v]) - offset)
        weights.append(mass or 1.0)
    offset = 0.0
    for v, distance, value in zip(row, distances, pooled(wanted, weights), strict=True):
        offset += distance
        x[v] = value + offset


def _straighten(
    rows: Rows, distances: Rows | Sequence[Sequence[float]], before: Rows, after: Rows,
    x: list[float],
) -> None:  # fmt: skip
    """Align nodes of a line without forks and joins, where there is enough space."""
    low: dict[int, tuple[int, float]] = {}
    high: dict[int, tuple[int, float]] = {}
    for row, distance in zip(rows, distances, strict=True):
        for u, v, least in zip(row, row[1:], distance[1:], strict=False):
            low[v], high[u] = (u, least), (v, least)
    lines = _lines(rows, before, after)
    for _ in range(2):
        for line in lines:
            for run, least, most in _runs(line, low, high, x):
                at = min(max(sum(x[v] for v in run) / len(run), least), most)
                for v in run:
                    x[v] = at


def _runs(
    line: list[int],
    low: dict[int, tuple[int, float]],
    high: dict[int, tuple[int, float]],
    x: list[float],
) -> Iterator[tuple[list[int], float, float]]:
    """Cut a line into parts whose nodes can all have one coordinate, with its range."""
    run: list[int] = []
    least, most = -inf, inf
    for v in line:
        lowest = x[low[v][0]] + low[v][1] if v in low else -inf
        highest = x[high[v][0]] - high[v][1] if v in high else inf
        if run and max(least, lowest) > min(most, highest):
            yield run, least, most
            run, least, most = [], -inf, inf
        run.append(v)
        least, most = max(least, lowest), min(most, highest)
    yield run, least, most


def _lines(rows: Rows, before: Rows, after: Rows) -> list[list[int]]:
    """Maximal paths of at least two nodes, without other streams in between."""
    lines = []
    for row in rows:
        for v in row:
            if len(before[v]) == 1 and len(after[before[v][0]]) == 1:
                continue
            line = [v]
            while len(after[line[-1]]) == 1 and len(before[after[line[-1]][0]]) == 1:
                line.append(after[line[-1]][0])
            if len(line) > 1:
                lines.append(line)
    return lines
