"""Simulated annealing: moves and swaps subtasks until no resource of any machine is exceeded."""

import numpy as np
from streamsim.jit import inlined_kernel, kernel
from streamsim.rows import copy_rows

from streamplace.model.arrays import Floats, Ints, Words
from streamplace.placers.anneal.rate.proposals import accepted, choose, uniform
from streamplace.planning.contents import Packing, excess, fill

HOT, COLD = 0.05, 1e-4
"""Temperature at the start and at the end, in units of excess."""
SWAPS = 0.4
"""Share of the moves that swap two subtasks."""
BUNDLES = 0.5
"""Share of the moves that also move the subtasks of the same forward bundle."""
EXCEEDED = 0.7
"""Share of the moves that start at an overloaded machine."""


@kernel
def walk(
    packing: Packing, kinds: Ints, rows: Ints, random: Words, steps: int
) -> tuple[Ints, float]:
    """Return the contents [D, N] with the least excess found, and their excess."""
    rows = rows.copy()  # the caller's contents stay unchanged
    d = len(rows)
    use, over = np.empty(6), np.empty(d)
    moved, back = np.empty(rows.shape[1], np.int32), np.empty(rows.shape[1], np.int32)
    total = _excesses(packing, kinds, rows, over, use)
    best, best_rows = total, rows.copy()
    cooling = (COLD / HOT) ** (1.0 / max(1, steps))
    warmth = HOT
    for _ in range(steps):
        if best == 0.0 or d < 2:
            break
        warmth *= cooling
        a, b = _machines(random, over, total)
        v = _subtask(random, rows[a])
        if v < 0 or a == b:
            continue
        w = _subtask(random, rows[b]) if uniform(random) < SWAPS else -1
        _choose(packing, random, rows[a], v, moved)
        _choose(packing, random, rows[b], w, back)
        _exchange(rows[a], rows[b], moved, back)
        new_a = excess(packing, kinds[a], rows[a], use)
        new_b = excess(packing, kinds[b], rows[b], use)
        change = new_a + new_b - over[a] - over[b]
        if accepted(random, change, warmth):
            over[a], over[b] = new_a, new_b
            total = over.sum()
            if total < best:
                best = total
                copy_rows(best_rows, rows)
        else:
            _exchange(rows[b], rows[a], moved, back)
    return best_rows, best


@kernel
def uses(packing: Packing, kinds: Ints, rows: Ints) -> Floats:
    """Use of every resource of every machine, as shares of capacity, [D, 6]."""
    shares = np.empty((len(kinds), 6))
    for m in range(len(kinds)):
        fill(packing, kinds[m], rows[m], shares[m])
    return shares


@inlined_kernel
def _excesses(packing: Packing, kinds: Ints, rows: Ints, over: Floats, use: Floats) -> float:
    total = 0.0
    for m in range(len(kinds)):
        over[m] = excess(packing, kinds[m], rows[m], use)
        total += over[m]
    return total


@inlined_kernel
def _machines(random: Words, over: Floats, total: float) -> tuple[int, int]:
    """Choose two machines at random; the first is often an overloaded one."""
    d = len(over)
    a = choose(random, d)
    if uniform(random) < EXCEEDED:
        left = uniform(random) * total
        for m in range(d):
            left -= over[m]
            if left < 0.0:
                a = m
                break
    return a, choose(random, d)


@inlined_kernel
def _subtask(random: Words, row: Ints) -> int:
    """Choose a random operator with subtasks on the machine; -1 if there is none."""
    number = 0
    for v in range(len(row)):
        if row[v] > 0:
            number += 1
    if number == 0:
        return -1
    chosen = choose(random, number)
    for v in range(len(row)):
        if row[v] > 0:
            if chosen == 0:
                return v
            chosen -= 1
    return -1


@inlined_kernel
def _choose(packing: Packing, random: Words, row: Ints, v: int, chosen: Ints) -> None:
    """Mark the subtasks that move: one of v, or one of each operator of its bundle, or none."""
    together = uniform(random) < BUNDLES
    for x in range(len(row)):
        alike = together and v >= 0 and packing.bundle[x] == packing.bundle[v]
        chosen[x] = 1 if row[x] > 0 and (x == v or alike) else 0


@inlined_kernel
def _exchange(a: Ints, b: Ints, moved: Ints, back: Ints) -> None:
    """Move subtasks from machine a to b, and others back."""
    for x in range(len(a)):
        a[x] += back[x] - moved[x]
        b[x] += moved[x] - back[x]
