"""The scheduling problem of one pass."""

from typing import NamedTuple

from streamplace.learn.numba_kernels.jit import inlined_kernel
from streamplace.model.arrays import Floats, Ints
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
