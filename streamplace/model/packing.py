"""Compiled packing of units into device memory, with rivals on different devices."""

import numpy as np
from streamsim.jit import kernel

from streamplace.model.arrays import Bools, Floats, Ints, Longs
from streamplace.model.devices import SLACK


@kernel
def pack(
    allowed: Bools,
    start: Longs,
    rival: Longs,
    memory: Floats,
    room: Floats,
    order: Longs,
    alike: bool,
    steps: int,
) -> Ints:
    """Search depth first; if devices are ``alike``, one of those with equal free memory is tried.

    The result is empty if no packing exists; units at -1 mean that the step limit was reached.
    """
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
    return place if depth >= 0 else place[:0]


@kernel
def make_room(
    place: Ints,
    allowed: Bools,
    start: Longs,
    rival: Longs,
    memory: Floats,
    room: Floats,
    order: Longs,
) -> Ints:
    """Place units in order: on their device if they fit, else on the next one, else at -1."""
    n_devices, left = len(room), room.copy()
    for u in order:
        device = -1
        for step in range(n_devices):
            d = (place[u] + step) % n_devices
            if memory[u] > left[d] + SLACK * room[d] and memory[u] > 0:
                continue
            if step == 0 or (allowed[u, d] and not _taken(place, start, rival, u, d)):
                device = d
                break
        place[u] = device
        if device >= 0:
            left[device] -= memory[u]
    return place


@kernel
def _taken(place: Ints, start: Longs, rival: Longs, u: int, d: int) -> bool:
    """Whether a rival of unit u is on device d."""
    taken = False
    for i in range(start[u], start[u + 1]):
        taken |= place[rival[i]] == d
    return taken
