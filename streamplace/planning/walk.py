"""Local search: subtasks move and change places until no resource of any machine is exceeded."""

import numpy as np
from streamsim.jit import inlined_kernel, kernel

from streamplace.model.arrays import Floats, Ints, Words
from streamplace.placers.anneal.rate.proposals import accepted, choose, uniform
from streamplace.planning.contents import Packing, excess, fill

HOT, COLD = 0.05, 1e-4
"""Excess that is taken up for a move, at the beginning and at the end."""
SWAPS = 0.4
"""Share of the moves in which two subtasks change places."""
EXCEEDED = 0.7
"""Share of the moves away from a machine that is exceeded."""


@kernel
def walk(
    packing: Packing, kinds: Ints, rows: Ints, random: Words, steps: int
) -> tuple[Ints, float]:
    """Return contents [D, N] whose resources are exceeded least, and by how much."""
    d = len(rows)
    use, over = np.empty(6), np.empty(d)
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
        if w == v:
            w = -1
        _exchange(rows, a, b, v, w)
        new_a = excess(packing, kinds[a], rows[a], use)
        new_b = excess(packing, kinds[b], rows[b], use)
        change = new_a + new_b - over[a] - over[b]
        if accepted(random, change, warmth):
            over[a], over[b] = new_a, new_b
            total = over.sum()
            if total < best:
                best = total
                best_rows[:] = rows
        else:
            _exchange(rows, b, a, v, w)
    return best_rows, best


@kernel
def uses(packing: Packing, kinds: Ints, rows: Ints) -> Floats:
    """Share of every resource of every machine that is in use, [D, 6]."""
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
    """Two machines; the first is often one that is exceeded."""
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
    """Operator of which a machine has subtasks, by lot; -1 where it has none."""
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
def _exchange(rows: Ints, a: int, b: int, v: int, w: int) -> None:
    """Move a subtask of v from a to b, and one of w, if there is any, back."""
    rows[a, v] -= 1
    rows[b, v] += 1
    if w >= 0:
        rows[b, w] -= 1
        rows[a, w] += 1
