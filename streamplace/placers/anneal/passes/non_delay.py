"""What a sequence is worth where cores never wait while a task is ready: as passes are simulated.

Of the tasks that are ready on its device a free core takes the one that comes first in the order. A
core that would do better to wait does not, and so the pass may take longer than the sequence says,
or less long. Devices that hold the order take as long as the sequence says.
"""

from typing import NamedTuple

import numpy as np
from streamsim.jit import borrowing_kernel

from streamplace.model.arrays import Floats, Ints
from streamplace.placers.anneal.passes.sequence import Sequence
from streamplace.scheduling.tasks import Tasks, transfer

NONE = -1


class Eager(NamedTuple):
    """Buffers."""

    ready: Floats  # [N]
    finish: Floats  # [N]
    waiting: Ints  # [N] inputs still to come
    following: Ints  # [N] next of the tasks that wait on the same device
    head: Ints  # [D] first of them
    soonest: Floats  # [D] when the first of them can start
    free: Floats  # [K]


def new_eager(tasks: Tasks) -> Eager:
    """Buffers for a problem."""
    n, d = tasks.work.shape
    return Eager(
        np.zeros(n),
        np.zeros(n),
        np.zeros(n, np.int32),
        np.zeros(n, np.int32),
        np.zeros(d, np.int32),
        np.zeros(d),
        np.zeros(tasks.core_start[d]),
    )


@borrowing_kernel
def eager_makespan(tasks: Tasks, sequence: Sequence, eager: Eager, limit: float) -> float:
    """Makespan of a sequence whose cores do not wait; ∞ where it would reach the limit."""
    n, d = tasks.work.shape
    eager.free[:] = 0.0
    eager.head[:] = NONE
    eager.soonest[:] = np.inf
    for v in range(n):
        eager.ready[v] = tasks.release[v]
        eager.waiting[v] = tasks.in_start[v + 1] - tasks.in_start[v]
        if eager.waiting[v] == 0:
            _enter(tasks, sequence, eager, v)
    makespan = 0.0
    for _ in range(n):
        a = 0
        for b in range(1, d):
            if eager.soonest[b] < eager.soonest[a]:
                a = b
        v = _first(sequence, eager, a)
        c = _free_core(tasks, eager, a)
        end = eager.soonest[a] + tasks.work[v, a]
        if end + sequence.tail[v] >= limit:
            return np.inf
        eager.free[c] = end
        eager.finish[v] = end
        makespan = max(makespan, end)
        _update(tasks, eager, a)
        for e in range(tasks.out_start[v], tasks.out_end[v]):
            u = tasks.target[e]
            arrival = end + transfer(tasks, e, a, sequence.place[u])
            eager.ready[u] = max(eager.ready[u], arrival)
            eager.waiting[u] -= 1
            if eager.waiting[u] == 0:
                _enter(tasks, sequence, eager, u)
    return makespan


@borrowing_kernel
def _enter(tasks: Tasks, sequence: Sequence, eager: Eager, v: int) -> None:
    """Let a task wait on its device."""
    a = sequence.place[v]
    eager.following[v] = eager.head[a]
    eager.head[a] = v
    free = eager.free[_free_core(tasks, eager, a)]
    eager.soonest[a] = min(eager.soonest[a], max(free, eager.ready[v]))


@borrowing_kernel
def _free_core(tasks: Tasks, eager: Eager, a: int) -> int:
    """Core of a device that is free first."""
    c = tasks.core_start[a]
    for other in range(c + 1, tasks.core_start[a + 1]):
        if eager.free[other] < eager.free[c]:
            c = other
    return c


@borrowing_kernel
def _first(sequence: Sequence, eager: Eager, a: int) -> int:
    """Take the first in the order of those that are ready when device a next starts a task."""
    best, before_best, before = NONE, NONE, NONE
    v = eager.head[a]
    while v != NONE:
        first = best == NONE or sequence.position[v] < sequence.position[best]
        if eager.ready[v] <= eager.soonest[a] and first:
            best, before_best = v, before
        before = v
        v = eager.following[v]
    if before_best == NONE:
        eager.head[a] = eager.following[best]
    else:
        eager.following[before_best] = eager.following[best]
    return best


@borrowing_kernel
def _update(tasks: Tasks, eager: Eager, a: int) -> None:
    """Find when device a can next start one of the tasks that wait for it."""
    free = eager.free[_free_core(tasks, eager, a)]
    soonest = np.inf
    v = eager.head[a]
    while v != NONE:
        soonest = min(soonest, max(free, eager.ready[v]))
        v = eager.following[v]
    eager.soonest[a] = soonest
