"""Compiled packing of units into device memory, with rivals on different devices."""

import numpy as np
from streamsim.jit import borrowing_kernel, kernel

from streamplace.model.arrays import Bools, Floats, Ints, Longs
from streamplace.model.devices import SLACK


@kernel
def pack(
    allowed: Bools,
    start: Longs,
    rival: Longs,
    memory: Floats,
    capacity: Floats,
    order: Longs,
    alike: bool,
    steps: int,
) -> Ints:
    """Search depth first; if devices are ``alike``, one of those with equal free memory is tried.

    The result is empty if no packing exists; units at -1 mean that the step limit was reached.
    """
    n, n_devices = allowed.shape
    place, free = np.full(n, -1, np.int32), capacity.copy()
    tried_free, tried = np.full(n, -np.inf), np.full(n, -1, np.int64)
    depth = 0
    while 0 <= depth < n and steps > 0:
        steps -= 1
        u, best = order[depth], -1
        for d in range(n_devices):
            after = (free[d], d) > (tried_free[depth], tried[depth])
            if alike and free[d] == tried_free[depth] and tried[depth] >= 0:
                after = False
            fits = memory[u] <= free[d] + SLACK * capacity[d] or memory[u] == 0
            if not (after and fits and allowed[u, d]) or meets_rival(place, start, rival, u, d):
                continue
            if best < 0 or free[d] < free[best]:
                best = d
        if best >= 0:
            tried_free[depth], tried[depth] = free[best], best
            place[u] = best
            free[best] -= memory[u]
            depth += 1
            if depth < n:
                tried_free[depth], tried[depth] = -np.inf, -1
        else:
            depth -= 1
            if depth >= 0:
                u = order[depth]
                free[place[u]] = tried_free[depth]
                place[u] = -1
    return place if depth >= 0 else place[:0]


@kernel
def make_room(
    place: Ints,
    allowed: Bools,
    start: Longs,
    rival: Longs,
    memory: Floats,
    capacity: Floats,
    order: Longs,
) -> Ints:
    """Place units in order: on their device if they fit, else on the next one, else at -1."""
    n_devices, free = len(capacity), capacity.copy()
    for u in order:
        device = -1
        for step in range(n_devices):
            d = (place[u] + step) % n_devices
            if memory[u] > free[d] + SLACK * capacity[d] and memory[u] > 0:
                continue
            if step == 0 or (allowed[u, d] and not meets_rival(place, start, rival, u, d)):
                device = d
                break
        place[u] = device
        if device >= 0:
            free[device] -= memory[u]
    return place


@borrowing_kernel
def meets_rival(place: Ints, start: Ints | Longs, rival: Ints | Longs, u: int, d: int) -> bool:
    """Whether a rival of unit u is on device d."""
    i, end = start[u], start[u + 1]
    while i < end and place[rival[i]] != d:
        i += 1
    met: bool = i < end
    return met
