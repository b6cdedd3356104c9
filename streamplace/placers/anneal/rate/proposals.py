"""Proposals of moves: units and destination devices."""

import numpy as np
from streamsim.jit import borrowing_kernel, inlined_kernel

from streamplace.model.arrays import Words
from streamplace.model.level import Level
from streamplace.placers.anneal.rate.walk import (
    BESIDE,
    CLUSTERS,
    MOST_ENTRIES,
    MOST_MOVED,
    STAMP,
    SWAPS,
    SWEEP,
    UnitWalk,
    has_room,
)

GROW = 0.5
"""Probability that a neighbour on the same device moves along."""


@borrowing_kernel
def mix(walk: UnitWalk, clusters: float, swaps: float, beside: float) -> None:
    """Set the shares of neighbourhood moves, of swaps, and of moves to a neighbour's device."""
    walk.numbers[CLUSTERS] = clusters
    walk.numbers[SWAPS] = swaps
    walk.numbers[BESIDE] = beside


@inlined_kernel
def propose(level: Level, walk: UnitWalk) -> tuple[int, int, int, int]:
    """Draw a move, legal except for rivals: numbers of units from a to b and back, and a and b.

    The units are in ``walk.moved``. If the first number is 0, there is no move.
    """
    u = walk.counts[SWEEP] - 1
    if u < 0:
        u = choose(walk.random, len(walk.place))
    else:
        walk.counts[SWEEP] = u + 2 if u + 1 < len(walk.place) else 1
    a, n_moved, n_back = walk.place[u], 1, 0
    walk.moved[0] = u
    sort, clusters = uniform(walk.random), walk.numbers[CLUSTERS]
    if sort < clusters:
        n_moved = _grow(level, walk, u)
    if clusters <= sort < clusters + walk.numbers[SWAPS]:
        v = choose(walk.random, len(walk.place))
        walk.moved[1], n_back = v, 1
        b = walk.place[v]
    else:
        b = _destination(level, walk, n_moved)
    if (
        a == b
        or (level.ruled and not _allowed(level, walk, n_moved, n_back, a, b))
        or (len(level.memory) and not has_room(level, walk, n_moved, n_back, a, b))
    ):
        n_moved = 0
    return n_moved, n_back, a, b


@inlined_kernel
def accepted(random: Words, gain: float, temperature: float) -> bool:
    """Whether annealing accepts a step that raises the energy by ``gain``."""
    return gain <= 0 or uniform(random) < np.exp(-gain / temperature)


@borrowing_kernel
def _grow(level: Level, walk: UnitWalk, u: int) -> int:
    """Add neighbours on the same device, and theirs, to a move; return the number of units."""
    walk.counts[STAMP] += 1
    stamp, a = walk.counts[STAMP], walk.place[u]
    walk.mark[u] = stamp
    n_moved, done, entries = 1, 0, 0
    while done < n_moved and entries < MOST_ENTRIES:
        v = walk.moved[done]
        done += 1
        entries += level.start[v + 1] - level.start[v]
        for e in range(level.start[v], level.start[v + 1]):
            w = level.peer[e]
            if walk.mark[w] == stamp or walk.place[w] != a or n_moved == MOST_MOVED:
                continue
            if uniform(walk.random) < GROW:
                walk.mark[w] = stamp
                walk.moved[n_moved] = w
                n_moved += 1
    return n_moved


@inlined_kernel
def _destination(level: Level, walk: UnitWalk, n_moved: int) -> int:
    """Draw a device: that of a neighbour of the moved units, or any."""
    if uniform(walk.random) < walk.numbers[BESIDE]:
        v = walk.moved[choose(walk.random, n_moved)]
        beside = level.start[v + 1] - level.start[v]
        if beside > 0:
            return walk.place[level.peer[level.start[v] + choose(walk.random, beside)]]
    return choose(walk.random, len(level.device_type))


@borrowing_kernel
def _allowed(level: Level, walk: UnitWalk, n_moved: int, n_back: int, a: int, b: int) -> bool:
    for i in range(n_moved + n_back):
        if not level.allowed[level.kind[walk.moved[i]], b if i < n_moved else a]:
            return False
    return True


@borrowing_kernel
def apart(level: Level, walk: UnitWalk, n: int) -> bool:
    """Whether no moved unit shares its device with a rival."""
    met = False
    for i in range(n):
        met = met or meets_rival(level, walk, walk.moved[i])
    return not met


@borrowing_kernel
def meets_rival(level: Level, walk: UnitWalk, u: int) -> bool:
    """Whether unit u shares its device with a rival."""
    for i in range(level.rival_start[u], level.rival_start[u + 1]):
        if walk.place[level.rival[i]] == walk.place[u]:
            return True
    return False


@inlined_kernel
def draw(random: Words) -> np.uint64:
    """Next number of xorshift64."""
    x = random[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    random[0] = x
    return x


@inlined_kernel
def uniform(random: Words) -> float:
    """Random number in [0, 1)."""
    return float(draw(random) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@inlined_kernel
def choose(random: Words, n: int) -> int:
    """Random integer in 0 … n - 1."""
    return int(np.int64(((draw(random) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32)))
