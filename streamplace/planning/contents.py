"""Contents: the resources that the subtasks on one machine use.

With shuffles that send from every subtask to every subtask, the traffic of a machine depends on its
own contents only: of a stream that carries T from u to v it sends T · share(u) · (1 − share(v)).
Of a forward stream it sends only the tuples of subtasks without a partner on the machine.
"""

from typing import NamedTuple

import numpy as np
from streamsim.jit import inlined_kernel

from streamplace.model.arrays import Bools, Floats, Ints
from streamplace.planning.demand import Demand, connected
from streamplace.planning.offers import Catalogue
from streamplace.planning.subtasks import SubtaskShares, shares_of, slot_groups

CPU, CORE, MEMORY, EGRESS, INGRESS, SLOTS = range(6)
RESOURCES = ("cpu", "core", "memory", "egress", "ingress", "slots")
SLACK = 1e-9
"""Share by which a resource may be exceeded, for rounding."""
FORBIDDEN = 1e6


class Packing(NamedTuple):
    """Operators at given parallelisms, and types of machines, as arrays for kernels."""

    instructions: Floats  # [N] per second, those for messages included
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
    shares: SubtaskShares = shares_of(demand, parallelism)
    forward = demand.one_to_one(parallelism)
    capacity = capacities(catalogue)
    groups = slot_groups(demand, catalogue)
    return Packing(
        demand.instructions + demand.of_messages(parallelism),
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
        shares.parallelism,
        shares.most,
        shares.least,
        shares.memory,
        capacity,
        *catalogue.handling,
        allowed(demand, catalogue),
        catalogue.handles or bool(np.isfinite(capacity[:, [EGRESS, INGRESS]]).any()),
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
        alone = max(packing.instructions[v], waiting)
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
            taken = packing.most[v, max(0, b - a)]
        else:
            sent = packing.most[u, a] * (1.0 - packing.least[v, b])
            taken = packing.most[v, b] * (1.0 - packing.least[u, a])
        handling = packing.per_tuple[kind] * packing.tuples[e]
        handling += packing.per_bit[kind] * packing.bits[e]
        use[CPU] += handling * (sent + taken)
        use[EGRESS] += packing.bits[e] * sent
        use[INGRESS] += packing.bits[e] * taken


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
