"""Lower bounds on the largest load, and the limits that a better placement must respect.

Whether the CPU work fits the devices, without the network, is a question of bin packing. It is
answered by dynamic programming over the numbers of packed items of each kind, that is, of each
size. Of all ways to pack the same items into the devices in order, the one that ends on the
earliest device with the least work there dominates. The number of states is the product of
(items of a kind + 1).
"""

import numpy as np
from streamsim.jit import kernel

from streamplace.model.arrays import Floats, Longs
from streamplace.placers.exact.rate.branch_and_bound import Limits
from streamplace.placers.exact.rate.patterns import patterns_below
from streamplace.placers.exact.rate.units import Units

MOST_STATES = 200_000
SAME = 1e-12
RESOLUTION = 1 << 16


def simple_bound(units: Units) -> float:
    """Bound by the least load of each unit alone, and by all work over all devices."""
    alone = np.maximum(units.load, units.core).min(axis=1).max()
    power, work = powers(units)
    return max(float(alone), float(work.sum() / power.sum()))


def powers(units: Units) -> tuple[Floats, Floats]:
    """Powers of the devices [D] and work of the units [U]: load · power ≥ work everywhere."""
    usable = np.isfinite(units.load)
    anywhere = usable.all(axis=1)
    rows = anywhere if anywhere.any() else usable.any(axis=1)
    total = np.where(usable, units.load, 0.0)[rows].sum(axis=0)
    least = total.min(initial=np.inf, where=total > 0)
    power = np.divide(least, total, out=np.ones_like(total), where=total > 0)
    power[~usable.any(axis=0)] = 0.0
    scaled = np.multiply(units.load, power, out=np.full_like(units.load, np.inf), where=usable)
    return power, scaled.min(axis=1)


def limits_below(units: Units, cut: float) -> Limits:
    """Limits of a search for placements with all loads below the cut."""
    power, work = powers(units)
    full = np.full(units.n_devices, cut)
    equal = (units.load == units.load[:, :1]).all() and not units.handles
    if equal:
        full[:] = _largest_sum(work, cut)
    wire = float(units.seconds_per_byte.max())
    ends = np.concatenate((units.source, units.target))
    bytes_around = np.bincount(ends, np.tile(units.traffic, 2), minlength=units.n_units)
    patterns = patterns_below(units, cut)
    return Limits(full, cut, work, power, wire, patterns, work + wire * bytes_around)


def hopeless(limits: Limits) -> bool:
    """Whether the CPU work alone exceeds the limits."""
    return not _packs(limits.work, limits.full * limits.power)


def _packs(work: Floats, room: Floats) -> bool:
    """Whether the work may fit the devices' capacities; True if deciding takes too long."""
    sizes, counts = _kinds(work[work > 0])
    if np.prod(counts + 1.0) > MOST_STATES:
        return bool(work.sum() <= room.sum())
    return bool(_pack(sizes, counts, np.sort(room)[::-1].copy()))


def _largest_sum(work: Floats, limit: float) -> float:
    """Upper bound of the subset sums of the work that are below ``limit``.

    Work is rounded down to steps, and one step per item is added at the end.
    """
    steps = RESOLUTION / max(work.sum(), limit)
    sums = 1
    for item in (work * steps).astype(np.int64).tolist():
        sums |= sums << item
    below = sums & ((1 << (int(limit * steps) + 1)) - 1)
    return min(limit, (below.bit_length() + len(work)) / steps)


def _kinds(work: Floats) -> tuple[Floats, Longs]:
    """Distinct sizes, the smallest of nearly equal ones, and their numbers of items."""
    items = np.sort(work)
    starts = np.flatnonzero(np.diff(items, prepend=-1.0) > SAME * items)
    return items[starts], np.diff(np.append(starts, len(items)))


@kernel
def _pack(sizes: Floats, counts: Longs, room: Floats) -> bool:
    """Whether the items fit when packed into the devices in order."""
    n_kinds = len(sizes)
    stride = np.ones(n_kinds + 1, np.int64)
    for kind in range(n_kinds):
        stride[kind + 1] = stride[kind] * (counts[kind] + 1)
    n_states = stride[n_kinds]
    device = np.zeros(n_states, np.int64)
    used = np.zeros(n_states)
    for state in range(1, n_states):
        best, best_used = len(room), np.inf
        for kind in range(n_kinds):
            if state // stride[kind] % (counts[kind] + 1) == 0:
                continue
            before = state - stride[kind]
            d, load = device[before], used[before] + sizes[kind]
            while d < len(room) and load > room[d]:
                d += 1
                load = sizes[kind]
            if d < best or (d == best and load < best_used):
                best, best_used = d, load
        device[state], used[state] = best, best_used
    return device[n_states - 1] < len(room)
