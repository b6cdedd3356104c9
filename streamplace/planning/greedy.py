"""First fit by dot product: fills machines one after the other.

Each machine receives the subtask whose needs have the largest dot product with its free resources,
until none fits (Panigrahy and others 2011).
"""

import numpy as np
from streamsim.jit import inlined_kernel, kernel

from streamplace.model.arrays import Floats, Ints
from streamplace.planning.contents import (
    CPU,
    EGRESS,
    INGRESS,
    MEMORY,
    SLACK,
    SLOTS,
    Packing,
    excess,
    fill,
)


@kernel
def first_fit(packing: Packing, kinds: Ints) -> tuple[Ints, Ints]:
    """Fill machines of these types in turn; return contents [D, N] and unplaced subtasks [N]."""
    n, d = len(packing.instructions), len(kinds)
    rows, left = np.zeros((d, n), np.int32), packing.parallelism.copy()
    use, after = np.empty(6), np.empty(6)
    for m in range(d):
        if left.max() == 0:
            break
        fill(packing, kinds[m], rows[m], use)
        while True:
            v, together = _best_item(packing, kinds[m], rows[m], left, use, after)
            if v < 0:
                break
            _add(packing, rows[m], left, v, together, 1)
            fill(packing, kinds[m], rows[m], use)
    return rows, left


@inlined_kernel
def _best_item(
    packing: Packing, kind: int, row: Ints, left: Ints, use: Floats, after: Floats
) -> tuple[int, bool]:
    """Operator whose subtask fits and scores highest, alone or with its bundle; -1 for none."""
    best, chosen, bundled = -np.inf, -1, False
    for together in (True, False):
        for v in range(len(left)):
            if left[v] == 0 or (together and not _has_bundle(packing, left, v)):
                continue
            need = _add(packing, row, left, v, together, 1)
            fill(packing, kind, row, after)
            _add(packing, row, left, v, together, -1)
            score = _score(use, after, need / packing.capacity[kind, CPU])
            if score > best:
                best, chosen, bundled = score, v, together
    return chosen, bundled


@inlined_kernel
def _has_bundle(packing: Packing, left: Ints, v: int) -> bool:
    """Whether v is the first operator of a bundle whose operators all have unplaced subtasks."""
    several = False
    for x in range(len(left)):
        if x != v and packing.bundle[x] == packing.bundle[v]:
            if x < v or left[x] == 0:
                return False
            several = True
    return several


@inlined_kernel
def _score(use: Floats, after: Floats, need: float) -> float:
    """Dot product of an item's needs and the machine's free resources, less its traffic."""
    score = need * (1.0 - min(1.0, use[CPU])) - (after[CPU] - use[CPU] - need)
    for r in range(len(use)):
        if after[r] > 1.0 + SLACK:
            return -np.inf
        if r in (MEMORY, SLOTS):
            score += (after[r] - use[r]) * (1.0 - min(1.0, use[r]))
        elif r in (EGRESS, INGRESS):
            score -= after[r] - use[r]
    return score


@inlined_kernel
def _add(packing: Packing, row: Ints, left: Ints, v: int, together: bool, sign: int) -> float:
    """Add a subtask, or one of each operator of its bundle; with sign −1, remove them again.

    Returns the instructions per second that they need.
    """
    need = 0.0
    for x in range(len(row)):
        if x == v or (together and packing.bundle[x] == packing.bundle[v]):
            row[x] += sign
            left[x] -= sign
            need += packing.instructions[x] * packing.most[x, 1]
    return need


@kernel
def force(packing: Packing, kinds: Ints, rows: Ints, left: Ints) -> None:
    """Place each remaining subtask where it exceeds resources least."""
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
    """Contents in proportion to the speed of machines, even if resources are exceeded, [D, N]."""
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
