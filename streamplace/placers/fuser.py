"""Fuser: equal numbers of operators per PE, few streams between PEs; knows neither CPU nor bytes.

IBM Streams' automatic fusion as the DREAM paper describes its baseline ("simple rules to balance
the number of operators and reduce edge cut among partitions"), which a platform can run before any
measurement. It has two rules and deliberately no multilevel partitioner:

1. Walk the operators depth first, so that pipelines stay together, and cut the walk into k runs of
   equal length.
2. Improve the cut and keep the balance: an operator follows the majority of its neighbours into a
   smaller PE, or two operators of different PEs swap, until no change reduces the cut.
"""

from itertools import pairwise

import numpy as np

from streamplace.model.arrays import Ints
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers import partition_graph
from streamplace.placers.oracle import with_best_k
from streamplace.placers.partition_graph import Neighbours
from streamplace.placers.registry import PLACERS, Budget, Found, placer

MAX_PASSES = 8


@placer("fuser")
def fuser(
    problem: Problem, objective: Objective, *, seed: int, budget: Budget, k: int | None = None
) -> Placement:
    """Fuse operators into k PEs of equal size with few streams between them, as IBM Streams does.

    PEs are assigned to unlike devices as the parts of ``metis`` are.

    Parameters
    ----------
    k
        Number of PEs; as many as devices by default.
    """
    parts = partition_graph.checked_parts(problem, k)
    unit = problem.unit
    size = np.bincount(unit).astype(np.int32)
    streams = np.ones(problem.graph.n_streams, np.int64)
    graph = partition_graph.neighbours(problem, unit, len(size), streams)
    pes = Pes(_runs(_depth_first(problem), unit, size, parts), size, parts, graph)
    for _ in range(MAX_PASSES):
        if not _improve(pes):
            break
    part = np.array(pes.of_unit, np.int32)[unit]
    devices = partition_graph.strongest(partition_graph.power(problem), parts)
    return partition_graph.best_mapping(problem, objective, part, devices, budget)


@placer("fuser-oracle")
def fuser_oracle(problem: Problem, objective: Objective, *, seed: int, budget: Budget) -> Found:
    """The fuser with the best number of parts."""
    return with_best_k(PLACERS["fuser"], problem, objective, seed, budget)


class Pes:
    """PE of every unit, number of operators of each PE, and streams between units."""

    def __init__(self, of_unit: list[int], unit_size: Ints, n: int, graph: Neighbours) -> None:
        self.of_unit = of_unit
        self.unit_size = unit_size.tolist()
        self.size = [0] * n
        for pe, size in zip(of_unit, self.unit_size, strict=True):
            self.size[pe] += size
        ends = graph.start.tolist()
        beside, streams = graph.neighbour.tolist(), graph.weight.tolist()
        self.streams = [
            dict(zip(beside[a:b], streams[a:b], strict=True)) for a, b in pairwise(ends)
        ]

    def move(self, u: int, pe: int) -> None:
        """Move a unit to a PE."""
        self.size[self.of_unit[u]] -= self.unit_size[u]
        self.size[pe] += self.unit_size[u]
        self.of_unit[u] = pe

    def gains(self, u: int) -> dict[int, int]:
        """Reduction of the cut, in streams, if a unit moves to each PE of its neighbours."""
        beside: dict[int, int] = {}
        for v, streams in self.streams[u].items():
            pe = self.of_unit[v]
            beside[pe] = beside.get(pe, 0) + streams
        staying = beside.pop(self.of_unit[u], 0)
        return {pe: streams - staying for pe, streams in beside.items()}


def _depth_first(problem: Problem) -> list[int]:
    """Operators in a topological order that follows each pipeline as far as possible."""
    instance = problem.instance
    waiting = np.diff(instance.in_start).tolist()
    target, start, end = (
        column.tolist() for column in (instance.target, instance.out_start, instance.out_end)
    )
    ready = [v for v in reversed(range(problem.n_operators)) if not waiting[v]]
    order = []
    while ready:
        u = ready.pop()
        order.append(u)
        for v in reversed(target[start[u] : end[u]]):
            waiting[v] -= 1
            if not waiting[v]:
                ready.append(v)
    return order


def _runs(order: list[int], unit: Ints, size: Ints, k: int) -> list[int]:
    """Cut the walk into k runs of equal size; colocated operators join the first of them."""
    _, first = np.unique(unit[order], return_index=True)
    walk = np.argsort(first, kind="stable")
    before = np.cumsum(size[walk]) - size[walk]
    runs = np.empty(len(size), np.int32)
    runs[walk] = before * k // size.sum()
    return runs.tolist()


def _improve(pes: Pes) -> bool:
    """Make one pass of moves and swaps over all units; return whether the cut shrank."""
    moved = False
    offers: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for u in range(len(pes.of_unit)):
        home = pes.of_unit[u]
        for pe, gain in pes.gains(u).items():
            if gain > 0 and pes.size[pe] + pes.unit_size[u] <= pes.size[home]:
                pes.move(u, pe)
                moved = True
                break
            if gain >= 0:
                offers.setdefault((home, pe), []).append((-gain, u))
    return _trade(pes, offers) or moved


def _trade(pes: Pes, offers: dict[tuple[int, int], list[tuple[int, int]]]) -> bool:
    """Swap units that gain in each other's PE, largest gain first; return whether any did."""
    traded = False
    for a, b in sorted(offers):
        if a < b and (b, a) in offers:
            pairs = zip(sorted(offers[a, b]), sorted(offers[b, a]), strict=False)
            for (_, u), (_, v) in pairs:
                is_there = (pes.of_unit[u], pes.of_unit[v]) == (a, b)
                if not is_there or pes.unit_size[u] != pes.unit_size[v]:
                    continue
                gain = pes.gains(u).get(b, 0) + pes.gains(v).get(a, 0)
                if gain > 2 * pes.streams[u].get(v, 0):  # the streams between them stay cut
                    pes.move(u, b)
                    pes.move(v, a)
                    traded = True
    return traded
