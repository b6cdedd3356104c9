"""The scheduling problem of one pass: tasks, streams between them, and allowed devices.

The network has no contention: the time of a transfer does not depend on others, as in HEFT and its
family. The simulator evaluates schedules under other networks.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from streamsim import _core
from streamsim.arrays import WithCoreCopy
from streamsim.passes.sending import fixed_times, sending_times

from streamplace.model.arrays import Floats, Ints
from streamplace.model.keep_apart import rival_columns
from streamplace.model.mixins import kept
from streamplace.model.problem import Problem


class _TasksColumns(NamedTuple):
    work: Floats  # [N, D] seconds, infinite where a task may not run
    order: Ints  # [N] topological
    in_start: Ints  # [N + 1] streams into v: in_streams[in_start[v]:in_start[v + 1]]
    in_streams: Ints  # [E]
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


class Tasks(WithCoreCopy, _TasksColumns):
    """N tasks, E streams between them, D devices, K cores, U units of tasks that stay together."""

    @cached_property
    def core(self) -> _core.Tasks:
        """The core's copy of the arrays, made and checked at the first use."""
        return _core.Tasks(self)

    @property
    def n_tasks(self) -> int:
        """Number of tasks, N."""
        return len(self.work)

    @property
    def n_devices(self) -> int:
        """Number of devices, D."""
        return len(self.latency)


@kept
def tasks_of(problem: Problem) -> Tasks:
    """Tasks of a problem under its rules, compiled once and cached."""
    one_pass, instance, rules = problem.one_pass, problem.instance, problem.rules
    n, none = problem.n_operators, np.zeros(0)
    work = one_pass.work.take(instance.device_type, axis=1)
    unit, n_units, memory, room = np.arange(n, dtype=np.int32), n, none, none
    apart = np.zeros((0, 2), np.int32)
    if rules is not None:
        work = np.where(rules.allowed[rules.unit], work, np.inf)
        unit, n_units, apart = np.array(rules.unit, np.int32), rules.n_units, rules.apart
        if rules.memory is not None and rules.room is not None:
            memory, room = np.array(rules.memory), np.array(rules.room)
    rival_start, rivals = (column.astype(np.int32) for column in rival_columns(apart, n_units))
    member_start, members = _core.group_by(unit, n_units)
    core_start = np.zeros(problem.n_devices + 1, np.int32)
    np.cumsum(one_pass.devices["cores"], out=core_start[1:])
    return Tasks(
        work=np.ascontiguousarray(work),
        order=instance.order,
        in_start=instance.in_start,
        in_streams=instance.in_streams,
        out_start=instance.out_start,
        out_end=instance.out_end,
        source=instance.source,
        target=instance.target,
        size=np.array(one_pass.streams["size"]),
        fixed_s=fixed_times(one_pass),
        latency=np.array(one_pass.links["latency"]),
        wire=np.array(one_pass.links["seconds_per_byte"]),
        core_start=core_start,
        unit=unit,
        member_start=member_start,
        members=members,
        rival_start=rival_start,
        rivals=rivals,
        memory=memory,
        room=room,
    )


def transfer(tasks: Tasks, e: int, a: int, b: int) -> float:
    """Transfer time of stream e from device a to device b, in seconds."""
    if a == b:
        return 0.0
    of_link = tasks.latency[a, b], tasks.size[e], tasks.wire[a, b]
    return float(sending_times(*of_link, tasks.fixed_s[e]))


def mean_sendings(tasks: Tasks) -> Floats:
    """Transfer times of all streams over the mean link [E], in seconds."""
    latency, wire = _core.mean_transfer(tasks.core)
    return sending_times(latency, tasks.size, wire, tasks.fixed_s)


def mean_work(tasks: Tasks) -> Floats:
    """Mean seconds of every task over the devices that may run it, shape [N]."""
    return _core.mean_work(tasks.core)
