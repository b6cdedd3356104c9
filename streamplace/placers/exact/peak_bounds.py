"""Lower bounds on the largest load, and the limits that a better placement must respect.

*Packing.* Whether the CPU work fits the devices, without the network, is a question of bin packing.
It is answered by dynamic programming over the numbers of packed items of each kind, that is, of
each size. The number of states is the product of (items of a kind + 1).

A *hub* is a unit with many streams, such as the source of a graph with many branches. Units with
equal work and equal streams from and to the hub are of one kind: if of the network only the links
between the hub's device and the others are kept, they are interchangeable. A *pattern* is a
combination of units on one device, by the counts of each kind.

*Spreading.* One device holds the hub and a pattern of units, every other device a pattern whose
streams also fit one link. Only maximal patterns matter, because covering more units than necessary
is never harder than covering them exactly.

*Tight devices.* If D equal devices must carry all work with loads below a cut, each must carry at
least the work that the others cannot. Few patterns lie between these limits; branch and bound keeps
every device within them.
"""

from typing import NamedTuple

import numpy as np
from streamsim import _core
from streamsim.equation import link_loads

from streamplace.model.arrays import ROUNDING, TIE, Floats, Ints, Longs
from streamplace.placers.exact.units import Units
from streamplace.placers.meter import ENDLESS, Remaining

MAX_STATES = 200_000
"""Most states of a packing."""
RESOLUTION = 1 << 16
MIN_HUB_STREAMS = 3
MAX_HUBS = 2
MAX_COVERINGS = 50_000
"""Most numbers of covered units of each kind."""
DIGITS = 12
MAX_BITS = 62
"""Most bits of the words of patterns."""


class Hub(NamedTuple):
    """A hub, and the other units by kind (K): equal work, equal streams from and to the hub."""

    kind: Ints  # [U] kind of every unit, -1 for the hub
    counts: Longs  # [K]
    work: Floats  # [K] CPU load
    sent: Floats  # [K] load of a link from the hub
    taken: Floats  # [K] load of a link to the hub
    own: float  # CPU load of the hub


def hubs_of(units: Units) -> list[Hub]:
    """Hubs with the most streams, on devices of one class, if their units are of few kinds."""
    if (units.classes != units.classes[0]).any() or units.n_devices < 2:
        return []
    degree = np.diff(units.start)
    chosen = [u for u in np.argsort(-degree, kind="stable") if degree[u] >= MIN_HUB_STREAMS]
    hubs = [_hub(units, int(u)) for u in chosen[:MAX_HUBS]]
    return [hub for hub in hubs if np.prod(hub.counts + 1.0) <= MAX_COVERINGS]


def placed(hub: Hub, taken: Longs) -> Ints:
    """Placement that distributes the units of every kind to devices by their patterns."""
    place = np.zeros(len(hub.kind), np.int32)
    for kind, count in enumerate(hub.counts):
        devices = np.repeat(np.arange(len(taken)), taken[:, kind])
        place[hub.kind == kind] = devices[:count]
    return place


def _hub(units: Units, hub: int) -> Hub:
    n = units.n_units
    load = units.load[:, 0]
    link = link_loads(units.traffic, units.tuples, units.quickest, units.platform.gap)
    out, back = units.source == hub, units.target == hub
    sent = np.bincount(units.target[out], link[out], minlength=n)
    taken = np.bincount(units.source[back], link[back], minlength=n)
    facts = np.stack((load, sent, taken), axis=1)
    others = np.arange(n) != hub
    rows, kind, count = np.unique(
        np.round(facts[others], DIGITS), axis=0, return_inverse=True, return_counts=True
    )
    safe = np.maximum(rows - 10.0**-DIGITS, 0.0).T.copy()
    kinds = np.full(n, -1, np.int32)
    kinds[others] = kind.ravel()
    return Hub(kinds, count.astype(np.int64), safe[0], safe[1], safe[2], float(load[hub]))


class Patterns(NamedTuple):
    """Combinations of units on a device (P), and the encoding of units in them."""

    word: Longs  # [P] counts of every kind
    work: Floats  # [P] their work
    single: Longs  # [U] one unit of the kind of u
    field: Longs  # [U] the field of that kind
    guards: int
    total: float  # work of all units


NOTHING = np.zeros(0, np.int64)
NO_PATTERNS = Patterns(NOTHING, np.zeros(0), NOTHING, NOTHING, 0, 0.0)


def patterns_below(units: Units, cut: float, remaining: Remaining) -> Patterns:
    """Patterns for equal devices with all loads below the cut, if they are few; else none."""
    hub = min(hubs_of(units), key=lambda hub: np.prod(hub.counts + 1.0), default=None)
    if hub is None or units.handles:
        return NO_PATTERNS
    hub = _with_itself(hub)
    bits = [int(count).bit_length() + 1 for count in hub.counts]
    if sum(bits) > MAX_BITS:
        return NO_PATTERNS
    shift = np.concatenate(([0], np.cumsum(bits)[:-1])).astype(np.int64)
    least = float(hub.work @ hub.counts) - (units.n_devices - 1) * cut - ROUNDING * cut
    words = _core.pattern_words(hub, shift, least, cut, remaining)
    if words is None:
        return NO_PATTERNS
    kind = hub.kind
    return Patterns(
        *words,
        np.left_shift(np.int64(1), shift[kind]),
        np.array([((1 << (b - 1)) - 1) << int(s) for b, s in zip(bits, shift, strict=True)])[kind],
        sum(1 << (int(s) + b - 1) for b, s in zip(bits, shift, strict=True)),
        float(hub.work @ hub.counts),
    )


def _with_itself(hub: Hub) -> Hub:
    """Add the hub itself as the last kind."""
    last = len(hub.counts)
    return hub._replace(
        kind=np.where(hub.kind < 0, last, hub.kind),
        counts=np.append(hub.counts, 1),
        work=np.append(hub.work, hub.own),
        sent=np.append(hub.sent, 0.0),
        taken=np.append(hub.taken, 0.0),
    )


class Limits(NamedTuple):
    """Limits of the loads of a placement, and the needs of units."""

    full: Floats  # [D] limit of CPU loads
    cut: float  # limit of every other load
    work: Floats  # [U] CPU work, at most load · power on every device
    power: Floats  # [D]
    wire: float  # seconds per byte of the slowest link
    patterns: Patterns  # allowed final combinations of units on devices; none for no restriction
    rank: Floats  # [U] rank that decides between units with equally few devices, largest first


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


def limits_below(units: Units, cut: float, remaining: Remaining = ENDLESS) -> Limits:
    """Limits of a search for placements with all loads below the cut."""
    power, work = powers(units)
    full = np.full(units.n_devices, cut)
    equal = (units.load == units.load[:, :1]).all() and not units.handles
    if equal:
        full[:] = _largest_sum(work, cut)
    wire = float(units.platform.seconds_per_byte.max())
    ends = np.concatenate((units.source, units.target))
    bytes_around = np.bincount(ends, np.tile(units.traffic, 2), minlength=units.n_units)
    patterns = patterns_below(units, cut, remaining)
    return Limits(full, cut, work, power, wire, patterns, work + wire * bytes_around)


def exceeds_capacity(limits: Limits, remaining: Remaining = ENDLESS) -> bool:
    """Whether the CPU work alone exceeds the limits; False if deciding takes too long."""
    work, room = limits.work, limits.full * limits.power
    sizes, counts = _kinds(work[work > 0])
    if np.prod(counts + 1.0) > MAX_STATES:
        return bool(work.sum() > room.sum())
    return not _core.packs(sizes, counts, np.sort(room)[::-1], remaining)


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
    starts = np.flatnonzero(np.diff(items, prepend=-1.0) > TIE * items)
    return items[starts], np.diff(np.append(starts, len(items)))
