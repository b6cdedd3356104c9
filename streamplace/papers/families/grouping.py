"""Grouping: cheap tasks join their only predecessors until few enough are left.

This is what GiPH does to graphs of neural networks, after Mirhoseini et al. and Placeto.
"""

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

Edges = Mapping[tuple[int, int], float]


class Groups(NamedTuple):
    """Groups of tasks, each called after its first."""

    first: list[int]  # tasks that the groups are called after, in order
    cost: list[float]  # of all tasks of each group
    payload: dict[tuple[int, int], float]  # bytes from group to group, by their numbers
    of: list[int]  # number of the group of every task


def grouped(cost: Sequence[float], payload: Edges, size: int) -> Groups:
    """Merge the cheapest task that has one predecessor into it, again and again."""
    total = list(cost)
    after: list[dict[int, float]] = [{} for _ in total]
    before: list[set[int]] = [set() for _ in total]
    for (u, v), size_of_edge in payload.items():
        after[u][v] = size_of_edge
        before[v].add(u)
    left = set(range(len(total)))
    into = list(range(len(total)))
    heap = [(total[v], v) for v in left if len(before[v]) == 1]
    heapify(heap)
    while len(left) > size and heap:
        price, v = heappop(heap)
        if v not in left or price != total[v]:
            continue
        left.remove(v)
        into[v], *_ = touched = _merge(v, total, after, before)
        for changed in touched:
            if len(before[changed]) == 1:
                heappush(heap, (total[changed], changed))
    first = sorted(left)
    number = {v: i for i, v in enumerate(first)}
    between = {(number[u], number[v]): b for u in first for v, b in sorted(after[u].items())}
    return Groups(first, [total[v] for v in first], between, _numbers(into, number))


def _numbers(into: list[int], number: Mapping[int, int]) -> list[int]:
    """Group of every task, after tasks were merged into others."""
    ends = []
    for task in range(len(into)):
        while into[task] != task:
            into[task] = into[into[task]]
            task = into[task]
        ends.append(number[task])
    return ends


def _merge(
    v: int, total: list[float], after: list[dict[int, float]], before: list[set[int]]
) -> list[int]:
    """Merge a task into its only predecessor; returns tasks whose cost or predecessors changed."""
    (u,) = before[v]
    total[u] += total[v]
    del after[u][v]
    for w, size in after[v].items():
        after[u][w] = after[u].get(w, 0) + size
        before[w].remove(v)
        before[w].add(u)
    return [u, *after[v]]
