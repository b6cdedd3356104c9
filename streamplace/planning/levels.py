"""Levels: vectors of parallelisms to try on given machines."""

from collections.abc import Iterator, Sequence
from math import inf

import numpy as np

from streamplace.model.arrays import Ints, Longs
from streamplace.planning.cuts import least_parallelism
from streamplace.planning.demand import ALL_TO_ALL, Demand, connected
from streamplace.planning.offers import Catalogue
from streamplace.planning.shares import choices
from streamplace.planning.slots import slot_groups, slots_of

FINEST = 8
"""Largest multiple of the parallelism that the slowest core requires."""
MOST = 4096
MOST_STREAMS = 5_000_000
"""Most streams between subtasks in a plan."""


def parallelisms(demand: Demand, catalogue: Catalogue, counts: Sequence[int]) -> Iterator[Ints]:
    """Vectors of parallelisms, fewest subtasks first.

    The first is the least that the slowest core allows, as in DS2. The next have at least one
    subtask of each operator per machine, then smaller and smaller subtasks; if operators share
    slots, the last has one subtask per slot. Each vector comes first with equal parallelism along
    chains, so that subtasks are connected one to one. Vectors that need too many slots are skipped.
    """
    if demand.fixed:
        yield demand.most
        return
    machines = sum(counts)
    least = _least(demand, catalogue, counts)
    tried: set[bytes] = set()
    chains = one_to_one(demand)
    groups, slots = slot_groups(demand, catalogue), _slots(catalogue, counts)
    most = max(1, slots - groups.max()) if catalogue.slot_sharing else inf
    levels = [(1, 1), (1, machines), (2, 1), (2, 2 * machines), (4, 1), (FINEST, 1)]
    for factor, floor in [*levels, (1, most)] if most < MOST else levels:
        for together in (chains, demand.tied):
            wanted = np.maximum(least, np.minimum(np.maximum(least * factor, floor), most))
            vector = _raised(demand, wanted.astype(np.int64), together, most)
            fits = slots_of(groups, vector[None])[0] <= slots
            if fits and vector.tobytes() not in tried and _streams(demand, vector) <= MOST_STREAMS:
                tried.add(vector.tobytes())
                yield vector


def _slots(catalogue: Catalogue, counts: Sequence[int]) -> float:
    """Slots of these numbers of machines together."""
    return sum(offer.slots * n for offer, n in zip(catalogue.offers, counts, strict=True) if n)


def _streams(demand: Demand, vector: Ints) -> float:
    sender, receiver = vector[demand.source], vector[demand.target]
    return float((sender.astype(np.float64) * receiver).sum())


def least_parallelisms(demand: Demand, catalogue: Catalogue, counts: Sequence[int]) -> Ints:
    """Return the least parallelisms that the slowest core of these machines allows, [N]."""
    if demand.fixed:
        return demand.most
    return _raised(demand, _least(demand, catalogue, counts), demand.tied, inf)


def _least(demand: Demand, catalogue: Catalogue, counts: Sequence[int]) -> Longs:
    offers = [o for o, count in zip(catalogue.offers, counts, strict=True) if count]
    least = np.ones(demand.n_operators, np.int64)
    for v, required in enumerate(demand.requires):
        speeds = sorted(o.core_speed for o in offers if required <= o.tags)
        tries = (least_parallelism(demand, v, speed) for speed in speeds)
        room = max((float(o.memory) for o in offers if required <= o.tags), default=np.inf)
        stored = int(np.ceil(demand.memory[v] / room * (1 - 1e-9)))
        least[v] = max(next((p for p in tries if p), 1), stored)
    return least


def one_to_one(demand: Demand) -> Ints:
    """Group of operators connected one to one at equal parallelism, numbered, [N]."""
    direct = demand.joined != ALL_TO_ALL
    return connected(demand.n_operators, demand.source[direct], demand.target[direct])


def _raised(demand: Demand, wanted: Longs, together: Ints, most: float) -> Ints:
    """Round parallelisms up to the next that differ in some share, equal within a group.

    If the next one is above ``most``, take the largest up to ``most``.
    """
    vector = np.ones(demand.n_operators, np.int64)
    for v in range(demand.n_operators):
        target = int(min(wanted[v], MOST))
        possible = choices(demand, v, max(2 * target, 1))
        vector[v] = next((p for p in possible if p >= target), possible[-1])
        if vector[v] > most >= target and not demand.keeps[v]:
            vector[v] = max(p for p in possible if p <= most)
    highest = np.zeros(together.max() + 1, np.int64)
    np.maximum.at(highest, together, vector)
    vector = highest[together]
    return np.where(demand.most > 0, np.minimum(vector, demand.most), vector).astype(np.int32)
