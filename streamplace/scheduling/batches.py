"""Batch scheduling: maps all ready tasks as a batch, then the tasks that became ready.

The tasks of a batch are mapped one at a time, each to the core where it finishes earliest; rules
differ in which task comes next. Mapping a task changes the earliest finish only of tasks that would
use the same device or belong to the same unit, so a batch of n tasks examines about n² / D devices
instead of n² D.
"""

from typing import Final, NamedTuple

import numpy as np
from streamsim.array_copies import copy_row
from streamsim.jit import borrowing_kernel, kernel

from streamplace.model.arrays import Bools, Floats, Ints
from streamplace.scheduling.insertion import NOWHERE, ListSchedule, find_open, give_home, ready_on
from streamplace.scheduling.ranks import comes_before
from streamplace.scheduling.tasks import Tasks, free_core

#: Task of a batch that comes next: with the least or the greatest earliest finish, or with the
#: largest loss on its second-best device.
LEAST, GREATEST, HARM = range(3)
RULES: Final = {"min-min": LEAST, "max-min": GREATEST, "sufferage": HARM}


class Batch(NamedTuple):
    """Tasks of a batch, their earliest finishes, and the state of devices."""

    tasks: Ints  # [N]
    ready: Floats  # [N, D] when all inputs of a task are on a device
    first: Floats  # [N] earliest finish
    second: Floats  # [N] earliest finish on another device
    device: Ints  # [N] of the earliest finish, or -1
    other: Ints  # [N] of the second
    free: Floats  # [K] time at which each core is free
    home: Ints  # [U] device of every unit, or -1
    used: Floats  # [D] bytes
    may: Bools  # [D] buffer


@kernel
def by_batches(tasks: Tasks, rule: int, rank: Floats) -> ListSchedule:
    """Schedule batch after batch; ties within the rule are broken by the highest rank."""
    n = len(tasks.work)
    place, start, finish = np.full(n, NOWHERE, np.int32), np.zeros(n), np.zeros(n)
    batch = _new_batch(tasks)
    waiting = np.diff(tasks.in_start)
    following = np.empty(n, np.int32)
    size = 0
    for v in range(n):
        if waiting[v] == 0:
            batch.tasks[size] = v
            size += 1
    while size > 0:
        for i in range(size):
            v = batch.tasks[i]
            ready_on(tasks, place, finish, v, batch.ready[v])
            _find_earliest(tasks, batch, v)
        count = 0
        while size > 0:
            at = _next(batch, size, rule, rank)
            v = batch.tasks[at]
            a = batch.device[v]
            if a < 0:
                return ListSchedule(place, start, finish)
            size -= 1
            batch.tasks[at] = batch.tasks[size]
            place[v], finish[v] = a, batch.first[v]
            start[v] = finish[v] - tasks.work[v, a]
            _settle(tasks, batch, size, v, a)
            for e in range(tasks.out_start[v], tasks.out_end[v]):
                u = tasks.target[e]
                waiting[u] -= 1
                if waiting[u] == 0:
                    following[count] = u
                    count += 1
        size = count
        copy_row(batch.tasks[:size], following)
    return ListSchedule(place, start, finish)


@kernel
def _new_batch(tasks: Tasks) -> Batch:
    n, d = tasks.work.shape
    return Batch(
        np.empty(n, np.int32),
        np.empty((n, d)),
        np.empty(n),
        np.empty(n),
        np.full(n, NOWHERE, np.int32),
        np.full(n, NOWHERE, np.int32),
        np.zeros(tasks.core_start[d]),
        np.full(len(tasks.member_start) - 1, NOWHERE, np.int32),
        np.zeros(d),
        np.ones(d, np.bool_),
    )


@borrowing_kernel
def _find_earliest(tasks: Tasks, batch: Batch, v: int) -> None:
    """Find the two devices on which a task finishes earliest."""
    find_open(tasks, batch.home, batch.used, tasks.unit[v], batch.may)
    first, second, device, other = np.inf, np.inf, NOWHERE, NOWHERE
    for a in range(len(batch.may)):
        if not batch.may[a]:
            continue
        c = free_core(tasks, batch.free, a)
        end = max(batch.ready[v, a], batch.free[c]) + tasks.work[v, a]
        if end < first:
            first, second, device, other = end, first, a, device
        elif end < second:
            second, other = end, a
    batch.first[v], batch.second[v] = first, second
    batch.device[v], batch.other[v] = device, other


@borrowing_kernel
def _next(batch: Batch, size: int, rule: int, rank: Floats) -> int:
    best, least = 0, np.inf
    for i in range(size):
        v = batch.tasks[i]
        cost = batch.first[v]
        if batch.device[v] < 0:
            return i
        if rule == GREATEST:
            cost = -cost
        elif rule == HARM:
            cost -= batch.second[v]
        if cost < least or i == 0:
            best, least = i, cost
        elif cost == least and comes_before(rank, v, batch.tasks[best]):
            best = i
    return best


@borrowing_kernel
def _settle(tasks: Tasks, batch: Batch, size: int, v: int, a: int) -> None:
    """Map a task to a device, and update the tasks of the batch that this affects."""
    unit = tasks.unit[v]
    batch.free[free_core(tasks, batch.free, a)] = batch.first[v]
    give_home(tasks, batch.home, batch.used, unit, a)
    for i in range(size):
        u = batch.tasks[i]
        if batch.device[u] == a or batch.other[u] == a or tasks.unit[u] == unit:
            _find_earliest(tasks, batch, u)
