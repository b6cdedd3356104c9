"""Moves of single tasks under the constraints, with all other tasks fixed."""

import numpy as np
from streamsim.jit import borrowing_kernel, kernel

from streamplace.model.arrays import Floats, Ints
from streamplace.model.devices import SLACK
from streamplace.scheduling.tasks import Tasks


@kernel
def memory_used(tasks: Tasks, place: Ints) -> Floats:
    """Bytes in use on every device, [0] where memory does not limit."""
    used = np.zeros(len(tasks.room))
    for u in range(len(tasks.memory)):
        used[place[tasks.members[tasks.member_start[u]]]] += tasks.memory[u]
    return used


@borrowing_kernel
def may(tasks: Tasks, place: Ints, used: Floats, u: int, d: int) -> bool:
    """Whether unit u may move to device d, with all others fixed."""
    first = tasks.members[tasks.member_start[u]]
    if tasks.work[first, d] == np.inf:
        return False
    if place[first] == d:
        return True
    for i in range(tasks.rival_start[u], tasks.rival_start[u + 1]):
        if place[tasks.members[tasks.member_start[tasks.rivals[i]]]] == d:
            return False
    return len(tasks.memory) == 0 or used[d] + tasks.memory[u] <= tasks.room[d] * (1 + SLACK)


@borrowing_kernel
def put(tasks: Tasks, place: Ints, v: int, d: int) -> None:
    """Move task v to device d, with the tasks colocated with it."""
    unit = tasks.unit[v]
    for i in range(tasks.member_start[unit], tasks.member_start[unit + 1]):
        place[tasks.members[i]] = d
