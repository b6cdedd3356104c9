"""Improve a plan at its cost: fewer subtasks, then the contents that carry the largest rate.

Every subtask takes threads, memory and connections that the model does not count, and costs may be
higher than the graph says. The search for the cheapest machines neglects both: it tries few
parallelisms, with one factor for all operators, and ends as soon as the rate is carried.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np

from streamplace.model.arrays import Bools, Ints
from streamplace.planning.contents import Packing, packing_of
from streamplace.planning.demand import Demand
from streamplace.planning.packed import PackedMachines
from streamplace.planning.problem import PlanProblem
from streamplace.planning.search import least_parallelisms, one_to_one
from streamplace.planning.subtasks import choices

FACTORS = 1, 1.5, 2, 3, 4, 6
"""Multiples of the least parallelism to try; the first that the machines carry is used."""

MOVES = 16_000
"""Moves of each walk."""
MOST_ROOM, PROBES = 1.5, 6
"""Largest multiple of the rate to try, and number of bisection steps."""

Walk = Callable[[Packing, Ints, Ints, int], PackedMachines | None]
"""Moves subtasks between machines until they carry the rate; None where that fails."""


def with_fewer_subtasks(
    problem: PlanProblem,
    packed: PackedMachines,
    walk: Walk,
    stop: Callable[[], bool],
) -> PackedMachines:
    """Return the same machines with as few subtasks as are found before ``stop``."""
    demand, catalogue = problem.demand, problem.catalogue
    if demand.fixed:
        return packed
    least = least_parallelisms(demand, catalogue, packed.counts(len(catalogue.offers)))
    subtasks = math.inf
    while packed.parallelism.sum() < subtasks:
        subtasks = packed.parallelism.sum()
        for members in _together(demand, packed.parallelism):
            for vector in _coarser(demand, packed.parallelism, members, int(least[members].max())):
                if stop():
                    return packed
                rows = merged_rows(packed.rows, packed.parallelism, vector)
                merged = walk(packing_of(demand, catalogue, vector), packed.kinds, rows, MOVES)
                if merged is not None:
                    packed = merged
                    break
    return packed


def with_most_room(
    problem: PlanProblem,
    packed: PackedMachines,
    walk: Walk,
    stop: Callable[[], bool],
) -> PackedMachines:
    """Return the same machines and subtasks, placed to carry the largest rate that is found."""
    low, high = 1.0, min(MOST_ROOM, problem.rate_limit / problem.rate)
    for _ in range(PROBES):
        if stop():
            break
        middle = (low + high) / 2
        faster = problem.possible_at(middle * problem.rate)
        roomy = None
        if faster is not None:
            packing = packing_of(faster.demand, problem.catalogue, packed.parallelism)
            roomy = walk(packing, packed.kinds, packed.rows, MOVES)
        if roomy is None:
            high = middle
        else:
            low, packed = middle, roomy
    return packed


def merged_rows(rows: Ints, before: Ints, after: Ints) -> Ints:
    """Scale the subtasks on every machine [D, N] to other parallelisms, in proportion.

    >>> merged_rows(np.array([[4], [3], [1]]), np.array([8]), np.array([3])).ravel().tolist()
    [2, 1, 0]
    """
    quota = rows * (after / before)
    merged = np.floor(quota + 1e-9).astype(np.int32)
    for v in np.flatnonzero(before != after):
        order = np.argsort(merged[:, v] - quota[:, v], kind="stable")
        merged[order[: after[v] - merged[:, v].sum()], v] += 1
    return merged


def _together(demand: Demand, vector: Ints) -> Iterator[Bools]:
    """Operators whose parallelisms change together, groups with the most subtasks first.

    Operators of equal parallelism that are connected one to one keep equal parallelism.
    """
    chain = one_to_one(demand)
    is_even = [len(np.unique(vector[chain == g])) == 1 for g in range(chain.max() + 1)]
    group = np.where(np.array(is_even)[chain], chain, len(chain) + demand.tied)
    numbers = np.unique(group).tolist()
    for g in sorted(numbers, key=lambda g: -int(vector[group == g].sum())):
        yield group == g


def _coarser(demand: Demand, vector: Ints, members: Bools, least: int) -> Iterator[Ints]:
    """Vectors in which some operators have a lower parallelism, the lowest first."""
    highest = int(vector[members].max())
    possible = [set(choices(demand, v, highest)) for v in np.flatnonzero(members).tolist()]
    tried = set[int]()
    for factor in FACTORS:
        lower = [p for p in set.intersection(*possible) if least * factor <= p < highest]
        if lower and min(lower) not in tried:
            tried.add(min(lower))
            yield np.where(members, min(lower), vector).astype(np.int32)
