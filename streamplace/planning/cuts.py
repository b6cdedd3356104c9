"""Cuts: inequalities that the numbers of machines of every plan satisfy.

Let π(v) be a price for each operator, and z(t) the largest worth Σ π(v) · share(v) of the shares
that fit on one machine of type t. The machines of a plan hold every operator once, so

    Σ over types of  z(t) · x(t)  ≥  Σ over operators of  π(v)

for the numbers x of machines. Every bound of a plan's cost rests on such cuts.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from streamplace.model.arrays import Bools, Floats, Longs
from streamplace.planning.contents import CPU, MEMORY, SLOTS, allowed, capacities
from streamplace.planning.demand import Demand
from streamplace.planning.offers import Catalogue
from streamplace.planning.subtasks import least_parallelism, slot_groups, slots_of

ROOM = 1 + Fraction(2, 10**9)
"""Factor by which cuts enlarge capacities: more than plans may exceed them by."""
LARGEST_PIECES = 4
"""Largest k of the dual feasible functions that are tried."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Σ worth(t) · x(t) ≥ demand, in exact fractions."""

    worth: tuple[Fraction, ...]  # largest worth of one machine of each type, z
    demand: Fraction  # worth of all operators together
    # Relaxation that made the cut: "cpu", "memory", "slots", "items", "network" or "contents";
    # "machines" if no resource is needed, so that there is a machine all the same.
    origin: str

    def holds(self, counts: tuple[int, ...]) -> bool:
        """Whether numbers of machines satisfy the cut."""
        return sum(z * x for z, x in zip(self.worth, counts, strict=True)) >= self.demand


class ResourceNeed(NamedTuple):
    """Total need of a resource by the operators that require some tags."""

    tags: frozenset[str]
    rows: Bools  # [N] whether each operator is one of them
    runs: Bools  # [T] whether a machine of each type may run any of them
    origin: str  # "cpu", "memory" or "slots"
    resource: int
    total: Fraction


def resource_needs(demand: Demand, catalogue: Catalogue) -> Iterator[ResourceNeed]:
    """Needs of each resource by all operators, and by those that require the same tags."""
    may_run = allowed(demand, catalogue)
    for tags in sorted({frozenset[str](), *demand.requires}, key=sorted):
        rows = np.array([tags <= required for required in demand.requires])
        runs: Bools = np.asarray(may_run[:, rows].any(axis=1))
        for origin, resource, total in _totals(demand, catalogue, rows):
            yield ResourceNeed(tags, rows, runs, origin, resource, total)


def resource_cuts(demand: Demand, catalogue: Catalogue) -> Iterator[Cut]:
    """Cuts of each resource alone, for all operators and for those that require the same tags."""
    capacity, needed = capacities(catalogue), False
    for need in resource_needs(demand, catalogue):
        room = capacity[:, need.resource]
        if need.total > 0 and np.isfinite(room[need.runs]).all():
            worth = [
                Fraction(float(c)) if r else Fraction(0)
                for c, r in zip(room, need.runs, strict=True)
            ]
            needed = True
            yield Cut(tuple(ROOM * z for z in worth), need.total, need.origin)
    if not needed:
        yield Cut((Fraction(1),) * len(catalogue.offers), Fraction(1), "machines")


def _totals(
    demand: Demand, catalogue: Catalogue, rows: Bools
) -> Iterator[tuple[str, int, Fraction]]:
    """Total need of each resource by some of the operators."""
    yield "cpu", CPU, _sum(demand.instructions[rows].tolist())
    yield "memory", MEMORY, _sum(demand.memory[rows].tolist())
    least = np.where(rows, least_subtasks(demand, catalogue), 0)
    slots = slots_of(slot_groups(demand, catalogue), least[None])
    yield "slots", SLOTS, Fraction(int(slots[0]))


def _sum(values: Sequence[float]) -> Fraction:
    return sum(map(Fraction, values), Fraction(0))


def item_cuts(demand: Demand, catalogue: Catalogue) -> Iterator[Cut]:
    """Cuts by dual feasible functions, for items that cannot be divided.

    The function of k pieces (Fekete and Schepers 2001) maps a size x to itself where (k + 1) · x is
    an integer, and to ⌊(k + 1) · x⌋ / k elsewhere, so that items that fit into one machine are
    worth at most 1.
    """
    capacity = capacities(catalogue)
    for origin, resource, need, pieces_of in (
        ("cpu", CPU, demand.least_instructions, demand.pieces),
        ("memory", MEMORY, demand.memory, demand.memory_pieces),
    ):
        room = capacity[:, resource]
        largest = float(room.max())
        if not np.isfinite(largest):
            continue
        whole = Fraction(largest) * ROOM
        items = list(_items(need, pieces_of, whole))
        for pieces in range(1, LARGEST_PIECES + 1):
            worths = [(n, size, _dual_feasible(size, pieces)) for n, size in items]
            total = sum((n * worth for n, _, worth in worths), Fraction(0))
            best = max((worth / size for _, size, worth in worths), default=Fraction(0))
            if total > 0 and best > 0:
                ratio = [Fraction(float(c)) * ROOM / whole for c in room]
                worth = tuple(min(Fraction(1), best * r) for r in ratio)
                yield Cut(worth, total, f"{origin} items")


def _items(
    need: Floats, pieces_of: Callable[[int], int], whole: Fraction
) -> Iterator[tuple[int, Fraction]]:
    """Number of equal pieces of each operator, and their size as a share of a machine."""
    for v in range(len(need)):
        groups = pieces_of(v)
        size = Fraction(float(need[v])) / whole / groups if groups else Fraction(0)
        if 0 < size <= 1:
            yield groups, size


def _dual_feasible(size: Fraction, pieces: int) -> Fraction:
    scaled = size * (pieces + 1)
    return size if scaled.denominator == 1 else Fraction(int(scaled), pieces)


def least_subtasks(demand: Demand, catalogue: Catalogue) -> Longs:
    """Least parallelism at which the fastest core runs each operator's subtasks, [N]; 0 if none."""
    may_run = allowed(demand, catalogue)
    speed = capacities(catalogue)[:, 1]
    fastest = np.where(may_run, speed[:, None], 0.0).max(axis=0)
    least = [least_parallelism(demand, v, float(fastest[v])) for v in range(len(fastest))]
    return np.array(least, np.int64)
