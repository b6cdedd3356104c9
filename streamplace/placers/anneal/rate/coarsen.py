"""Coarsening: units join the neighbour with which they exchange the most bytes."""

import numpy as np
from streamsim.jit import kernel

from streamplace.model.arrays import Floats, Ints, Longs
from streamplace.model.level import Level

SHRINK = 2.5
"""Largest ratio of the units of a level to those of the next coarser one."""


@kernel
def heavy_groups(level: Level, place: Ints, order: Longs, most: float) -> tuple[Ints, int]:
    """Group of every unit and the number of groups, which are numbered by first unit.

    In the given order, every single unit joins the neighbouring group with which it has the most
    traffic, among those on the same device, under the same rules, and within the weight limit: a
    group weighs at most ``most``, where the entire graph weighs 2 (CPU load and number of units
    count equally). Units with rivals stay single.
    """
    n = len(level.load)
    leader = np.arange(n).astype(np.int32)
    weight, size = _weights(level), np.ones(n, np.int32)
    towards, n_groups = np.zeros(n), n
    for u in order:
        if n_groups * SHRINK <= n:
            break
        if size[leader[u]] > 1 or _has_rivals(level, u):
            continue
        best = _heaviest(level, place, leader, weight, towards, u, most)
        if best >= 0:
            leader[u] = best
            weight[best] += weight[u]
            size[best] += 1
            n_groups -= 1
    return _numbered(leader)


@kernel
def _heaviest(
    level: Level, place: Ints, leader: Ints, weight: Floats, towards: Floats, u: int, most: float
) -> int:
    """Leader of the group that unit u may join and has the most traffic with, or -1.

    ``towards`` is all 0 before and after.
    """
    best, heaviest = -1, 0.0
    for e in range(level.start[u], level.start[u + 1]):
        if not _has_rivals(level, level.peer[e]):
            towards[leader[level.peer[e]]] += level.sent[e] + level.taken[e]
    for e in range(level.start[u], level.start[u + 1]):
        g = leader[level.peer[e]]
        fits = weight[g] + weight[u] <= most
        if (
            fits
            and towards[g] > heaviest
            and place[g] == place[u]
            and level.kind[g] == level.kind[u]
        ):
            best, heaviest = g, towards[g]
    for e in range(level.start[u], level.start[u + 1]):
        towards[leader[level.peer[e]]] = 0.0
    return best


@kernel
def _has_rivals(level: Level, u: int) -> bool:
    return len(level.rival_start) > 0 and level.rival_start[u] < level.rival_start[u + 1]


@kernel
def _weights(level: Level) -> Floats:
    """Share of every unit in the CPU load plus its share in the number of units."""
    n, types = level.load.shape
    weight, whole = np.zeros(n), 0.0
    for u in range(n):
        for c in range(types):
            weight[u] += level.load[u, c]
        whole += weight[u]
    for u in range(n):
        weight[u] = (weight[u] / whole if whole > 0 else 0.0) + 1.0 / n
    return weight


@kernel
def _numbered(leader: Ints) -> tuple[Ints, int]:
    """Number groups by first appearance; a leader leads itself."""
    n = len(leader)
    number, group, n_groups = np.full(n, -1, np.int32), np.empty(n, np.int32), 0
    for u in range(n):
        g = leader[u]
        if number[g] < 0:
            number[g] = n_groups
            n_groups += 1
        group[u] = number[g]
    return group, n_groups
