"""Task graphs: stream graphs whose operators all fire "all", so one pass is one run of each.

`grouped` lets cheap tasks join their only predecessors until few enough are left, as GiPH does with
graphs of neural networks, after Mirhoseini et al. and Placeto.
"""

from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from streamplace.model.graph import Attribute, StreamGraph, rated
from streamplace.model.operators import Operators
from streamplace.model.streams import Streams

NOTHING: Mapping[str, frozenset[str]] = MappingProxyType({})
ELEMENT_BYTES = 4
"""Bytes of a number in a tensor, in single precision."""
INSTRUCTIONS = 1e6
"""Instructions that a device of 1 MIPS executes in a second: the ipt of a task of one second."""


def task_graph(
    name: str,
    tasks: Operators,
    edges: ArrayLike,
    payload: ArrayLike | None = None,
    attributes: Mapping[str, Attribute] | None = None,
) -> StreamGraph:
    """Graph of tasks and the edges [M, 2] between them, from sender to receiver.

    Without a ``payload`` [M] in bytes, every edge carries the output of its sender.
    """
    ends = np.asarray(edges, np.int32).reshape(-1, 2)
    streams = Streams(tasks, ends[:, 0], ends[:, 1], payload=payload)
    return StreamGraph(name, *rated(tasks, streams), attributes or {})


class TaskList:
    """A task graph that is built task by task.

    Examples
    --------
    >>> tasks = TaskList()
    >>> load = tasks.add("load", "input", [], ipt=1e6, payload=100)
    >>> _ = tasks.add("use", "work", [load], ipt=2e6, payload=0)
    >>> tasks.graph("two", {}).streams.label(0)
    'load→use'
    """

    def __init__(self) -> None:
        self._names: list[str] = []
        self._kinds: list[str] = []
        self._ipt: list[float] = []
        self._payload: list[float] = []
        self._memory: list[float] = []
        self._edges: list[tuple[int, int]] = []
        self._depth: list[int] = []

    @property
    def longest_path(self) -> int:
        """Edges of the longest path."""
        return max(self._depth)

    def add(
        self,
        name: str,
        kind: str,
        inputs: Iterable[int],
        ipt: float,
        payload: float,
        memory: float = 0.0,
    ) -> int:
        """Row of a new task, which reads the outputs of some rows, each once."""
        row = len(self._names)
        self._names.append(name)
        self._kinds.append(kind)
        self._ipt.append(ipt)
        self._payload.append(payload)
        self._memory.append(memory)
        sources = list(dict.fromkeys(inputs))
        self._edges += [(source, row) for source in sources]
        self._depth.append(1 + max((self._depth[source] for source in sources), default=-1))
        return row

    def graph(
        self,
        name: str,
        attributes: Mapping[str, Attribute],
        requires: Mapping[str, frozenset[str]] = NOTHING,
    ) -> StreamGraph:
        """Graph of all tasks; each puts out one message and needs the tags of its kind."""
        tags = [requires.get(kind, frozenset()) for kind in self._kinds]
        tasks = tasks_of(self._names, self._ipt, self._payload, self._kinds, tags, self._memory)
        return task_graph(name, tasks, self._edges, attributes=attributes)


def tasks_of(
    names: Sequence[str],
    ipt: ArrayLike,
    payload: ArrayLike | None = None,
    kind: Sequence[str] | None = None,
    requires: Sequence[frozenset[str]] | None = None,
    memory: ArrayLike | None = None,
) -> Operators:
    """Operators that all fire "all"."""
    return Operators(
        names,
        ipt=ipt,
        payload=payload,
        kind=kind,
        requires=requires,
        memory=memory,
        fires_all=np.ones(len(names), bool),
    )


class Groups(NamedTuple):
    """Groups of tasks, each named after its first one."""

    first: list[int]  # tasks that the groups are named after, in order
    cost: list[float]  # of all tasks of each group
    payload: dict[tuple[int, int], float]  # bytes from group to group, by their numbers
    of: list[int]  # number of the group of every task


def grouped(cost: Sequence[float], payload: Mapping[tuple[int, int], float], size: int) -> Groups:
    """Merge the cheapest task that has one predecessor into it, again and again."""
    total = list(cost)
    after: list[dict[int, float]] = [{} for _ in total]
    before: list[set[int]] = [set() for _ in total]
    for (u, v), size_of_edge in payload.items():
        after[u][v] = size_of_edge
        before[v].add(u)
    remaining = set(range(len(total)))
    into = list(range(len(total)))
    heap = [(total[v], v) for v in remaining if len(before[v]) == 1]
    heapify(heap)
    while len(remaining) > size and heap:
        price, v = heappop(heap)
        if v not in remaining or price != total[v]:
            continue
        remaining.remove(v)
        into[v], *_ = touched = _merge(v, total, after, before)
        for changed in touched:
            if len(before[changed]) == 1:
                heappush(heap, (total[changed], changed))
    first = sorted(remaining)
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
