"""Scheduling by earliest start: maps the pair of ready task and device that can start first.

A task may have a *favourite* among its successors. The core that ran the task is then reserved for
the favourite until the favourite could start elsewhere as well.
"""

from typing import NamedTuple

import numpy as np
from streamsim.jit import borrowing_kernel, kernel

from streamplace.model.arrays import Bools, Floats, Ints
from streamplace.scheduling.insertion import NOWHERE, ListSchedule, find_open, give_home, ready_at
from streamplace.scheduling.tasks import Tasks, mean_sending, mean_transfer


class Queue(NamedTuple):
    """Ready tasks, and the state of cores and devices."""

    ready: Ints  # [N] tasks
    size: Ints  # [1] number of ready tasks
    waiting: Ints  # [N] number of missing inputs
    free: Floats  # [K] time at which each core is free
    kept_for: Ints  # [K] favourite of the last task, or -1
    kept_until: Floats  # [K] end of the reservation
    home: Ints  # [U] device of every unit, or -1
    used: Floats  # [D] bytes
    may: Bools  # [D] buffer


@kernel
def start_soonest(tasks: Tasks, rank: Floats, favourite: Ints) -> ListSchedule:
    """Schedule the tasks by earliest start; ties are broken by the highest rank."""
    n = len(tasks.work)
    place, start, finish = np.full(n, NOWHERE, np.int32), np.zeros(n), np.zeros(n)
    queue = _new_queue(tasks)
    latency, wire = mean_transfer(tasks)
    for _ in range(n):
        at, a, core, begin = _soonest(tasks, queue, place, finish, rank)
        if at < 0:
            break
        v = queue.ready[at]
        place[v], start[v], finish[v] = a, begin, begin + tasks.work[v, a]
        queue.free[core], queue.kept_for[core] = finish[v], favourite[v]
        if favourite[v] >= 0:
            sending = _sending(tasks, v, favourite[v], latency, wire)
            queue.kept_until[core] = finish[v] + sending
        _leave(tasks, queue, at, v, a)
    return ListSchedule(place, start, finish)


@kernel
def _new_queue(tasks: Tasks) -> Queue:
    n, d = tasks.work.shape
    k = tasks.core_start[d]
    queue = Queue(
        np.empty(n, np.int32),
        np.zeros(1, np.int32),
        np.diff(tasks.in_start),
        np.zeros(k),
        np.full(k, NOWHERE, np.int32),
        np.zeros(k),
        np.full(len(tasks.member_start) - 1, NOWHERE, np.int32),
        np.zeros(d),
        np.ones(d, np.bool_),
    )
    for v in range(n):
        if queue.waiting[v] == 0:
            queue.ready[queue.size[0]] = v
            queue.size[0] += 1
    return queue


@borrowing_kernel
def _soonest(
    tasks: Tasks, queue: Queue, place: Ints, finish: Floats, rank: Floats
) -> tuple[int, int, int, float]:
    """Position of the ready task, device, core and start of the pair that starts first."""
    best, device, core, soonest = -1, -1, -1, np.inf
    for i in range(queue.size[0]):
        v = queue.ready[i]
        find_open(tasks, queue.home, queue.used, tasks.unit[v], queue.may)
        for a in range(len(queue.may)):
            if not queue.may[a] or tasks.work[v, a] == np.inf:
                continue
            c, begin = _start_on(tasks, queue, v, a, ready_at(tasks, place, finish, v, a))
            if begin < soonest or (begin == soonest and rank[v] > rank[queue.ready[best]]):
                best, device, core, soonest = i, a, c, begin
    return best, device, core, soonest


@borrowing_kernel
def _start_on(tasks: Tasks, queue: Queue, v: int, a: int, ready: float) -> tuple[int, float]:
    """Core of device a on which v can start earliest, and the start."""
    core, soonest = -1, np.inf
    for c in range(tasks.core_start[a], tasks.core_start[a + 1]):
        begin = max(ready, queue.free[c])
        favourite = queue.kept_for[c]
        if favourite >= 0 and favourite != v:
            begin = max(begin, queue.kept_until[c])
        if begin < soonest:
            core, soonest = c, begin
    return core, soonest


@borrowing_kernel
def _leave(tasks: Tasks, queue: Queue, at: int, v: int, a: int) -> None:
    """Remove a task that runs on device a from the queue, and add successors that became ready."""
    u = tasks.unit[v]
    give_home(tasks, queue.home, queue.used, u, a)
    queue.size[0] -= 1
    queue.ready[at] = queue.ready[queue.size[0]]
    for e in range(tasks.out_start[v], tasks.out_end[v]):
        w = tasks.target[e]
        queue.waiting[w] -= 1
        if queue.waiting[w] == 0:
            queue.ready[queue.size[0]] = w
            queue.size[0] += 1
    for c in range(len(queue.kept_for)):
        if queue.kept_for[c] == v:
            queue.kept_for[c] = NOWHERE


@borrowing_kernel
def _sending(tasks: Tasks, v: int, w: int, latency: float, wire: float) -> float:
    """Longest mean transfer time of the streams from v to w, in seconds."""
    longest = 0.0
    for e in range(tasks.out_start[v], tasks.out_end[v]):
        if tasks.target[e] == w:
            longest = max(longest, mean_sending(tasks, e, latency, wire))
    return longest
