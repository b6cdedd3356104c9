"""Non-delay makespan of a sequence: cores never wait while a task is ready, as in the simulator.

A free core runs the ready task of its device that comes first in the order, even if waiting for
another task would be better. The pass may therefore take longer than the sequence, or shorter.
Devices that hold the order take exactly as long as the sequence.
"""

from typing import NamedTuple

import numpy as np
from streamsim.jit import borrowing_kernel

from streamplace.model.arrays import Floats, Ints
from streamplace.placers.anneal.passes.sequence import Sequence
from streamplace.scheduling.tasks import Tasks, free_core, transfer

NONE = -1


class NonDelay(NamedTuple):
    """Buffers of the simulation."""

    ready: Floats  # [N]
    finish: Floats  # [N]
    waiting: Ints  # [N] number of missing inputs
    following: Ints  # [N] next of the tasks that wait on the same device
    head: Ints  # [D] first of them
    soonest: Floats  # [D] earliest start of any of them
    free: Floats  # [K]


def new_non_delay(tasks: Tasks) -> NonDelay:
    """Allocate buffers for a problem."""
    n, d = tasks.work.shape
    return NonDelay(
        np.zeros(n),
        np.zeros(n),
        np.zeros(n, np.int32),
        np.zeros(n, np.int32),
        np.zeros(d, np.int32),
        np.zeros(d),
        np.zeros(tasks.core_start[d]),
    )


@borrowing_kernel
def non_delay_makespan(
    tasks: Tasks, sequence: Sequence, non_delay: NonDelay, limit: float
) -> float:
    """Makespan of a sequence whose cores do not wait; ∞ if it would reach the limit."""
    n, d = tasks.work.shape
    non_delay.free[:] = 0.0
    non_delay.head[:] = NONE
    non_delay.soonest[:] = np.inf
    for v in range(n):
        non_delay.ready[v] = tasks.release[v]
        non_delay.waiting[v] = tasks.in_start[v + 1] - tasks.in_start[v]
        if non_delay.waiting[v] == 0:
            _enter(tasks, sequence, non_delay, v)
    makespan = 0.0
    for _ in range(n):
        a = 0
        for b in range(1, d):
            if non_delay.soonest[b] < non_delay.soonest[a]:
                a = b
        v = _first(sequence, non_delay, a)
        c = free_core(tasks, non_delay.free, a)
        end = non_delay.soonest[a] + tasks.work[v, a]
        if end + sequence.tail[v] >= limit:
            return np.inf
        non_delay.free[c] = end
        non_delay.finish[v] = end
        makespan = max(makespan, end)
        _update(tasks, non_delay, a)
        for e in range(tasks.out_start[v], tasks.out_end[v]):
            u = tasks.target[e]
            arrival = end + transfer(tasks, e, a, sequence.place[u])
            non_delay.ready[u] = max(non_delay.ready[u], arrival)
            non_delay.waiting[u] -= 1
            if non_delay.waiting[u] == 0:
                _enter(tasks, sequence, non_delay, u)
    return makespan


@borrowing_kernel
def _enter(tasks: Tasks, sequence: Sequence, non_delay: NonDelay, v: int) -> None:
    """Add a task to those that wait on its device."""
    a = sequence.place[v]
    non_delay.following[v] = non_delay.head[a]
    non_delay.head[a] = v
    free = non_delay.free[free_core(tasks, non_delay.free, a)]
    non_delay.soonest[a] = min(non_delay.soonest[a], max(free, non_delay.ready[v]))


@borrowing_kernel
def _first(sequence: Sequence, non_delay: NonDelay, a: int) -> int:
    """Remove and return the first in the order of the tasks ready at the next start on device a."""
    best, before_best, before = NONE, NONE, NONE
    v = non_delay.head[a]
    while v != NONE:
        first = best == NONE or sequence.position[v] < sequence.position[best]
        if non_delay.ready[v] <= non_delay.soonest[a] and first:
            best, before_best = v, before
        before = v
        v = non_delay.following[v]
    if before_best == NONE:
        non_delay.head[a] = non_delay.following[best]
    else:
        non_delay.following[before_best] = non_delay.following[best]
    return best


@borrowing_kernel
def _update(tasks: Tasks, non_delay: NonDelay, a: int) -> None:
    """Compute the next time at which device a can start a waiting task."""
    free = non_delay.free[free_core(tasks, non_delay.free, a)]
    soonest = np.inf
    v = non_delay.head[a]
    while v != NONE:
        soonest = min(soonest, max(free, non_delay.ready[v]))
        v = non_delay.following[v]
    non_delay.soonest[a] = soonest
