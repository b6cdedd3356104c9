"""Walk: a placement of units under moves, its memory, and the energy that the search minimises.

The largest load alone has plateaus: most moves do not change it. The energy

    E = Σ_r max(0, load_r - target)²      over devices, links, NICs and single cores

with a target a little below the best peak so far has a slope wherever a resource is too full, is
zero exactly if the target is met, and depends only on the loads that a move changes.
"""

from typing import NamedTuple

import numpy as np
from streamsim.equation import (
    egress_at,
    handling_load,
    ingress_at,
    link_at,
    link_load,
    n_resources,
    nic_load,
)
from streamsim.jit import borrowing_kernel, inlined_kernel, kernel, patient

from streamplace.model.arrays import Floats, Ints, Longs, Words
from streamplace.model.level import Level

MOST_MOVED, MOST_ENTRIES = 128, 256
"""Most units of a move besides the first, and most neighbours of them to examine."""
ROUNDING = 1e-10
"""Share of a device's memory; smaller than the tolerance for legal placements."""

# Indices of `UnitWalk.counts`: the step in this round and its length, the round, the number of the
# last neighbourhood move, the step at which `best` was copied, 1 + next unit of a sweep (or 0)
STEP, LENGTH, ROUND, STAMP, COPIED, SWEEP = range(6)
# Indices of `UnitWalk.numbers`: HEAT is the unit of temperatures; CLUSTERS, SWAPS and BESIDE are
# shares of moves; SLACK is the target's distance from the best peak, TIGHTEN its factor per round
ENERGY, TARGET, BEST_PEAK, TEMPERATURE, COOLING, HEAT, CLUSTERS, SWAPS, BESIDE, SLACK, TIGHTEN = (
    range(11)
)


class UnitWalk(NamedTuple):
    """State of the search; the kernels change it in place (U units, R resources)."""

    place: Ints  # [U]
    best: Ints  # [U]
    used: Floats  # [D] bytes of memory, if limited
    loads: Floats  # [R] devices, links and, unless the level is plain, outgoing and incoming NICs
    moved: Ints  # [MOST_MOVED + 1] units of the move under trial
    mark: Longs  # [U] number of the last move with each unit
    undo_resource: Longs  # resources whose loads the move under trial changed, in order
    undo_load: Floats  # their loads before
    random: Words  # [1] state of the generator
    counts: Longs  # [6]
    numbers: Floats  # [11]


def new_walk(level: Level, place: Ints, seed: int) -> UnitWalk:
    """Build a walk that starts at a legal placement of the units."""
    n, d = level.n_units, len(level.device_type)
    widest = int(np.diff(level.start).max(initial=0))
    entries = min(2 * len(level.peer), (MOST_MOVED + 1) * widest)
    log = (4 if level.plain else 20) * entries + 2 * (MOST_MOVED + 1)
    return UnitWalk(
        place.copy(),
        place.copy(),
        np.zeros(d),
        np.zeros(_size(level)),
        np.zeros(MOST_MOVED + 1, np.int32),
        np.zeros(n, np.int64),
        np.zeros(log, np.int64),
        np.zeros(log),
        np.array([scrambled(seed)], np.uint64),
        np.zeros(6, np.int64),
        np.zeros(11),
    )


@patient
@inlined_kernel
def _size(level: Level) -> int:
    """Length of the load vector, which omits NICs if they are unlimited."""
    d = len(level.device_type)
    return egress_at(d, 0) if level.plain else n_resources(d)


def scrambled(seed: int) -> int:
    """Initial generator state for a seed (splitmix64), never 0."""
    x = (seed + 0x9E3779B97F4A7C15) % 2**64
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    return (x ^ (x >> 31)) | 1


@inlined_kernel
def excess(load: float, target: float) -> float:
    """Energy of one resource."""
    over = max(load - target, 0.0)
    return over * over


@inlined_kernel
def _handling(level: Level, tuples: float, traffic: float, d: int) -> float:
    """Load of device d by sending or receiving ``tuples`` and ``traffic``."""
    overhead, per_byte = level.overhead, level.overhead_per_byte
    load: float = handling_load(tuples, traffic, overhead, per_byte, level.free_cores[d])
    return load


@borrowing_kernel
def fill_loads(level: Level, place: Ints, loads: Floats) -> None:
    """Compute the load of every resource from scratch."""
    d = len(level.device_type)
    loads[:] = 0.0
    for u in range(len(place)):
        a = place[u]
        loads[a] += level.load[u, level.device_type[a]]
        for e in range(level.start[u], level.start[u + 1]):
            b, sent = place[level.peer[e]], level.sent[e]
            if a == b:
                continue
            tuples = level.sent_tuples[e] if len(level.sent_tuples) else 0.0
            loads[link_at(d, a, b)] += link_load(sent, tuples, level.wire[a, b], level.gap)
            if not level.plain:
                loads[egress_at(d, a)] += nic_load(sent, level.egress[a])
                loads[ingress_at(d, b)] += nic_load(sent, level.ingress[b])
                loads[a] += _handling(level, tuples, sent, a)
                loads[b] += _handling(level, tuples, sent, b)


@patient
@kernel
def peak_of(level: Level, place: Ints) -> float:
    """Peak of a placement of the units, from scratch."""
    loads, worst = np.zeros(_size(level)), 0.0
    fill_loads(level, place, loads)
    for r in range(len(loads)):
        worst = max(worst, loads[r])
    for u in range(len(place) if len(level.core) else 0):
        worst = max(worst, level.core[u, level.device_type[place[u]]])
    return worst


@borrowing_kernel
def energy(level: Level, walk: UnitWalk, target: float) -> float:
    """Energy of the placement, from its loads."""
    total = 0.0
    for r in range(len(walk.loads)):
        total += excess(walk.loads[r], target)
    if len(level.core):
        for u in range(len(walk.place)):
            total += excess(level.core[u, level.device_type[walk.place[u]]], target)
    return total


@inlined_kernel
def peak(level: Level, walk: UnitWalk) -> float:
    """Load of the fullest resource or single core."""
    worst = 0.0
    for r in range(len(walk.loads)):
        worst = max(worst, walk.loads[r])
    if len(level.core):
        for u in range(len(walk.place)):
            worst = max(worst, level.core[u, level.device_type[walk.place[u]]])
    return worst


@inlined_kernel
def shift(
    loads: Floats, log: Longs, old_loads: Floats, i: int, r: int, change: float, target: float
) -> float:
    """Change one load, log the old one at i, and return the change of the energy."""
    old = loads[r]
    log[i] = r
    old_loads[i] = old
    loads[r] = old + change
    return excess(old + change, target) - excess(old, target)


@inlined_kernel
def move(level: Level, walk: UnitWalk, u: int, to: int, log: int) -> tuple[int, float]:
    """Move unit u to another device; return the new end of the log and the change of the energy."""
    d, a, b, target = len(level.device_type), walk.place[u], to, walk.numbers[TARGET]
    loads, undone, old = walk.loads, walk.undo_resource, walk.undo_load
    type_a, type_b = level.device_type[a], level.device_type[b]
    gain = shift(loads, undone, old, log, a, -level.load[u, type_a], target)
    gain += shift(loads, undone, old, log + 1, b, level.load[u, type_b], target)
    log += 2
    walk.place[u] = b
    if not level.plain:
        return _reroute(level, walk, u, a, log, gain)
    for e in range(level.start[u], level.start[u + 1]):
        c = walk.place[level.peer[e]]
        for way in range(2):  # streams out of u, then into u
            rate = level.taken[e] if way else level.sent[e]
            if rate > 0:
                for end in range(2):  # the old device of u, then the new one
                    mine = b if end else a
                    if mine != c:
                        x, y = (c, mine) if way else (mine, c)
                        flow = link_load(rate, 0.0, level.wire[x, y], 0.0)
                        r = link_at(d, x, y)
                        gain += shift(loads, undone, old, log, r, flow if end else -flow, target)
                        log += 1
    return log, gain


@borrowing_kernel
def _reroute(
    level: Level, walk: UnitWalk, u: int, a: int, log: int, gain: float
) -> tuple[int, float]:
    """Reroute the streams of unit u from its old to its new device, and update all loads."""
    b, target = walk.place[u], walk.numbers[TARGET]
    if len(level.core):
        gain += excess(level.core[u, level.device_type[b]], target)
        gain -= excess(level.core[u, level.device_type[a]], target)
    for e in range(level.start[u], level.start[u + 1]):
        c = walk.place[level.peer[e]]
        for way in range(2):
            for end in range(2):
                mine = b if end else a
                if mine != c:
                    x, y = (c, mine) if way else (mine, c)
                    sign = 1.0 if end else -1.0
                    log, more = _flow(level, walk, e, x, y, way, sign, log)
                    gain += more
    return log, gain


@inlined_kernel
def _flow(
    level: Level, walk: UnitWalk, e: int, a: int, b: int, way: int, sign: float, log: int
) -> tuple[int, float]:
    """Add an entry's bytes and tuples to the loads between devices a and b."""
    d, target = len(level.device_type), walk.numbers[TARGET]
    loads, undone, old = walk.loads, walk.undo_resource, walk.undo_load
    rate = sign * (level.taken[e] if way else level.sent[e])
    tuples = 0.0
    if len(level.sent_tuples):
        tuples = sign * (level.taken_tuples[e] if way else level.sent_tuples[e])
    link = link_load(rate, tuples, level.wire[a, b], level.gap)
    egress, ingress = nic_load(rate, level.egress[a]), nic_load(rate, level.ingress[b])
    gain = shift(loads, undone, old, log, link_at(d, a, b), link, target)
    gain += shift(loads, undone, old, log + 1, egress_at(d, a), egress, target)
    gain += shift(loads, undone, old, log + 2, ingress_at(d, b), ingress, target)
    if level.overhead == 0 and level.overhead_per_byte == 0:
        return log + 3, gain
    sender, receiver = _handling(level, tuples, rate, a), _handling(level, tuples, rate, b)
    gain += shift(loads, undone, old, log + 3, a, sender, target)
    gain += shift(loads, undone, old, log + 4, b, receiver, target)
    return log + 5, gain


@inlined_kernel
def undo(walk: UnitWalk, log: int) -> None:
    """Restore every load exactly, in reverse order."""
    for i in range(log - 1, -1, -1):
        walk.loads[walk.undo_resource[i]] = walk.undo_load[i]


@borrowing_kernel
def count_used(level: Level, walk: UnitWalk) -> None:
    """Sum the memory of the units by device."""
    walk.used[:] = 0.0
    for u in range(len(level.memory)):
        walk.used[walk.place[u]] += level.memory[u]


@borrowing_kernel
def has_room(level: Level, walk: UnitWalk, n_moved: int, n_back: int, a: int, b: int) -> bool:
    """Whether both devices have enough memory for the move under trial, from a to b and back."""
    change = _change(level, walk, n_moved, n_back)
    on_a, on_b = walk.used[a] - change, walk.used[b] + change
    fits_a = change >= 0 or on_a <= level.room[a] * (1 + ROUNDING)
    return fits_a and (change <= 0 or on_b <= level.room[b] * (1 + ROUNDING))


@borrowing_kernel
def take_room(level: Level, walk: UnitWalk, n_moved: int, n_back: int, a: int, b: int) -> None:
    """Update the used memory after a move."""
    if len(level.memory) == 0:
        return
    change = _change(level, walk, n_moved, n_back)
    walk.used[a] -= change
    walk.used[b] += change


@borrowing_kernel
def _change(level: Level, walk: UnitWalk, n_moved: int, n_back: int) -> float:
    change = 0.0
    for i in range(n_moved + n_back):
        size = level.memory[walk.moved[i]]
        change += size if i < n_moved else -size
    return change
