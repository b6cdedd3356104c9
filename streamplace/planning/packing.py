"""Packing: the resources that the subtasks on a machine use, and algorithms that pack subtasks.

With shuffles that send from every subtask to every subtask, the traffic of a machine depends on its
own contents only: of a stream that carries T from u to v it sends T · share(u) · (1 − share(v)).
Of a forward stream it sends only the tuples of subtasks without a partner on the machine.

First fit by dot product gives each machine the subtask whose needs have the largest dot product
with its free resources, until none fits (Panigrahy and others 2011). Subtasks that fit nowhere go
where they exceed resources least; then simulated annealing moves and swaps subtasks until no
resource is exceeded.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from streamsim.array_copies import copy_rows
from streamsim.equation import handling_load
from streamsim.jit import inlined_kernel, kernel

from streamplace.model.arrays import Bools, Floats, Ints, Words
from streamplace.model.devices import SLACK
from streamplace.placers.anneal.walk import accepted, choose, uniform
from streamplace.planning.demand import Demand, connected, shares_of, slot_groups
from streamplace.planning.offers import Catalogue

CPU, CORE, MEMORY, EGRESS, INGRESS, SLOTS = range(6)
RESOURCES = ("cpu", "core", "memory", "egress", "ingress", "slots")
N_RESOURCES = len(RESOURCES)
FORBIDDEN = 1e6
"""Use of a core by an operator on a machine without its tags: far more than any real excess."""
HOT, COLD = 0.05, 1e-4
"""Temperature at the start and at the end, in units of excess."""
SWAPS = 0.4
"""Share of the moves that swap two subtasks."""
BUNDLES = 0.5
"""Share of the moves that also move the subtasks of the same forward bundle."""
EXCEEDED = 0.7
"""Share of the moves that start at an overloaded machine."""


class Packing(NamedTuple):
    """Operators at given parallelisms, and types of machines, as arrays for kernels."""

    instructions: Floats  # [N] per second, those for messages included
    cores: Floats  # [N] cores that one subtask uses at most
    at_max_rate: Floats  # [N] subtasks at their largest rate, if tuples have equal parts
    memory: Floats  # [N] bytes
    source: Ints  # [M]
    target: Ints  # [M]
    tuples: Floats  # [M] per second
    bits: Floats  # [M] per second
    forward: Bools  # [M]
    bundle: Ints  # [N] operators of one number are joined by forward streams
    slot_group: Ints  # [N] operators of one number share slots
    by_slot_group: Ints  # [N] operators in the order of these numbers
    parallelism: Ints  # [N]
    most: Floats  # [N, P + 1]
    least: Floats  # [N, P + 1]
    stored: Floats  # [N, P + 1] largest share of the memory of n subtasks
    capacity: Floats  # [T, 6] of every resource; that of a core is its speed
    per_tuple: Floats  # [T] instructions per remote tuple, at each end
    per_bit: Floats  # [T] instructions per bit of a remote tuple, at each end
    allowed: Bools  # [T, N] whether a machine has the tags that an operator requires
    network: bool  # whether remote tuples cost anything


def packing_of(demand: Demand, catalogue: Catalogue, parallelism: Ints) -> Packing:
    """Arrays of a demand at given parallelisms."""
    most, least, stored = shares_of(demand, parallelism)
    forward = demand.one_to_one(parallelism)
    capacity = capacities(catalogue)
    groups = slot_groups(demand, catalogue)
    return Packing(
        demand.instructions + demand.of_messages(parallelism),
        demand.graph.operators.cores,
        demand.at_max_rate,
        demand.memory,
        demand.source,
        demand.target,
        demand.tuples,
        demand.bits,
        forward,
        connected(demand.n_operators, demand.source[forward], demand.target[forward]),
        groups,
        np.argsort(groups, kind="stable").astype(np.int32),
        parallelism.astype(np.int32),
        most,
        least,
        stored,
        capacity,
        *catalogue.handling,
        allowed(demand, catalogue),
        catalogue.network_matters,
    )


def capacities(catalogue: Catalogue) -> Floats:
    """Capacity of a machine of each type, [T, 6]; the capacity of a core is its speed."""
    rows = [
        (o.instructions, o.core_speed, o.memory, o.egress, o.ingress, o.slots)
        for o in catalogue.offers
    ]
    return np.array(rows, np.float64)


def allowed(demand: Demand, catalogue: Catalogue) -> Bools:
    """Whether a machine of each type has the tags that each operator requires, [T, N]."""
    return np.array(
        [[tags <= offer.tags for tags in demand.requires] for offer in catalogue.offers], np.bool_
    )


@inlined_kernel
def fill(packing: Packing, kind: int, row: Ints, use: Floats) -> None:
    """Compute the share of each resource that contents use on a machine of a type.

    ``row`` counts the subtasks of each operator, ``use`` receives the six shares.
    """
    use[:] = 0.0
    _add_subtasks(packing, kind, row, use)
    use[SLOTS] = _slots(packing, row)
    if packing.network:
        _add_streams(packing, kind, row, use)
    for r in range(len(use)):
        use[r] /= packing.capacity[kind, r]


@inlined_kernel
def _add_subtasks(packing: Packing, kind: int, row: Ints, use: Floats) -> None:
    for v in range(len(row)):
        n = row[v]
        if n == 0:
            continue
        use[CPU] += packing.instructions[v] * packing.most[v, n]
        use[MEMORY] += packing.memory[v] * packing.stored[v, n]
        waiting = packing.at_max_rate[v] * packing.capacity[kind, CORE]
        alone = max(packing.instructions[v] / packing.cores[v], waiting)
        use[CORE] = max(use[CORE], alone * packing.most[v, 1])
        if not packing.allowed[kind, v]:
            use[CORE] = FORBIDDEN * packing.capacity[kind, CORE]


@inlined_kernel
def _slots(packing: Packing, row: Ints) -> int:
    """Slots in use: for each group, the number of subtasks of its largest operator."""
    total, largest, group = 0, 0, -1
    for v in packing.by_slot_group:
        if packing.slot_group[v] != group:
            total, largest, group = total + largest, 0, packing.slot_group[v]
        largest = max(largest, row[v])
    return total + largest


@inlined_kernel
def _add_streams(packing: Packing, kind: int, row: Ints, use: Floats) -> None:
    for e in range(len(packing.source)):
        u, v = packing.source[e], packing.target[e]
        a, b = row[u], row[v]
        if a == 0 and b == 0:
            continue
        if packing.forward[e]:
            sent = packing.most[u, max(0, a - b)]
            received = packing.most[v, max(0, b - a)]
        else:
            sent = packing.most[u, a] * (1.0 - packing.least[v, b])
            received = packing.most[v, b] * (1.0 - packing.least[u, a])
        per_tuple, per_bit = packing.per_tuple[kind], packing.per_bit[kind]
        handling = handling_load(packing.tuples[e], packing.bits[e], per_tuple, per_bit, 1.0)
        use[CPU] += handling * (sent + received)
        use[EGRESS] += packing.bits[e] * sent
        use[INGRESS] += packing.bits[e] * received


@inlined_kernel
def excess(packing: Packing, kind: int, row: Ints, use: Floats) -> float:
    """Sum over resources of the share by which contents exceed the machine's capacity."""
    fill(packing, kind, row, use)
    total = 0.0
    for r in range(len(use)):
        over = use[r] - 1.0
        if over > SLACK:
            total += over
    return total


@dataclass(frozen=True, slots=True, eq=False)
class PackedMachines:
    """Machines and the subtasks on them."""

    kinds: Ints  # [D] type of each machine
    parallelism: Ints  # [N] subtasks of each operator
    rows: Ints  # [D, N] subtasks of each operator on each machine
    # [D] index of the cluster's device for each machine; None if machines are bought.
    devices: Ints | None = None

    def counts(self, n_types: int) -> tuple[int, ...]:
        """Number of machines of each type."""
        return tuple(np.bincount(self.kinds, minlength=n_types).tolist())


Accept = Callable[[PackedMachines], PackedMachines | None]
"""Returns packed machines that carry the rate, changed if needed; None if they do not."""


def machine_kinds(catalogue: Catalogue, counts: Sequence[int]) -> Ints:
    """Type of each machine, the fastest first, [D]."""
    order = sorted(range(len(counts)), key=lambda t: -catalogue.offers[t].instructions)
    return np.repeat(order, [counts[t] for t in order]).astype(np.int32)


def without_idle(packed: PackedMachines, catalogue: Catalogue) -> PackedMachines:
    """Remove machines without subtasks, except those that ``at_least`` requires."""
    in_use: Bools = np.asarray(packed.rows.any(axis=1))
    for t, offer in enumerate(catalogue.offers):
        if offer.at_least:
            same = np.flatnonzero(packed.kinds == t)
            idle = same[~in_use[same]]
            in_use[idle[: max(0, offer.at_least - int(in_use[same].sum()))]] = True
    devices = None if packed.devices is None else packed.devices[in_use]
    return PackedMachines(packed.kinds[in_use], packed.parallelism, packed.rows[in_use], devices)


def largest_use(packing: Packing, packed: PackedMachines) -> Floats:
    """Share of every resource of every machine in use, [D, 6]."""
    return np.asarray(uses(packing, packed.kinds, packed.rows))


@kernel
def anneal(
    packing: Packing, kinds: Ints, rows: Ints, random: Words, steps: int
) -> tuple[Ints, float]:
    """Return the contents [D, N] with the least excess found, and their excess."""
    rows = rows.copy()  # the caller's contents stay unchanged
    d = len(rows)
    use, over = np.empty(N_RESOURCES), np.empty(d)
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
    shares = np.empty((len(kinds), N_RESOURCES))
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
    """Choose one of the operators with subtasks on the machine; -1 if there is none."""
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


@kernel
def first_fit(packing: Packing, kinds: Ints) -> tuple[Ints, Ints]:
    """Fill machines of these types in turn; return contents [D, N] and unplaced subtasks [N]."""
    n, d = len(packing.instructions), len(kinds)
    rows, left = np.zeros((d, n), np.int32), packing.parallelism.copy()
    use, after = np.empty(N_RESOURCES), np.empty(N_RESOURCES)
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
    use, more = np.empty(N_RESOURCES), np.empty(len(kinds))
    for v in range(len(left)):
        changed = -1  # of all machines, or of the one that got the last subtask
        while left[v] > 0:
            best, chosen = np.inf, 0
            for m in range(len(kinds)):
                if changed < 0 or m == changed:
                    more[m] = _more_excess(packing, kinds[m], rows[m], v, use)
                if more[m] < best:
                    best, chosen = more[m], m
            rows[chosen, v] += 1
            left[v] -= 1
            changed = chosen


@inlined_kernel
def _more_excess(packing: Packing, kind: int, row: Ints, v: int, use: Floats) -> float:
    """Excess that a further subtask adds to a machine; the fullest resource decides ties."""
    before = excess(packing, kind, row, use)
    row[v] += 1
    more = excess(packing, kind, row, use) - before
    row[v] -= 1
    worst = 0.0
    for r in range(len(use)):
        worst = max(worst, use[r])
    return more + 1e-6 * worst


@kernel
def deal(packing: Packing, kinds: Ints) -> Ints:
    """Contents in proportion to the speed of machines, even if resources are exceeded, [D, N]."""
    n, d = len(packing.instructions), len(kinds)
    rows = np.zeros((d, n), np.int32)
    for v in range(n):
        total = 0.0
        for m in range(d):
            if packing.allowed[kinds[m], v]:
                total += packing.capacity[kinds[m], CPU]
        reached, dealt = 0.0, 0
        for m in range(d):
            if packing.allowed[kinds[m], v]:
                reached += packing.capacity[kinds[m], CPU]
                upto = int(packing.parallelism[v] * reached / total + 0.5)
                rows[m, v] = upto - dealt
                dealt = upto
        if total == 0.0:
            rows[0, v] = packing.parallelism[v]
    return rows
