"""Sequence: a schedule under moves, for searches of the shortest pass.

A schedule is the device of every task and one topological order of all tasks, in which every core
runs its tasks. Moving a task changes nothing before the first affected position, and later tasks
are timed only while the makespan can still be short enough: a task that finishes too late for its
tail ends the trial.

The non-delay makespan of a sequence is that of cores that never wait while a task is ready, as in
the simulator: a free core runs the ready task of its device that comes first in the order, even if
waiting for another task would be better. The pass may therefore take longer than the sequence, or
shorter. Devices that hold the order take exactly as long as the sequence.
"""

from typing import NamedTuple

import numpy as np
from streamsim.jit import borrowing_kernel, inlined_kernel, kernel

from streamplace.model.arrays import Floats, Ints
from streamplace.scheduling.insertion import ready_at
from streamplace.scheduling.tasks import Tasks, free_core, transfer

NOTHING = -1


class Sequence(NamedTuple):
    """State of a schedule under moves; the kernels change it in place."""

    order: Ints  # [N] tasks
    position: Ints  # [N] position of every task in the order
    place: Ints  # [N] device
    core: Ints  # [N]
    finish: Floats  # [N]
    cause: Ints  # [N] cause of the start: a sender u, or the previous task u of the core as ~u - 1
    tail: Floats  # [N] least seconds after the finish, with the current devices
    least: Floats  # [N] the same with any devices
    old_core: Ints
    old_finish: Floats
    old_cause: Ints
    free: Floats  # [K] time at which each core is free
    last: Ints  # [K] last task of each core
    chain: Ints  # [N] tasks of the critical chain, last first
    length: Ints  # [1] length of the chain


def new_sequence(tasks: Tasks, order: Ints, place: Ints, least: Floats) -> Sequence:
    """Build a sequence from an order of the tasks and their devices."""
    n, k = len(order), tasks.core_start[-1]
    position = np.empty(n, np.int32)
    position[order] = np.arange(n)
    return Sequence(
        order.copy(),
        position,
        place.copy(),
        np.zeros(n, np.int32),
        np.zeros(n),
        np.full(n, NOTHING, np.int32),
        np.zeros(n),
        least,
        np.zeros(n, np.int32),
        np.zeros(n),
        np.zeros(n, np.int32),
        np.zeros(k),
        np.zeros(k, np.int32),
        np.zeros(n, np.int32),
        np.zeros(1, np.int32),
    )


@borrowing_kernel
def follow(
    tasks: Tasks, sequence: Sequence, first: int, tail: Floats, limit: float
) -> tuple[float, int]:
    """Time all tasks from a position on; return the makespan, or ∞ if it would reach the limit.

    The previous times are kept in ``old_…`` up to the returned position.
    """
    order, finish, free, last = sequence.order, sequence.finish, sequence.free, sequence.last
    free[:] = 0.0
    last[:] = NOTHING
    makespan = 0.0
    for i in range(first):
        v = order[i]
        c = sequence.core[v]
        free[c] = finish[v]
        last[c] = v
        makespan = max(makespan, finish[v])
    for i in range(first, len(order)):
        v = order[i]
        a = sequence.place[v]
        begin, cause = tasks.release[v], NOTHING
        for k in range(tasks.in_start[v], tasks.in_start[v + 1]):
            e = tasks.in_stream[k]
            u = tasks.source[e]
            arrival = finish[u] + transfer(tasks, e, sequence.place[u], a)
            if arrival > begin:
                begin, cause = arrival, u
        c = free_core(tasks, free, a)
        if free[c] > begin:
            begin, cause = free[c], ~last[c] - 1
        end = begin + tasks.work[v, a]
        if end + tail[v] >= limit:
            return np.inf, i
        sequence.old_core[v], sequence.old_finish[v] = sequence.core[v], finish[v]
        sequence.old_cause[v] = sequence.cause[v]
        sequence.core[v], finish[v], sequence.cause[v] = c, end, cause
        free[c], last[c] = end, v
        makespan = max(makespan, end)
    return makespan, len(order)


@borrowing_kernel
def restore(sequence: Sequence, first: int, end: int) -> None:
    """Restore the times that `follow` overwrote."""
    for i in range(first, end):
        v = sequence.order[i]
        sequence.core[v], sequence.finish[v] = sequence.old_core[v], sequence.old_finish[v]
        sequence.cause[v] = sequence.old_cause[v]


@borrowing_kernel
def settle(tasks: Tasks, sequence: Sequence) -> None:
    """Compute the tails and the critical chain of the current schedule."""
    end, n = sequence.order[0], len(sequence.order)
    for i in range(n - 1, -1, -1):
        v = sequence.order[i]
        sequence.tail[v] = tail_of(tasks, sequence, v)
        if sequence.finish[v] > sequence.finish[end]:
            end = v
    count, v = 0, end
    while v != NOTHING:
        sequence.chain[count] = v
        count += 1
        v = waited_for(sequence, v)
    sequence.length[0] = count


@kernel
def start_times(tasks: Tasks, sequence: Sequence) -> Floats:
    """Time all tasks; return the start of each."""
    follow(tasks, sequence, 0, sequence.least, np.inf)
    start = np.empty(len(sequence.order))
    for v in range(len(start)):
        if sequence.cause[v] < NOTHING:
            start[v] = sequence.finish[waited_for(sequence, v)]
        else:
            start[v] = ready_at(tasks, sequence.place, sequence.finish, v, sequence.place[v])
    return start


@inlined_kernel
def waited_for(sequence: Sequence, v: int) -> int:
    """Task that v's start waited for, as sender or on its core; -1 if there is none."""
    cause: int = sequence.cause[v]
    return cause if cause >= NOTHING else ~(cause + 1)


@inlined_kernel
def tail_of(tasks: Tasks, sequence: Sequence, v: int) -> float:
    """Least seconds after the finish of v, given the tails of its successors."""
    longest = 0.0
    for e in range(tasks.out_start[v], tasks.out_end[v]):
        u = tasks.target[e]
        b = sequence.place[u]
        after = transfer(tasks, e, sequence.place[v], b) + tasks.work[u, b] + sequence.tail[u]
        longest = max(longest, after)
    return longest


@borrowing_kernel
def bring(sequence: Sequence, v: int, to: int) -> None:
    """Move task v to another position, and shift the tasks between."""
    order, position = sequence.order, sequence.position
    i = position[v]
    while i < to:
        order[i] = order[i + 1]
        position[order[i]] = i
        i += 1
    while i > to:
        order[i] = order[i - 1]
        position[order[i]] = i
        i -= 1
    order[to] = v
    position[v] = to


@borrowing_kernel
def earliest(tasks: Tasks, sequence: Sequence, v: int) -> int:
    """First position that v may have, after all its predecessors."""
    first = 0
    for k in range(tasks.in_start[v], tasks.in_start[v + 1]):
        first = max(first, sequence.position[tasks.source[tasks.in_stream[k]]] + 1)
    return first


@borrowing_kernel
def latest(tasks: Tasks, sequence: Sequence, v: int) -> int:
    """Last position that v may have, before all its successors."""
    last = len(sequence.order) - 1
    for e in range(tasks.out_start[v], tasks.out_end[v]):
        last = min(last, sequence.position[tasks.target[e]] - 1)
    return last


class NonDelay(NamedTuple):
    """Buffers for the non-delay makespan."""

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
    non_delay.head[:] = NOTHING
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
    best, before_best, before = NOTHING, NOTHING, NOTHING
    v = non_delay.head[a]
    while v != NOTHING:
        first = best == NOTHING or sequence.position[v] < sequence.position[best]
        if non_delay.ready[v] <= non_delay.soonest[a] and first:
            best, before_best = v, before
        before = v
        v = non_delay.following[v]
    if before_best == NOTHING:
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
    while v != NOTHING:
        soonest = min(soonest, max(free, non_delay.ready[v]))
        v = non_delay.following[v]
    non_delay.soonest[a] = soonest
