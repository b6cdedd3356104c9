"""Subtasks on a machine: the shares of tuples that they receive, and the slots that they need.

Shares are the largest and smallest part of an operator's tuples that n of its p subtasks receive.
Flink does not let a user choose which of an operator's subtasks run on a machine, so a machine with
n of them is charged for the n that have the most key groups.

If operators share slots, as in Flink, a slot holds at most one subtask of each operator of a slot
sharing group, so a group needs as many slots as its largest operator has subtasks. Without sharing,
every operator is a group of its own.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from streamplace.model.arrays import Floats, Ints, Longs
from streamplace.model.expansion import MOST_SUBTASKS
from streamplace.model.key_groups import useful_parallelisms
from streamplace.planning.demand import Demand
from streamplace.planning.offers import Catalogue


class SubtaskShares(NamedTuple):
    """Largest and smallest shares of n subtasks of every operator; P is the largest parallelism."""

    parallelism: Ints  # [N]
    most: Floats  # [N, P + 1] of the n subtasks with the most tuples
    least: Floats  # [N, P + 1] of the n subtasks with the fewest
    memory: Floats  # [N, P + 1] memory of the n subtasks with the most


def shares_of(demand: Demand, parallelism: Ints) -> SubtaskShares:
    """Compute the shares at these parallelisms.

    >>> from streamplace.model import Operator, StreamGraph
    >>> from streamplace.planning.demand import demand_of
    >>> graph = StreamGraph.of("one", [Operator("a", ipt=1, rate=8, max_parallelism=8)])
    >>> shares = shares_of(demand_of(graph), np.array([3], np.int32))
    >>> shares.most[0].tolist(), shares.least[0].tolist()
    ([0.0, 0.375, 0.75, 1.0], [0.0, 0.25, 0.625, 1.0])
    """
    count = np.arange(parallelism.max() + 1)
    most = np.zeros((len(parallelism), len(count)))
    least, memory = np.ones_like(most), np.zeros_like(most)
    for v, dealing in enumerate(demand.dealing):
        p = int(parallelism[v])
        memory[v] = _extremes(int(demand.groups[v]), p, count)[0]
        for groups in _possible(dealing, p):
            high, low = _extremes(groups, p, count)
            most[v], least[v] = np.maximum(most[v], high), np.minimum(least[v], low)
    return SubtaskShares(parallelism.astype(np.int32), most, least, memory)


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
    """Instructions per second below which operator v's busiest subtask never is.

    Constant loads are divided evenly, and so may tuples be where the number of key groups is not
    unique. A subtask at its largest rate takes a whole core, which executes ``speed`` of them.
    """
    waiting = least_share(demand, v, parallelism) * speed * float(demand.at_max_rate[v])
    return max(_least_instructions(demand, v, parallelism), waiting)


def least_share(demand: Demand, v: int, parallelism: int) -> float:
    """Share of the tuples of operator v below which that of its busiest subtask never is."""
    several = len(demand.dealing[v]) > 1
    return 1 / parallelism if several else busiest_share(demand, v, parallelism)


def _least_instructions(demand: Demand, v: int, parallelism: int) -> float:
    needed, even = float(demand.instructions[v]), 1 / parallelism
    share = least_share(demand, v, parallelism)
    if not demand.constant[v]:
        return share * needed
    constant = needed * float(demand.constant[v] / demand.instructions[v])
    return share * (needed - constant) + even * constant


def choices(demand: Demand, v: int, most: int) -> list[int]:
    """Return the parallelisms of operator v, up to ``most``, that differ in some share."""
    if demand.keeps[v]:
        return [int(demand.most[v])]
    limit = min(most, int(demand.most[v]) or most)
    useful = {p for groups in demand.dealing[v] for p in useful_parallelisms(groups, limit)}
    return sorted(map(int, useful))


def least_parallelism(
    demand: Demand,
    v: int,
    speed: float,
    need_of: Callable[[Demand, int, int, float], float] = least_need,
) -> int:
    """Return the least parallelism at which a core runs the busiest subtask; 0 if there is none."""
    need = max(float(demand.instructions[v]), speed * float(demand.at_max_rate[v]))
    if demand.keeps[v]:
        p = int(demand.most[v])
        return p if need_of(demand, v, p, speed) <= speed * (1 + 1e-9) else 0
    if need <= speed:
        return 1
    least = int(np.ceil(need / speed * (1 - 2e-9))) if speed > 0 else 0
    limit = int(demand.most[v])
    if not least or least > (limit or MOST_SUBTASKS):
        return 0
    most = limit or min(4 * least, MOST_SUBTASKS)
    every = range(least + 1, most + 1)  # constant loads differ at each
    room = speed * (1 + 1e-9)
    if need_of(demand, v, least, speed) <= room:
        return least
    return next(
        (
            p
            for p in (every if demand.constant[v] else choices(demand, v, most))
            if p > least and need_of(demand, v, p, speed) <= room
        ),
        0,
    )


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


@dataclass(frozen=True, slots=True)
class PlanSlots:
    """Number of slots that a plan needs."""

    sharing: bool  # whether operators share slots in the plan
    separate: int  # slots of the job if every subtask has one of its own
    shared: int  # slots of the job if the operators of a slot sharing group share them
    machines: Mapping[str, int]  # most slots in use on a machine of each type

    def __str__(self) -> str:
        return (
            f"The job takes {self.separate} slots if every subtask has its own, and {self.shared} "
            "if operators share slots, as in Flink by default."
        )

    def to_json(self) -> dict[str, Any]:
        """Return the slots as a JSON document."""
        return {
            "sharing": self.sharing,
            "separate": self.separate,
            "shared": self.shared,
            "machines": dict(self.machines),
        }


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
