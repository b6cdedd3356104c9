"""The scheduling problem of one pass, and which devices its rules leave open."""

from typing import NamedTuple

from streamplace.learn.numba_kernels.jit import borrowing_kernel, inlined_kernel
from streamplace.model.arrays import Bools, Floats, Ints
from streamplace.model.devices import SLACK
from streamplace.model.problem import Problem
from streamplace.scheduling.tasks import tasks_of as scheduling_tasks_of


class TaskColumns(NamedTuple):
    """Columns of `streamplace.scheduling.tasks.Tasks`."""

    work: Floats  # [N, D] seconds, infinite where a task may not run
    order: Ints  # [N] topological
    in_start: Ints  # [N + 1] streams into v: in_stream[in_start[v]:in_start[v + 1]]
    in_stream: Ints  # [E]
    out_start: Ints  # [N] first stream out of a task
    out_end: Ints  # [N]
    source: Ints  # [E]
    target: Ints  # [E]
    size: Floats  # [E] bytes
    fixed_s: Floats  # [E] seconds of a transfer that do not depend on the link
    latency: Floats  # [D, D] seconds
    wire: Floats  # [D, D] seconds per byte
    core_start: Ints  # [D + 1] the cores of d are core_start[d]:core_start[d + 1]
    unit: Ints  # [N]
    member_start: Ints  # [U + 1] the tasks of a unit are members[member_start[u]:…]
    members: Ints  # [N]
    rival_start: Ints  # [U + 1] the units that u must not meet are rivals[rival_start[u]:…]
    rivals: Ints
    memory: Floats  # [U] bytes, or [0] if memory is unlimited
    room: Floats  # [D] bytes

    @property
    def n_tasks(self) -> int:
        """Number of tasks, N."""
        return len(self.work)


def tasks_of(problem: Problem) -> TaskColumns:
    """Tasks of a problem under its rules."""
    compiled = scheduling_tasks_of(problem)
    return TaskColumns(*(getattr(compiled, name) for name in TaskColumns._fields))


@inlined_kernel
def transfer(tasks: TaskColumns, e: int, a: int, b: int) -> float:
    """Transfer time of stream e from device a to device b, in seconds."""
    if a == b:
        return 0.0
    seconds: float = tasks.latency[a, b] + tasks.size[e] * tasks.wire[a, b] + tasks.fixed_s[e]
    return seconds


@inlined_kernel
def free_core(tasks: TaskColumns, free: Floats, a: int) -> int:
    """Core of device a that is free first; ``free`` [K] is when each core is free."""
    c = tasks.core_start[a]
    for other in range(c + 1, tasks.core_start[a + 1]):
        if free[other] < free[c]:
            c = other
    return c


@borrowing_kernel
def find_open(tasks: TaskColumns, home: Ints, used: Floats, u: int, may: Bools) -> None:
    """Find the devices open to unit u: its home, or else all with enough memory and no rival.

    Whether its tasks may run there at all shows in their work, which is then finite.
    """
    for a in range(len(may)):
        may[a] = home[u] < 0 or home[u] == a
        if home[u] < 0 and len(tasks.memory):
            may[a] = used[a] + tasks.memory[u] <= tasks.room[a] * (1 + SLACK)
    if home[u] >= 0:
        return
    for i in range(tasks.rival_start[u], tasks.rival_start[u + 1]):
        if home[tasks.rivals[i]] >= 0:
            may[home[tasks.rivals[i]]] = False


@borrowing_kernel
def give_home(tasks: TaskColumns, home: Ints, used: Floats, u: int, a: int) -> None:
    """Make device a the home of unit u, if it has none yet, and take the unit's memory there."""
    if home[u] < 0:
        home[u] = a
        if len(tasks.memory):
            used[a] += tasks.memory[u]
