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
from streamsim import _core

from streamplace.model.arrays import Bools, Floats, Ints
from streamplace.placers.meter import ENDLESS, Remaining
from streamplace.planning.demand import Demand, connected, shares_of, slot_groups
from streamplace.planning.offers import Catalogue

CPU, CORE, MEMORY, EGRESS, INGRESS, SLOTS = range(6)
RESOURCES = ("cpu", "core", "memory", "egress", "ingress", "slots")


class Packing(NamedTuple):
    """Operators at given parallelisms, and types of machines, as arrays."""

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
    unit: Ints  # [N] operators of one number are colocated
    part: Ints  # [N] subtasks that are placed together, beside those of the unit
    rival_start: Ints  # [N + 1] where the rivals of each operator begin; empty if there are none
    rival: Ints  # operators that must not share a machine with an operator
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
    per_tuple, per_bit = catalogue.handling
    rival_start, rival = demand.rivals()
    bundle = connected(demand.n_operators, demand.source[forward], demand.target[forward])
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
        bundle=demand.together(bundle),
        slot_group=slot_groups(demand, catalogue),
        unit=demand.unit,
        part=demand.parts(parallelism).astype(np.int32),
        rival_start=rival_start,
        rival=rival,
        parallelism=parallelism.astype(np.int32),
        most=most,
        least=least,
        stored=stored,
        capacity=capacities(catalogue),
        per_tuple=per_tuple,
        per_bit=per_bit,
        allowed=allowed(demand, catalogue),
        network=catalogue.network_matters,
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


@dataclass(frozen=True, slots=True, eq=False)
class PackedMachines:
    """Machines and the subtasks on them."""

    kinds: Ints  # [D] type of each machine
    parallelism: Ints  # [N] subtasks of each operator
    rows: Ints  # [D, N] subtasks of each operator on each machine
    # [D] index of the cluster's device for each machine; None if machines are bought.
    devices: Ints | None = None

    def of(self, chosen: Bools) -> "PackedMachines":
        """Return some of the machines; the others are idle."""
        devices = None if self.devices is None else self.devices[chosen]
        return PackedMachines(self.kinds[chosen], self.parallelism, self.rows[chosen], devices)

    def counts(self, n_types: int) -> tuple[int, ...]:
        """Number of machines of each type."""
        return tuple(np.bincount(self.kinds, minlength=n_types).tolist())


def renumbered(packed: PackedMachines, types: Catalogue, others: Catalogue) -> PackedMachines:
    """Return the same machines, with types numbered as in another catalogue."""
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
    return packed.of(in_use)


def is_whole(packing: Packing, rows: Ints) -> Bools:
    """Whether each machine has equally many parts of all operators of a unit, [D]."""
    parts, rest = np.divmod(rows, packing.part)
    first = np.unique(packing.unit, return_index=True)[1][packing.unit]
    return np.asarray(((rest == 0) & (parts == parts[:, first])).all(axis=1))


def uses(packing: Packing, kinds: Ints, rows: Ints) -> Floats:
    """Use of every resource of every machine, as shares of capacity, [D, 6]."""
    return _core.machine_uses(packing, kinds, rows)


def anneal(
    packing: Packing, kinds: Ints, rows: Ints, seed: int, steps: int, remaining: Remaining
) -> tuple[Ints, float]:
    """Return the contents [D, N] with the least excess found, and their excess."""
    return _core.anneal_machines(packing, kinds, rows, seed % 2**64, steps, remaining)


def first_fit(packing: Packing, kinds: Ints) -> tuple[Ints, Ints]:
    """Fill machines of these types in turn; return contents [D, N] and unplaced subtasks [N]."""
    filled = _core.first_fit_machines(packing, kinds, ENDLESS)
    assert filled is not None  # nothing stops it
    return filled


def first_fit_until(
    packing: Packing, kinds: Ints, remaining: Remaining
) -> tuple[Ints, Ints] | None:
    """Machines by first fit; None if time runs out, to the end if none is there at the start."""
    return _core.first_fit_machines(packing, kinds, remaining if remaining.seconds else ENDLESS)


def force(packing: Packing, kinds: Ints, rows: Ints, unplaced: Ints, remaining: Remaining) -> None:
    """Place unplaced subtasks where they exceed resources least, while there is time."""
    if unplaced.any():
        rows[:], unplaced[:] = _core.force_subtasks(packing, kinds, rows, unplaced, remaining)


def deal(packing: Packing, kinds: Ints) -> Ints:
    """Contents in proportion to the speed of machines, even if resources are exceeded, [D, N]."""
    return _core.deal_subtasks(packing, kinds)
