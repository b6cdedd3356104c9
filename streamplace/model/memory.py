"""Memory: what runs on a device fits into it. A device for every unit, or room where there is none.

Packing is hard in general, so the search for a first placement gives up after a number of steps.
"""

import numpy as np

from streamplace.model.arrays import Bools, Floats, Ints, Longs
from streamplace.model.cluster import Cluster
from streamplace.model.devices import SLACK
from streamplace.model.graph import StreamGraph
from streamplace.model.keep_apart import rivals_of

STEPS = 2_000_000


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


def packed(allowed: Bools, pairs: Ints, memory: Floats, room: Floats) -> Ints | None:
    """Devices for units that fit and keep pairs apart; None where none were found.

    Depth first, the unit with the fewest devices and then the largest first, each to the device
    that it fits into most tightly.
    """
    choices = (allowed & (memory[:, None] <= most(room))).sum(axis=1)
    order = np.lexsort((-memory, choices)) if len(pairs) else np.lexsort((choices, -memory))
    alike = bool(allowed.all()) and not len(pairs)
    from streamplace.model.packing import pack

    place = pack(allowed, *_neighbours(len(allowed), pairs), memory, room, order, alike, STEPS)
    return place if len(place) else None


def made_room(
    place: Ints, allowed: Bools, pairs: Ints, memory: Floats, room: Floats
) -> Ints | None:
    """Return a placement of the units in which those that do not fit have moved on; None if stuck.

    The largest units stay first. What fits where it is stays, so a placement that fits is returned
    as it is.
    """
    order = np.argsort(-memory, kind="stable")
    from streamplace.model.packing import make_room

    moved = make_room(
        place.astype(np.int32), allowed, *_neighbours(len(allowed), pairs), memory, room, order
    )
    return None if (moved < 0).any() else moved


def left_over(allowed: Bools, memory: Floats, room: Floats) -> tuple[Longs, float]:
    """Units that are left over when the largest settle first, and the most room that is left."""
    start = np.zeros(len(allowed) + 1, np.int64)
    order, nobody = np.argsort(-memory, kind="stable"), np.empty(0, np.int64)
    first = np.argmax(allowed, axis=1).astype(np.int32)
    from streamplace.model.packing import make_room

    place = make_room(first, allowed, start, nobody, memory, room, order)
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
