"""Subtasks on a machine: the shares of tuples that they receive, and the slots that they need.

Shares are the largest and smallest part of an operator's tuples that n of its p subtasks receive.
Flink does not let a user choose which of an operator's subtasks run on a machine, so a machine with
n of them is charged for the n that have the most key groups.

If operators share slots, as in Flink, a slot holds at most one subtask of each operator of a slot
sharing group, so a group needs as many slots as its largest operator has subtasks. Without sharing,
every operator is a group of its own.
"""

from collections.abc import Callable

import numpy as np

from streamplace.model.arrays import Floats, Ints, Longs
from streamplace.model.devices import SLACK
from streamplace.model.expansion import MOST_SUBTASKS
from streamplace.model.key_groups import useful_parallelisms
from streamplace.planning.demand import Demand
from streamplace.planning.offers import Catalogue


def shares_of(demand: Demand, parallelism: Ints) -> tuple[Floats, Floats, Floats]:
    """Largest and smallest share of the tuples of n subtasks of every operator, and of memory.

    Each has the shape [N, P + 1], with P the largest parallelism.

    >>> from streamplace.model import Operator, StreamGraph
    >>> from streamplace.planning.demand import demand_of
    >>> graph = StreamGraph.of("one", [Operator("a", ipt=1, rate=8, max_parallelism=8)])
    >>> most, least, _ = shares_of(demand_of(graph), np.array([3], np.int32))
    >>> most[0].tolist(), least[0].tolist()
    ([0.0, 0.375, 0.75, 1.0], [0.0, 0.25, 0.625, 1.0])
    """
    count = np.arange(parallelism.max() + 1)
    most = np.zeros((len(parallelism), len(count)))
    least, memory = np.ones_like(most), np.zeros_like(most)
    for v, dealing in enumerate(demand.dealing):
        p = int(parallelism[v])
        memory[v] = _extremes(int(demand.key_groups[v]), p, count)[0]
        for groups in _possible(dealing, p):
            high, low = _extremes(groups, p, count)
            most[v], least[v] = np.maximum(most[v], high), np.minimum(least[v], low)
    return most, least, memory


def busiest_share(demand: Demand, v: int, parallelism: int) -> float:
    """Share of the tuples of operator v that its busiest subtask receives."""
    return max(
        -(-groups // parallelism) / groups if groups else 1 / parallelism
        for groups in _possible(demand.dealing[v], parallelism)
    )


def charged_need(demand: Demand, v: int, parallelism: int, speed: float) -> float:
    """Instructions per second of operator v's busiest subtask, as plans are charged for it.

    A subtask at its largest rate takes a whole core, which executes ``speed`` of them.
    """
    waiting = speed * float(demand.at_max_rate[v])
    return busiest_share(demand, v, parallelism) * max(float(demand.instructions[v]), waiting)


def least_need(demand: Demand, v: int, parallelism: int, speed: float) -> float:
    """Least instructions per second that operator v's busiest subtask may need.

    Constant loads are divided evenly, and so may tuples be where the number of key groups is not
    unique. A subtask at its largest rate takes a whole core, which executes ``speed`` of them.
    """
    share, needed = least_share(demand, v, parallelism), float(demand.instructions[v])
    waiting = share * speed * float(demand.at_max_rate[v])
    constant = 0.0
    if demand.constant[v]:
        constant = needed * float(demand.constant[v] / demand.instructions[v])
    return max(share * (needed - constant) + 1 / parallelism * constant, waiting)


def least_share(demand: Demand, v: int, parallelism: int) -> float:
    """Least share of the tuples of operator v that its busiest subtask may receive."""
    several = len(demand.dealing[v]) > 1
    return 1 / parallelism if several else busiest_share(demand, v, parallelism)


def choices(demand: Demand, v: int, most: int) -> list[int]:
    """Return the parallelisms of operator v, up to ``most``, that differ in some share."""
    if demand.keeps[v]:
        return [int(demand.parallelism_limit[v])]
    limit = min(most, int(demand.parallelism_limit[v]) or most)
    useful = {p for groups in demand.dealing[v] for p in useful_parallelisms(groups, limit)}
    return sorted(map(int, useful))


def least_parallelism(
    demand: Demand,
    v: int,
    speed: float,
    need_of: Callable[[Demand, int, int, float], float] = least_need,
) -> int:
    """Return the least parallelism at which a core runs the busiest subtask; 0 if there is none."""

    def runs(p: int) -> bool:
        return need_of(demand, v, p, speed) <= speed * (1 + SLACK)

    limit = int(demand.parallelism_limit[v])
    if demand.keeps[v]:
        return limit if runs(limit) else 0
    need = max(float(demand.instructions[v]), speed * float(demand.at_max_rate[v]))
    if need <= speed:
        return 1
    least = int(np.ceil(need / speed * (1 - 2 * SLACK))) if speed > 0 else 0
    if not least or least > (limit or MOST_SUBTASKS):
        return 0
    if runs(least):
        return least
    most = limit or min(4 * least, MOST_SUBTASKS)
    # Constant loads differ at every parallelism, tuples only where the shares of key groups do.
    more = range(least + 1, most + 1) if demand.constant[v] else choices(demand, v, most)
    return next((p for p in more if p > least and runs(p)), 0)


def _possible(dealing: frozenset[int], p: int) -> list[int]:
    """Numbers of key groups that suit p subtasks; smaller ones come from forward streams only."""
    return [groups for groups in dealing if not groups or groups >= p]


def _extremes(groups: int, p: int, count: Ints) -> tuple[Floats, Floats]:
    """Largest and smallest share of ``count`` of p subtasks."""
    n = np.minimum(count, p)
    if not groups:
        return n / p, n / p
    few, larger = divmod(groups, p)
    high = n * few + np.minimum(n, larger)
    low = n * few + np.maximum(0, n - (p - larger))
    return high / groups, low / groups


def slot_groups(demand: Demand, catalogue: Catalogue) -> Ints:
    """Group of operators that share slots, numbered, [N]."""
    if catalogue.slot_sharing:
        return demand.slot_group
    return np.arange(demand.n_operators, dtype=np.int32)


def slots_of(groups: Ints, counts: Ints | Longs) -> Longs:
    """Slots in use on each machine, [D], by ``counts`` subtasks of each operator, [D, N].

    >>> slots_of(np.array([0, 0, 1]), np.array([[2, 3, 4], [0, 1, 0]])).tolist()
    [7, 1]
    """
    return np.asarray(group_slots(groups, counts).sum(axis=1))


def group_slots(groups: Ints, counts: Ints | Longs) -> Longs:
    """Slots that each group uses on each machine, [D, G]: the subtasks of its largest operator.

    >>> group_slots(np.array([0, 0, 1]), np.array([[2, 3, 4], [0, 1, 0]])).tolist()
    [[3, 4], [1, 0]]
    """
    most = np.zeros((len(counts), int(groups.max(initial=-1)) + 1), np.int64)
    for v, group in enumerate(groups.tolist()):
        most[:, group] = np.maximum(most[:, group], counts[:, v])
    return most
