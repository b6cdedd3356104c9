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
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from streamsim.array_copies import copy_rows
from streamsim.equation import handling_load
from streamsim.jit import inlined_kernel, kernel
from streamsim.topology import group_by

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
SLICE_CELLS = 2_000_000
"""Cells of contents that moves touch between two readings of the clock."""
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
    operators: Ints  # [N] all of them
    streams: Ints  # [M]


def packing_of(demand: Demand, catalogue: Catalogue, parallelism: Ints) -> Packing:
    """Arrays of a demand at given parallelisms."""
    most, least, stored = shares_of(demand, parallelism)
    forward = demand.one_to_one(parallelism)
    groups = slot_groups(demand, catalogue)
    per_tuple, per_bit = catalogue.handling
    return Packing(
        instructions=demand.instructions + demand.of_messages(parallelism),
        cores=demand.graph.operators.cores,
        at_max_rate=demand.at_max_rate,
        memory=demand.memory,
        source=demand.source,
        target=demand.target,
        tuples=demand.tuples,
        bits=demand.bits,
        forward=forward,
        bundle=connected(demand.n_operators, demand.source[forward], demand.target[forward]),
        slot_group=groups,
        by_slot_group=np.argsort(groups, kind="stable").astype(np.int32),
        parallelism=parallelism.astype(np.int32),
        most=most,
        least=least,
        stored=stored,
        capacity=capacities(catalogue),
        per_tuple=per_tuple,
        per_bit=per_bit,
        allowed=allowed(demand, catalogue),
        network=catalogue.network_matters,
        operators=np.arange(demand.n_operators, dtype=np.int32),
        streams=np.arange(len(demand.source), dtype=np.int32),
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
    _add_loads(packing, kind, row, packing.operators, packing.streams, use)
    use[SLOTS] = _slots(packing, row)
    for r in range(len(use)):
        use[r] /= packing.capacity[kind, r]


@inlined_kernel
def _add_loads(
    packing: Packing, kind: int, row: Ints, operators: Ints, streams: Ints, use: Floats
) -> None:
    """Add what some operators and streams need of a machine with these contents."""
    for v in operators:
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
    if packing.network:
        _add_streams(packing, kind, row, streams, use)


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
def _add_streams(packing: Packing, kind: int, row: Ints, streams: Ints, use: Floats) -> None:
    for e in streams:
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


def renumbered(packed: PackedMachines, types: Catalogue, others: Catalogue) -> PackedMachines:
    """Return the same machines, with the numbers that their types have among other offers."""
    number = {offer.name: t for t, offer in enumerate(others.offers)}
    kinds = [number[types.offers[t].name] for t in packed.kinds.tolist()]
    return replace(packed, kinds=np.array(kinds, np.int32))


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


def anneal(
    packing: Packing, kinds: Ints, rows: Ints, random: Words, steps: int, stop: Callable[[], bool]
) -> tuple[Ints, float]:
    """Return the contents [D, N] with the least excess found until ``stop``, and their excess."""
    rows, best_rows = rows.copy(), rows.copy()  # the caller's contents stay unchanged
    best, warmth, cooling = np.inf, HOT, (COLD / HOT) ** (1.0 / max(1, steps))
    at_once = max(1, SLICE_CELLS // (rows.shape[1] + len(packing.source) + len(rows)))
    while True:
        now = min(steps, at_once)
        state = best, warmth, cooling
        best, warmth = _annealed(packing, kinds, rows, best_rows, random, state, now)
        steps -= now
        if steps == 0 or best == 0 or stop():
            return best_rows, best


@kernel
def _annealed(
    packing: Packing,
    kinds: Ints,
    rows: Ints,
    best_rows: Ints,
    random: Words,
    state: tuple[float, float, float],
    steps: int,
) -> tuple[float, float]:
    """Anneal on from a state: the least excess so far, the temperature and its factor."""
    best, warmth, cooling = state
    d = len(rows)
    use, over = np.empty(N_RESOURCES), np.empty(d)
    moved, back = np.empty(rows.shape[1], np.int32), np.empty(rows.shape[1], np.int32)
    total = _excesses(packing, kinds, rows, over, use)
    best = min(best, total)
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
    return best, warmth


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


class _Items(NamedTuple):
    """What first fit places together, and the streams around it; [I + 1] and their lists."""

    start: Ints
    members: Ints  # operators of item i are members[start[i]:start[i + 1]]
    stream_start: Ints
    around: Ints
    fewest: int  # members of an item that is tried


def _items(packing: Packing, item: Ints, fewest: int) -> _Items:
    """Items of some operators each."""
    n, streams = len(item), len(packing.source)
    tail, head = item[packing.source], item[packing.target]
    ends = np.concatenate((tail, np.where(head == tail, n, head)))  # each stream once
    stream_start, around = group_by(ends.astype(np.int32), n + 1)
    around = (around % max(1, streams)).astype(np.int32)
    return _Items(*group_by(item, n), stream_start, around, fewest)


def first_fit(packing: Packing, kinds: Ints) -> tuple[Ints, Ints]:
    """Fill machines of these types in turn; return contents [D, N] and unplaced subtasks [N]."""
    bundles, alone = _items(packing, packing.bundle, 2), _items(packing, packing.operators, 1)
    return _first_fit(packing, kinds, bundles, alone)


@kernel
def _first_fit(packing: Packing, kinds: Ints, bundles: _Items, alone: _Items) -> tuple[Ints, Ints]:
    n, d = len(packing.instructions), len(kinds)
    rows, left = np.zeros((d, n), np.int32), packing.parallelism.copy()
    use, largest = np.empty((3, N_RESOURCES)), np.zeros(n, np.int32)
    for m in range(d):
        if left.max() == 0:
            break
        largest[:] = 0
        while True:
            fill(packing, kinds[m], rows[m], use[0])
            i, score = _best_item(packing, kinds[m], rows[m], left, bundles, use, largest)
            j, least = _best_item(packing, kinds[m], rows[m], left, alone, use, largest)
            if max(i, j) < 0:
                break
            items, chosen = (alone, j) if i < 0 or (j >= 0 and least > score) else (bundles, i)
            for v in items.members[items.start[chosen] : items.start[chosen + 1]]:
                rows[m, v] += 1
                left[v] -= 1
                group = packing.slot_group[v]
                largest[group] = max(largest[group], rows[m, v])
    return rows, left


@inlined_kernel
def _best_item(
    packing: Packing, kind: int, row: Ints, left: Ints, items: _Items, use: Floats, largest: Ints
) -> tuple[int, float]:
    """Item that fits and scores highest, -1 for none, and its score.

    Each is tried by what it adds to the use, the first of three rows; ``largest`` has the most
    subtasks of an operator by slot group.
    """
    best, chosen = -np.inf, -1
    now, before, after = use[0], use[1], use[2]
    for i in range(len(left)):
        members = items.members[items.start[i] : items.start[i + 1]]
        streams = items.around[items.stream_start[i] : items.stream_start[i + 1]]
        ready, need = len(members) >= items.fewest, 0.0
        for v in members:
            ready &= left[v] > 0
            need += packing.instructions[v] * packing.most[v, 1]
        if not ready:
            continue
        before[:], after[:] = 0.0, 0.0
        _add_loads(packing, kind, row, members, streams, before)
        for v in members:
            row[v] += 1
        _add_loads(packing, kind, row, members, streams, after)
        after[SLOTS] += _more_slots(packing, row, members, largest)
        for v in members:
            row[v] -= 1
        for r in range(N_RESOURCES):
            more = after[r] if r == CORE else after[r] - before[r]
            more /= packing.capacity[kind, r]
            after[r] = max(now[r], more) if r == CORE else now[r] + more
        score = _score(now, after, need / packing.capacity[kind, CPU])
        if score > best:
            best, chosen = score, i
    return chosen, best


@inlined_kernel
def _more_slots(packing: Packing, row: Ints, members: Ints, largest: Ints) -> int:
    """Slot groups whose largest operator has grown by the members."""
    more = 0
    for i in range(len(members)):
        group = packing.slot_group[members[i]]
        grows = row[members[i]] > largest[group]
        for v in members[:i]:
            grows &= packing.slot_group[v] != group or row[v] <= largest[group]
        more += grows
    return more


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


def force(packing: Packing, kinds: Ints, rows: Ints, left: Ints, stop: Callable[[], bool]) -> None:
    """Place the remaining subtasks where they exceed resources least, until ``stop``."""
    for v in np.flatnonzero(left).tolist():
        if stop():
            break
        _force(packing, kinds, rows, left, v)


@kernel
def _force(packing: Packing, kinds: Ints, rows: Ints, left: Ints, v: int) -> None:
    use, more = np.empty(N_RESOURCES), np.empty(len(kinds))
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
