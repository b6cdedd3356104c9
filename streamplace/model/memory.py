"""Memory: what runs on a device fits into it. A device for every unit, or room where there is none.

Packing is hard in general, so the search for a first placement gives up after a number of steps.
"""

import numpy as np
from numpy.typing import NDArray
from streamsim.jit import kernel

from streamplace.model.cluster import Cluster
from streamplace.model.columns import Floats, Ints
from streamplace.model.graph import StreamGraph
from streamplace.model.keep_apart import rivals_of

STEPS = 2_000_000
SLACK = 1e-9
"""Memory is exceeded where it is by more than this share of the device's, which is rounding."""
Longs = NDArray[np.int64]
Flags = NDArray[np.bool_]


def used(place: Ints, memory: Floats, n_devices: int) -> Floats:
    """Memory in use on every device [B, D], by placements of the units [B, U].

    >>> used(np.array([[0, 1, 0]]), np.array([1.0, 2.0, 4.0]), 2).tolist()
    [[5.0, 2.0]]
    """
    batch = len(place)
    cells = place + np.arange(batch)[:, None] * n_devices
    taken: Floats = np.bincount(cells.ravel(), np.tile(memory, batch), batch * n_devices).astype(
        np.float64
    )
    return taken.reshape(batch, n_devices)


def most(room: Floats) -> Floats:
    """Memory that may be in use on every device, rounding included."""
    return room * (1 + SLACK)


def packed(allowed: Flags, pairs: Ints, memory: Floats, room: Floats) -> Ints | None:
    """Devices for units that fit and keep pairs apart; None where none were found.

    Depth first, the unit with the fewest devices and then the largest first, each to the device
    that it fits into most tightly.
    """
    choices = (allowed & (memory[:, None] <= most(room))).sum(axis=1)
    order = np.lexsort((-memory, choices)) if len(pairs) else np.lexsort((choices, -memory))
    alike = bool(allowed.all()) and not len(pairs)
    place = _pack(allowed, *_neighbours(len(allowed), pairs), memory, room, order, alike, STEPS)
    return place if len(place) else None


def made_room(
    place: Ints, allowed: Flags, pairs: Ints, memory: Floats, room: Floats
) -> Ints | None:
    """Return a placement of the units in which those that do not fit have moved on; None if stuck.

    The largest units stay first. What fits where it is stays, so a placement that fits is returned
    as it is.
    """
    order = np.argsort(-memory, kind="stable")
    moved = _make_room(
        place.astype(np.int32), allowed, *_neighbours(len(allowed), pairs), memory, room, order
    )
    return None if (moved < 0).any() else moved


def left_over(allowed: Flags, memory: Floats, room: Floats) -> tuple[Longs, float]:
    """Units that are left over when the largest settle first, and the most room that is left."""
    start = np.zeros(len(allowed) + 1, np.int64)
    order, nobody = np.argsort(-memory, kind="stable"), np.empty(0, np.int64)
    first = np.argmax(allowed, axis=1).astype(np.int32)
    place = _make_room(first, allowed, start, nobody, memory, room, order)
    settled = place >= 0
    left = room - np.bincount(place[settled], memory[settled], len(room))
    return np.flatnonzero(~settled), float(left.max())


def needed(graph: StreamGraph, cluster: Cluster, unit: Ints) -> tuple[Floats, Floats] | None:
    """Memory of every unit and of every device; None where all fits on any device."""
    room = cluster.devices.memory
    total = graph.operators.memory.sum()
    if total <= room.min():
        return None
    return np.bincount(unit, graph.operators.memory).astype(np.float64), room


def _neighbours(n: int, pairs: Ints) -> tuple[Longs, Longs]:
    """Rivals of unit u, as ``rival[start[u]:start[u + 1]]``."""
    rivals = rivals_of(pairs)
    nobody = np.empty(0, np.int64)
    lists = [rivals.get(u, nobody) for u in range(n)] if rivals else []
    start = np.zeros(n + 1, np.int64)
    if lists:
        np.cumsum([len(one) for one in lists], out=start[1:])
    return start, np.concatenate(lists) if lists else nobody


@kernel
def _pack(
    allowed: Flags,
    start: Longs,
    rival: Longs,
    memory: Floats,
    room: Floats,
    order: Longs,
    alike: bool,
    steps: int,
) -> Ints:
    """Depth-first search; devices of equal room left are tried once where all are ``alike``."""
    n, n_devices = allowed.shape
    place, left = np.full(n, -1, np.int32), room.copy()
    tried_left, tried = np.full(n, -np.inf), np.full(n, -1, np.int64)
    depth = 0
    while 0 <= depth < n and steps > 0:
        steps -= 1
        u, best = order[depth], -1
        for d in range(n_devices):
            after = (left[d], d) > (tried_left[depth], tried[depth])
            if alike and left[d] == tried_left[depth] and tried[depth] >= 0:
                after = False
            fits = memory[u] <= left[d] + SLACK * room[d] or memory[u] == 0
            if not (after and fits and allowed[u, d]) or _taken(place, start, rival, u, d):
                continue
            if best < 0 or left[d] < left[best]:
                best = d
        if best >= 0:
            tried_left[depth], tried[depth] = left[best], best
            place[u] = best
            left[best] -= memory[u]
            depth += 1
            if depth < n:
                tried_left[depth], tried[depth] = -np.inf, -1
        else:
            depth -= 1
            if depth >= 0:
                u = order[depth]
                left[place[u]] = tried_left[depth]
                place[u] = -1
    return place if depth == n else place[:0]


@kernel
def _make_room(
    place: Ints,
    allowed: Flags,
    start: Longs,
    rival: Longs,
    memory: Floats,
    room: Floats,
    order: Longs,
) -> Ints:
    """Settle the units in order: where they are if they fit, on the next device, or at -1."""
    n_devices, left = len(room), room.copy()
    for u in order:
        found = -1
        for step in range(n_devices):
            d = (place[u] + step) % n_devices
            if memory[u] > left[d] + SLACK * room[d] and memory[u] > 0:
                continue
            if step == 0 or (allowed[u, d] and not _taken(place, start, rival, u, d)):
                found = d
                break
        place[u] = found
        if found >= 0:
            left[found] -= memory[u]
    return place


@kernel
def _taken(place: Ints, start: Longs, rival: Longs, u: int, d: int) -> bool:
    """Whether a rival of unit u is on device d."""
    taken = False
    for i in range(start[u], start[u + 1]):
        taken |= place[rival[i]] == d
    return taken
