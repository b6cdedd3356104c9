"""Ranks: time before and after every task in a pass, by mean work and transfers."""

import numpy as np
from streamsim.jit import borrowing_kernel, kernel

from streamplace.model.arrays import Bools, Floats, Ints
from streamplace.scheduling.tasks import Tasks, mean_sending, mean_transfer, mean_work, transfer


@kernel
def upward(tasks: Tasks) -> Floats:
    """Upward rank of HEFT: rank(v) = w̄(v) + max over streams (v, u) of (c̄(v, u) + rank(u))."""
    latency, wire = mean_transfer(tasks)
    work = mean_work(tasks)
    rank = work.copy()
    for i in range(len(tasks.order) - 1, -1, -1):
        v = tasks.order[i]
        for e in range(tasks.out_start[v], tasks.out_end[v]):
            sending = mean_sending(tasks, e, latency, wire)
            rank[v] = max(rank[v], work[v] + sending + rank[tasks.target[e]])
    return rank


@kernel
def downward(tasks: Tasks) -> Floats:
    """Downward rank: rank(v) = max over streams (u, v) of (rank(u) + w̄(u) + c̄(u, v))."""
    latency, wire = mean_transfer(tasks)
    work = mean_work(tasks)
    rank = np.zeros(len(work))
    for v in tasks.order:
        for e in range(tasks.out_start[v], tasks.out_end[v]):
            sending = mean_sending(tasks, e, latency, wire)
            w = tasks.target[e]
            rank[w] = max(rank[w], rank[v] + work[v] + sending)
    return rank


@kernel
def optimistic_costs(tasks: Tasks) -> Floats:
    """Optimistic cost table of PEFT, shape [N, D].

    OCT(v, a) = max over streams (v, u) of min over devices b of
    (OCT(u, b) + w(u, b) + c̄(v, u) where b differs from a).
    """
    latency, wire = mean_transfer(tasks)
    n, d = tasks.work.shape
    table = np.zeros((n, d))
    for i in range(n - 1, -1, -1):
        v = tasks.order[i]
        for e in range(tasks.out_start[v], tasks.out_end[v]):
            u = tasks.target[e]
            sending = mean_sending(tasks, e, latency, wire)
            away = np.inf
            for b in range(d):
                away = min(away, table[u, b] + tasks.work[u, b] + sending)
            for a in range(d):
                least = min(away, table[u, a] + tasks.work[u, a])
                table[v, a] = max(table[v, a], least)
    return table


@kernel
def least_after(tasks: Tasks) -> Floats:
    """Least seconds from the end of every task, on each device, to the end of the pass [N, D]."""
    n, d = tasks.work.shape
    table = np.zeros((n, d))
    for i in range(n - 1, -1, -1):
        v = tasks.order[i]
        for e in range(tasks.out_start[v], tasks.out_end[v]):
            u = tasks.target[e]
            for a in range(d):
                least = np.inf
                for b in range(d):
                    least = min(least, transfer(tasks, e, a, b) + tasks.work[u, b] + table[u, b])
                table[v, a] = max(table[v, a], least)
    return table


@kernel
def by_rank(tasks: Tasks, rank: Floats) -> Ints:
    """Order tasks topologically by highest rank, then lowest index.

    A binary heap holds the ready tasks.
    """
    n = len(rank)
    heap, size = np.empty(n, np.int32), 0
    waiting = np.diff(tasks.in_start)
    order, done = np.empty(n, np.int32), 0
    for v in range(n):
        if waiting[v] == 0:
            size = _push(heap, size, rank, v)
    while size > 0:
        v, size = _pop(heap, size, rank)
        order[done] = v
        done += 1
        for e in range(tasks.out_start[v], tasks.out_end[v]):
            u = tasks.target[e]
            waiting[u] -= 1
            if waiting[u] == 0:
                size = _push(heap, size, rank, u)
    return order


def after_predecessors(tasks: Tasks, order: Ints) -> Ints:
    """Order tasks as in another order, but each after its predecessors.

    Starts that were computed backwards are rounded, so that a task of no duration may seem to start
    after the next one.
    """
    return by_rank(tasks, falling(order))


def by_start(tasks: Tasks, start: Floats, tie: Bools | Floats) -> Ints:
    """Order tasks by their starts, those of equal starts by ``tie``, then topologically.

    Every task comes after its predecessors, whatever its start.
    """
    position = np.empty(len(tasks.order), np.int64)
    position[tasks.order] = np.arange(len(tasks.order))
    return after_predecessors(tasks, np.lexsort((position, tie, start)).astype(np.int32))


def falling(order: Ints) -> Floats:
    """Priorities that give an order of tasks."""
    priority: Floats = np.empty(len(order))
    priority[order] = -np.arange(len(order), dtype=np.float64)
    return priority


@borrowing_kernel
def comes_before(rank: Floats, u: int, v: int) -> bool:
    """Whether u has the higher rank, or the same and the lower number."""
    return rank[u] > rank[v] or (rank[u] == rank[v] and u < v)


@kernel
def _push(heap: Ints, size: int, rank: Floats, v: int) -> int:
    i = size
    while i > 0 and comes_before(rank, v, heap[(i - 1) // 2]):
        heap[i] = heap[(i - 1) // 2]
        i = (i - 1) // 2
    heap[i] = v
    return size + 1


@kernel
def _pop(heap: Ints, size: int, rank: Floats) -> tuple[int, int]:
    top, last = heap[0], heap[size - 1]
    size -= 1
    i = 0
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and comes_before(rank, heap[child + 1], heap[child]):
            child += 1
        if not comes_before(rank, heap[child], last):
            break
        heap[i] = heap[child]
        i = child
    heap[i] = last
    return top, size
