"""First fit by dot product: machines are filled one after the other.

Each machine takes the subtask whose needs lie most in the direction of what the machine has left
(Panigrahy and others 2011), until none fits.
"""

import numpy as np
from streamsim.jit import inlined_kernel, kernel

from streamplace.model.arrays import Floats, Ints
from streamplace.planning.contents import SLACK, Packing, excess, fill


@kernel
def first_fit(packing: Packing, kinds: Ints) -> tuple[Ints, Ints]:
    """Fill machines of these types in turn; returns contents [D, N] and the subtasks left [N]."""
    n, d = len(packing.instructions), len(kinds)
    rows, left = np.zeros((d, n), np.int32), packing.parallelism.copy()
    use, after = np.empty(6), np.empty(6)
    for m in range(d):
        if left.max() == 0:
            break
        fill(packing, kinds[m], rows[m], use)
        while True:
            v = _best_subtask(packing, kinds[m], rows[m], left, use, after)
            if v < 0:
                break
            rows[m, v] += 1
            left[v] -= 1
            fill(packing, kinds[m], rows[m], use)
    return rows, left


@inlined_kernel
def _best_subtask(
    packing: Packing, kind: int, row: Ints, left: Ints, use: Floats, after: Floats
) -> int:
    """Operator of the subtask that fits and scores most; -1 where none fits."""
    best, chosen = -1.0, -1
    for v in range(len(left)):
        if left[v] == 0:
            continue
        row[v] += 1
        fill(packing, kind, row, after)
        row[v] -= 1
        score = 0.0
        for r in range(len(use)):
            if after[r] > 1.0 + SLACK:
                score = -1.0
                break
            score += max(0.0, after[r] - use[r]) * (1.0 - min(1.0, use[r])) + 1e-12
        if score > best:
            best, chosen = score, v
    return chosen


@kernel
def force(packing: Packing, kinds: Ints, rows: Ints, left: Ints) -> None:
    """Put what is left where it exceeds resources least."""
    use = np.empty(6)
    for v in range(len(left)):
        while left[v] > 0:
            best, chosen = np.inf, 0
            for m in range(len(kinds)):
                before = excess(packing, kinds[m], rows[m], use)
                rows[m, v] += 1
                more = excess(packing, kinds[m], rows[m], use) - before
                worst = 0.0
                for r in range(len(use)):
                    worst = max(worst, use[r])
                more += 1e-6 * worst
                rows[m, v] -= 1
                if more < best:
                    best, chosen = more, m
            rows[chosen, v] += 1
            left[v] -= 1


@kernel
def deal(packing: Packing, kinds: Ints) -> Ints:
    """Contents in proportion to the speed of the machines, whatever is exceeded, [D, N]."""
    n, d = len(packing.instructions), len(kinds)
    rows = np.zeros((d, n), np.int32)
    for v in range(n):
        total = 0.0
        for m in range(d):
            if packing.allowed[kinds[m], v]:
                total += packing.capacity[kinds[m], 0]
        reached, dealt = 0.0, 0
        for m in range(d):
            if packing.allowed[kinds[m], v]:
                reached += packing.capacity[kinds[m], 0]
                upto = int(packing.parallelism[v] * reached / total + 0.5)
                rows[m, v] = upto - dealt
                dealt = upto
        if total == 0.0:
            rows[0, v] = packing.parallelism[v]
    return rows
