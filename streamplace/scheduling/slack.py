"""Slack: the latest starts of tasks that keep the makespan of a schedule."""

import numpy as np
from streamsim.jit import kernel

from streamplace.model.arrays import Floats, Ints
from streamplace.scheduling.insertion import ListSchedule
from streamplace.scheduling.tasks import Tasks, transfer


@kernel
def latest_starts(tasks: Tasks, schedule: ListSchedule) -> Floats:
    """Latest start of every task with the same makespan, devices and order."""
    n = len(tasks.order)
    begin = np.empty(n)
    makespan = schedule.finish.max()
    free = np.full(len(tasks.latency), makespan)
    for v in _backwards(schedule.finish, tasks.order):
        a = schedule.place[v]
        alone = tasks.core_start[a + 1] - tasks.core_start[a] == 1
        end = free[a] if alone else makespan
        for e in range(tasks.out_start[v], tasks.out_end[v]):
            u = tasks.target[e]
            end = min(end, begin[u] - transfer(tasks, e, a, schedule.place[u]))
        begin[v] = end - tasks.work[v, a]
        if alone:
            free[a] = begin[v]
    return begin


@kernel
def _backwards(finish: Floats, order: Ints) -> Ints:
    """Tasks by falling finish, successors before predecessors."""
    turned = order[::-1].copy()
    return turned[np.argsort(-finish[turned], kind="mergesort")]
