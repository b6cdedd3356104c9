"""Parallelism: the least that the cores allow, as in DS2, and the vectors that the search tries.

Smaller subtasks may fit where larger ones do not.
"""

from collections.abc import Callable, Iterator, Sequence
from math import gcd, inf

import numpy as np

from streamplace.model.arrays import Ints, Longs
from streamplace.model.devices import SLACK
from streamplace.model.key_groups import useful_parallelisms
from streamplace.model.operators import MAX_SUBTASKS
from streamplace.planning.demand import (
    ALL_TO_ALL,
    Demand,
    charged_need,
    connected,
    least_need,
    slot_groups,
    slots_of,
    subtask_speeds,
)
from streamplace.planning.offers import Catalogue
from streamplace.planning.packing import allowed

MAX_RAISED = 4096
"""Parallelism up to which more subtasks than necessary are tried."""
MAX_STREAMS = 5_000_000
"""Most streams between subtasks in plans that the search tries."""


def choices(demand: Demand, v: int, highest: int) -> list[int]:
    """Return the parallelisms of operator v, up to ``highest``, that differ in some share."""
    if demand.keeps[v]:
        return [int(demand.parallelism_limit[v])]
    limit = min(highest, int(demand.parallelism_limit[v]) or highest)
    useful = {p for groups in demand.group_counts[v] for p in useful_parallelisms(groups, limit)}
    return sorted(map(int, useful))


def least_parallelism(
    demand: Demand,
    v: int,
    speed: float,
    need_of: Callable[[Demand, int, int, float], float] = least_need,
) -> int:
    """Return the least parallelism at which a speed suffices for the busiest subtask; 0 if none."""

    def runs(p: int) -> bool:
        return need_of(demand, v, p, speed) <= speed * (1 + SLACK)

    limit = int(demand.parallelism_limit[v])
    if demand.keeps[v]:
        return limit if runs(limit) else 0
    need = max(float(demand.instructions[v]), speed * float(demand.at_max_rate[v]))
    if need <= speed:
        return 1
    least = int(np.ceil(need / speed * (1 - 2 * SLACK))) if speed > 0 else 0
    if not least or least > (limit or MAX_SUBTASKS):
        return 0
    if runs(least):
        return least
    highest = limit or min(4 * least, MAX_SUBTASKS)
    # Constant loads differ at every parallelism, tuples only if the shares of key groups do.
    more = range(least + 1, highest + 1) if demand.constant[v] else choices(demand, v, highest)
    return next((p for p in more if p > least and runs(p)), 0)


def parallelisms(demand: Demand, catalogue: Catalogue, counts: Sequence[int]) -> Iterator[Ints]:
    """Vectors of parallelisms, fewest subtasks first.

    The first vector is the least that the slowest core allows, as in DS2. The next have at least
    one subtask of each operator per machine, then smaller and smaller subtasks; if operators share
    slots, the next has one subtask per slot. The last are the least that each faster core allows.
    Each vector comes first with equal parallelism along chains, so that subtasks are connected one
    to one. Vectors that need too many slots are skipped.
    """
    if demand.fixed:
        yield demand.parallelism_limit
        return
    tried: set[bytes] = set()
    chains, tied = demand.together(chains_of(demand)), demand.together(demand.tied)
    groups, slots = slot_groups(demand, catalogue), catalogue.slots(counts)
    highest = max(1, slots - groups.max()) if catalogue.slot_sharing else inf
    for wanted in _wanted(demand, catalogue, counts, highest):
        for together in (chains, tied):
            vector = _raised(demand, wanted, together, highest)
            fits = slots_of(groups, vector[None])[0] <= slots
            if (
                fits
                and vector.tobytes() not in tried
                and streams_between(demand, vector) <= MAX_STREAMS
            ):
                tried.add(vector.tobytes())
                yield vector


def _wanted(
    demand: Demand, catalogue: Catalogue, counts: Sequence[int], highest: float
) -> Iterator[Longs]:
    """Parallelisms to round up, for the slowest cores in use first, then for faster cores alone."""
    machines, limit = sum(counts), min(highest, MAX_RAISED)
    speeds = sorted({o.core_speed for o, n in zip(catalogue.offers, counts, strict=True) if n})
    least = _least_of_each(demand, catalogue, counts)
    levels = [(1, 1), (1, machines), (2, 1), (2, 2 * machines), (4, 1), (8, 1)]
    for factor, floor in [*levels, (1, highest)] if highest < MAX_RAISED else levels:
        targets = np.maximum(least, np.minimum(np.maximum(least * factor, floor), limit))
        yield targets.astype(np.int64)
    for speed in speeds[1:]:
        yield _least_of_each(demand, catalogue, counts, speed)


def streams_between(demand: Demand, vector: Ints) -> float:
    """Number of streams between subtasks at these parallelisms."""
    sender, receiver = vector[demand.source].astype(np.float64), vector[demand.target]
    return float(np.where(demand.one_to_one(vector), sender, sender * receiver).sum())


def parallelism_on_fastest(
    demand: Demand, catalogue: Catalogue, counts: Sequence[int] | None = None
) -> Longs:
    """Least parallelism at which the fastest machine runs each operator's subtasks, [N]; 0 if none.

    ``counts`` are the numbers of machines of each type; without them, all types count.
    """
    may_run = allowed(demand, catalogue)
    if counts is not None:
        may_run &= np.array(counts)[:, None] > 0
    fastest = np.where(may_run, subtask_speeds(demand, catalogue), 0.0).max(axis=0)
    least = [least_parallelism(demand, v, float(fastest[v])) for v in range(len(fastest))]
    return np.asarray(np.where(may_run.any(axis=0), least, 0), np.int64)


def parallelism_on_slowest(demand: Demand, catalogue: Catalogue, counts: Sequence[int]) -> Ints:
    """Return the least parallelisms that the slowest core of these machines allows, [N]."""
    if demand.fixed:
        return demand.parallelism_limit
    least = _least_of_each(demand, catalogue, counts)
    return _raised(demand, least, demand.together(demand.tied), inf)


def _least_of_each(
    demand: Demand, catalogue: Catalogue, counts: Sequence[int], slowest: float = 0.0
) -> Longs:
    """Least parallelism of each operator on cores of this speed or more, or on any if none is."""
    offers = [(t, o) for t, o in enumerate(catalogue.offers) if counts[t]]
    least, speeds = np.ones(demand.n_operators, np.int64), subtask_speeds(demand, catalogue)
    for v, required in enumerate(demand.requires):
        allowed_offers = [(t, o) for t, o in offers if required <= o.tags]
        fast = [(t, o) for t, o in allowed_offers if o.core_speed >= slowest] or allowed_offers
        tries = (
            least_parallelism(demand, v, speed, charged_need)
            for speed in sorted(float(speeds[t, v]) for t, _ in fast)
        )
        largest_memory = max((float(o.memory) for _, o in allowed_offers), default=np.inf)
        stored = int(np.ceil(demand.memory[v] / largest_memory * (1 - SLACK)))
        least[v] = min(max(next((p for p in tries if p), 1), stored), MAX_SUBTASKS)
    return least


def chains_of(demand: Demand) -> Ints:
    """Group of operators connected one to one at equal parallelism, numbered, [N]."""
    direct = demand.joined != ALL_TO_ALL
    return connected(demand.n_operators, demand.source[direct], demand.target[direct])


def _raised(demand: Demand, wanted: Longs, together: Ints, upper: float) -> Ints:
    """Round up to the next parallelism that changes the largest share, equal within a group.

    If the next one is above ``upper``, take the largest up to ``upper``. Joins get one at which
    their inputs are distributed alike.
    """
    limit, vector = demand.parallelism_limit, np.ones(demand.n_operators, np.int64)
    for v in range(demand.n_operators):
        target = int(wanted[v])
        if 0 in demand.group_counts[v] and not demand.keeps[v]:
            vector[v] = min(target, int(limit[v]) or target)  # any parallelism changes the share
            continue
        possible = choices(demand, v, max(2 * target, 1))
        vector[v] = next((p for p in possible if p >= target), possible[-1])
        if vector[v] > upper >= target and not demand.keeps[v]:
            vector[v] = max(p for p in possible if p <= upper)
    highest = np.zeros(together.max() + 1, np.int64)
    np.maximum.at(highest, together, vector)
    for v in np.flatnonzero(demand.graph.operators.fires_all).tolist():
        group = together[v]
        highest[group] = _with_equal_parts(demand.group_counts[v], int(highest[group]))
    vector = highest[together]
    limited = np.where(limit > 0, np.minimum(vector, limit), vector).astype(np.int32)
    return _in_parts(demand, limited) if demand.units else limited


def _in_parts(demand: Demand, vector: Ints) -> Ints:
    """Raise parallelisms to multiples of the lowest of colocated operators, if limits allow that.

    Otherwise gcd(p, q), the number of parts into which they can be divided, may be as low as 1.
    """
    raised = vector.copy()
    for unit in map(list, demand.units):
        lowest = int(raised[unit].min())
        for v in unit:
            group, limit = demand.tied == demand.tied[v], int(demand.parallelism_limit[v])
            times = -(-int(raised[v]) // lowest)
            if limit and lowest * times > limit:
                times = limit // lowest
            if not demand.keeps[v]:
                raised[group] = lowest * times
    same = all(len(np.unique(raised[demand.tied == g])) == 1 for g in np.unique(demand.tied))
    return raised if same else vector


def _with_equal_parts(group_counts: frozenset[int], parallelism: int) -> int:
    """Return the next parallelism at which all numbers of key groups give subtasks equal parts.

    If there is none, or only one number, return the parallelism itself.

    >>> _with_equal_parts(frozenset({0, 128}), 3), _with_equal_parts(frozenset({128}), 3)
    (4, 3)
    """
    common = gcd(*group_counts) if len(group_counts) > 1 else 0
    return next((p for p in range(parallelism, common + 1) if common % p == 0), parallelism)
