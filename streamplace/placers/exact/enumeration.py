"""Enumeration: all legal placements of the units, of equal empty devices only the first."""

from collections.abc import Iterator

import numpy as np
from streamsim.jit import borrowing_kernel

from streamplace.model.arrays import Bools, Ints, Longs
from streamplace.placers.exact.prover import has_memory
from streamplace.placers.exact.units import Units

BATCH, STEPS = 4096, 200_000
"""Most placements that are listed at once, and most steps for them."""


def legal_placements(units: Units) -> Iterator[Ints]:
    """Yield batches [B, U] of all legal placements, each once up to swaps of equal devices.

    A batch has fewer than `BATCH`, or none, at the end or where few placements are legal.
    """
    allowed = np.isfinite(units.load)
    place, clock = np.full(units.n_units, -1, np.int32), np.zeros(1, np.int64)
    while clock[0] >= 0:
        batch = np.empty((BATCH, units.n_units), np.int32)
        yield batch[: _list(units, allowed, place, clock, batch)]


def are_few(units: Units, most: int) -> bool:
    """Whether at most so many placements, up to swaps of equal devices, are quickly listed."""
    before = 0
    for number, batch in enumerate(legal_placements(units)):
        if before + len(batch) > most:
            return False
        before = (number + 1) * BATCH
    return True


@borrowing_kernel
def _list(units: Units, allowed: Bools, place: Ints, clock: Longs, batch: Ints) -> int:
    """Write the next placements to the batch; return their number.

    ``clock`` has the unit that is moved next, -1 at the end, and -1 is the device of the others.
    """
    n, n_devices, size, steps = len(place), allowed.shape[1], 0, 0
    u = clock[0]
    while u >= 0 and size < len(batch) and steps < STEPS:
        steps += 1
        d = place[u] + 1
        place[u] = -1
        while d < n_devices and not _may(units, allowed, place, u, d):
            d += 1
        if d == n_devices:
            u -= 1
            continue
        place[u] = d
        if u + 1 < n:
            u += 1
            continue
        for v in range(n):
            batch[size, v] = place[v]
        size += 1
    clock[0] = u
    return size


@borrowing_kernel
def _may(units: Units, allowed: Bools, place: Ints, u: int, d: int) -> bool:
    """Whether a unit may be placed on a device, which is the first of those that are equal."""
    if not allowed[u, d] or not has_memory(units, place, u, d):
        return False
    for i in range(units.rival_start[u], units.rival_start[u + 1]):
        if place[units.rivals[i]] == d:
            return False
    earlier = False
    for a in range(d):
        earlier |= units.classes[a] == units.classes[d] and not _is_used(place, u, a)
    return _is_used(place, u, d) or not earlier


@borrowing_kernel
def _is_used(place: Ints, u: int, d: int) -> bool:
    """Whether a unit before u is on a device."""
    used = False
    for v in range(u):
        used |= place[v] == d
    return used
