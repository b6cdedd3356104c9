"""Layout of a graph's boxes: layers by longest path, few crossings, straight streams.

The layout follows Sugiyama: a layer per operator, a bend per layer that a stream crosses, an order
within every layer, and coordinates. It depends only on sizes, not on names or colours, and has no
direction: ``along`` runs from layer to layer, ``across`` within a layer.

Coordinates are as close to the neighbours as order and distances allow. Every sweep solves, layer
by layer, min Σ wᵢ (xᵢ − aᵢ)² with xᵢ₊₁ − xᵢ at least a distance; aᵢ is the weighted mean of the
neighbours. Without the distances, this is isotonic regression, which pooling adjacent violators
solves in linear time.
"""

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from streamplace.model.arrays import Floats, Ints

Rows = list[list[int]]
ORDER_SWEEPS, PLACE_SWEEPS = 12, 10
STRAIGHT = 8.0
"""Weight of a segment between two bends, relative to a stream between two boxes."""
MAX_BENDS = 20_000
"""Bends in a layout. The shortest streams get theirs first; others run straight."""
MAX_SLOPE = 5.0
"""Distance of a stream across, relative to the gap between its layers."""
MAX_GAP = 4.0
"""Gap between layers with long distances across, relative to the usual gap."""


@dataclass(frozen=True, slots=True)
class Spacing:
    """Minimum distances between layers, between boxes, at bends, and between ports."""

    layers: float = 30.0
    boxes: float = 14.0
    bends: float = 10.0
    ports: float = 10.0


@dataclass(frozen=True, slots=True)
class LayeredLayout:
    """Positions of boxes and streams."""

    layer: Ints  # [N] layer of every box
    # [N] centre of every box.
    across: Floats
    along: Floats
    # Polyline [K, 2] of (across, along) for every stream, from the end of its source's box to the
    # beginning of its target's box; segments from even to odd points cross a gap.
    routes: tuple[Floats, ...]
    # Size of the layout.
    breadth: float
    length: float


@dataclass(frozen=True, slots=True)
class Bent:
    """A graph whose streams lead to the next layer, except streams beyond `MAX_BENDS`."""

    n_boxes: int  # the first nodes are boxes, the others bends
    layer: list[int]
    rows: Rows  # nodes by layer
    # Neighbours of every node in the layers before and after it.
    before: Rows
    after: Rows
    paths: Rows  # the nodes of every stream, from its source to its target


def layered_layout(
    source: Ints, target: Ints, breadth: Floats, length: Floats, spacing: Spacing
) -> LayeredLayout:
    """Lay out boxes of a breadth (across) and a length (along), joined by streams.

    Examples
    --------
    >>> layout = layered_layout(np.array([0, 0]), np.array([1, 2]), np.full(3, 20.0),
    ...                         np.full(3, 10.0), Spacing())
    >>> layout.layer.tolist(), layout.across.tolist()
    ([0, 1, 1], [27.0, 10.0, 44.0])
    """
    bent = bend(layers(len(breadth), source, target), source, target)
    bent = replace(bent, rows=ordered(bent.rows, bent.before, bent.after))
    sizes = [*breadth.tolist(), *[0.0] * (len(bent.layer) - bent.n_boxes)]
    across = coordinates(bent, sizes, spacing)
    across -= (across - np.array(sizes) / 2).min(initial=np.inf)
    depths = [
        max((float(length[v]) for v in row if v < bent.n_boxes), default=0.0) for row in bent.rows
    ]
    starts = _starts(bent, across, depths, spacing.layers)
    layer = np.array(bent.layer[: bent.n_boxes], np.int32)
    begin, depth = np.array(starts), np.array(depths)
    return LayeredLayout(
        layer=layer,
        across=across[: bent.n_boxes],
        along=begin[layer] + depth[layer] / 2,
        routes=_routes(bent, across, breadth, length, begin, depth, spacing.ports),
        breadth=float((across + np.array(sizes) / 2).max(initial=0.0)),
        length=float((begin + depth)[-1]),
    )


def layers(n: int, source: Ints, target: Ints) -> list[int]:
    """Layers by longest path; boxes with more outputs than inputs move close to their targets."""
    before: Rows = [[] for _ in range(n)]
    after: Rows = [[] for _ in range(n)]
    for u, v in zip(source.tolist(), target.tolist(), strict=True):
        before[v].append(u)
        after[u].append(v)
    order, missing = [v for v in range(n) if not before[v]], [len(feeders) for feeders in before]
    for u in order:
        for v in after[u]:
            missing[v] -= 1
            if not missing[v]:
                order.append(v)
    layer = [0] * n
    for u in order:
        layer[u] = max((layer[v] + 1 for v in before[u]), default=0)
    for u in reversed(order):
        if len(after[u]) > len(before[u]):
            layer[u] = min(layer[v] for v in after[u]) - 1
    return layer


def bend(layer: list[int], source: Ints, target: Ints) -> Bent:
    """Add a bend to every stream in each layer that it crosses."""
    n, ends = len(layer), list(zip(source.tolist(), target.tolist(), strict=True))
    spans = [layer[v] - layer[u] - 1 for u, v in ends]
    paths = [[u, v] for u, v in ends]
    free = MAX_BENDS
    all_layers = list(layer)
    for e in sorted(range(len(ends)), key=lambda e: (spans[e], e)):
        if spans[e] > free:
            break
        free -= spans[e]
        first = len(all_layers)
        all_layers += range(layer[ends[e][0]] + 1, layer[ends[e][1]])
        paths[e] = [ends[e][0], *range(first, len(all_layers)), ends[e][1]]
    before: Rows = [[] for _ in all_layers]
    after: Rows = [[] for _ in all_layers]
    for path in paths:
        for u, v in pairwise(path):
            before[v].append(u)
            after[u].append(v)
    rows: Rows = [[] for _ in range(max(layer) + 1)]
    for v in _preorder(before, after):
        rows[all_layers[v]].append(v)
    return Bent(n, all_layers, rows, before, after, paths)


def _preorder(before: Rows, after: Rows) -> list[int]:
    """Every node once, in depth-first order."""
    visited, order = [False] * len(before), []
    stack = [v for v in reversed(range(len(before))) if not before[v]]
    while stack:
        u = stack.pop()
        if visited[u]:
            continue
        visited[u] = True
        order.append(u)
        stack += [v for v in reversed(after[u]) if not visited[v]]
    return order


def _starts(bent: Bent, across: Floats, depths: list[float], gap: float) -> list[float]:
    """Beginning of every layer; the gap before it is wider if streams go far across."""
    starts = [0.0]
    for row, depth in zip(bent.rows[1:], depths, strict=False):
        reach = max(
            (abs(float(across[v] - across[u])) for v in row for u in bent.before[v]), default=0.0
        )
        starts.append(starts[-1] + depth + min(max(gap, reach / MAX_SLOPE), MAX_GAP * gap))
    return starts


def _routes(
    bent: Bent, across: Floats, breadth: Floats, length: Floats, begin: Floats, depth: Floats,
    apart: float,
) -> tuple[Floats, ...]:  # fmt: skip
    """Polyline of every stream, each with its own port at both boxes."""
    out = _ports([path[0] for path in bent.paths], [path[1] for path in bent.paths],
                 across, breadth, apart)  # fmt: skip
    into = _ports([path[-1] for path in bent.paths], [path[-2] for path in bent.paths],
                  across, breadth, apart)  # fmt: skip
    middle = begin + depth / 2
    routes = []
    for e, (first, *inner, last) in enumerate(bent.paths):
        points = [(across[first] + out[e], middle[bent.layer[first]] + length[first] / 2)]
        for v in inner:
            start = begin[bent.layer[v]]
            points += [(across[v], start), (across[v], start + depth[bent.layer[v]])]
        points.append((across[last] + into[e], middle[bent.layer[last]] - length[last] / 2))
        routes.append(np.array(points))
    return tuple(routes)


def _ports(
    boxes: Sequence[int], others: Sequence[int], across: Floats, breadth: Floats, apart: float
) -> list[float]:
    """Offset of every stream from the middle of its box, in the order of the other ends."""
    streams: dict[int, list[int]] = {}
    for e, v in enumerate(boxes):
        streams.setdefault(v, []).append(e)
    offsets = [0.0] * len(boxes)
    for v, rows in streams.items():
        rows.sort(key=lambda e: (across[others[e]], e))
        step = min(apart, 0.8 * float(breadth[v]) / len(rows))
        for i, e in enumerate(rows):
            offsets[e] = (i - (len(rows) - 1) / 2) * step
    return offsets


def ordered(rows: Rows, before: Rows, after: Rows) -> Rows:
    """Rows in the order with the fewest crossings of all sweeps.

    A forward sweep sorts every layer by the mean position of the neighbours before it, a backward
    sweep by those after it.

    Examples
    --------
    >>> ordered([[0, 1], [2, 3]], [[], [], [1], [0]], [[3], [2], [], []])
    [[0, 1], [3, 2]]
    """
    current = [list(row) for row in rows]
    best, fewest = [list(row) for row in current], crossings(current, after)
    for sweep in range(ORDER_SWEEPS):
        if not fewest:
            break
        forth = sweep % 2 == 0
        _sweep(current, before if forth else after, forth)
        if (count := crossings(current, after)) < fewest:
            best, fewest = [list(row) for row in current], count
    return best


def crossings(rows: Rows, after: Rows) -> int:
    """Count crossing pairs of streams between adjacent layers.

    >>> crossings([[0, 1], [2, 3]], [[3], [2], [], []])
    1
    """
    position = _positions(rows)
    count = 0
    for row in rows[:-1]:
        passed: list[int] = []
        for u in row:
            ends = sorted(position[v] for v in after[u])
            count += sum(len(passed) - bisect_right(passed, end) for end in ends)
            for end in ends:
                insort(passed, end)
    return count


def _sweep(rows: Rows, neighbours: Rows, forth: bool) -> None:
    """Sort one layer after the other by its neighbours in the previous one."""
    position = _positions(rows)
    for row in rows if forth else reversed(rows):
        wanted = {
            v: sum(position[u] for u in neighbours[v]) / len(neighbours[v])
            if neighbours[v]
            else position[v]
            for v in row
        }
        row.sort(key=wanted.__getitem__)
        for i, v in enumerate(row):
            position[v] = i


def _positions(rows: Rows) -> list[int]:
    """Position of every node within its layer."""
    position = [0] * sum(map(len, rows))
    for row in rows:
        for i, v in enumerate(row):
            position[v] = i
    return position


def coordinates(bent: Bent, sizes: Sequence[float], spacing: Spacing) -> Floats:
    """Coordinate of every node; neighbours in a row have a minimum distance."""
    x = [0.0] * len(sizes)
    distances = [_distances(row, sizes, bent.n_boxes, spacing) for row in bent.rows]
    for row, distance in zip(bent.rows, distances, strict=True):
        for v, at in zip(row, np.cumsum(distance) - sum(distance) / 2, strict=True):
            x[v] = float(at)
    for sweep in range(PLACE_SWEEPS):
        forth, last = sweep % 2 == 0, sweep >= PLACE_SWEEPS - 2
        sides = (bent.before, bent.after) if last else (bent.before if forth else bent.after,)
        for row, distance in list(zip(bent.rows, distances, strict=True))[:: 1 if forth else -1]:
            _settle(row, distance, sides, x, bent.n_boxes)
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
    row: Sequence[int], sizes: Sequence[float], n_boxes: int, spacing: Spacing
) -> list[float]:
    """Minimum distance of every node from its predecessor in the row, 0 for the first."""
    distances = [0.0]
    for u, v in pairwise(row):
        gap = spacing.boxes if max(u, v) < n_boxes else spacing.bends
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
