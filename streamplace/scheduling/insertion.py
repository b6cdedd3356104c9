"""List scheduling with insertion: maps each task in turn to the core where it finishes earliest.

The idle times of a core are a list of gaps, the last of which has no end. Gaps too short for any
task are dropped, so that the lists stay short, and the first gap that ends late enough is found by
bisection: a million tasks take seconds. A task without cost also fits between two tasks without a
gap: if there are such tasks, the times at which one task follows another are in their own list.

`latest_starts` gives the slack of a schedule.
"""

from typing import NamedTuple

import numpy as np
from streamsim import _core
from streamsim.array_copies import copy_row
from streamsim.jit import borrowing_kernel, kernel
from streamsim.passes.sending import sending_seconds

from streamplace.model.arrays import Bools, Floats, Ints
from streamplace.model.devices import SLACK
from streamplace.scheduling.tasks import Tasks, transfer

FIRST_GAPS = 8
NOWHERE = -1


class ListSchedule(NamedTuple):
    """Device, start and finish of every task."""

    place: Ints  # [N] device, or -1 where a task found none
    start: Floats  # [N]
    finish: Floats  # [N]

    @property
    def complete(self) -> bool:
        """Whether every task has a device."""
        return not np.count_nonzero(self.place < 0)


class Gaps(NamedTuple):
    """Idle times of every core, in order; the last has no end."""

    start: Floats  # [K, G]
    end: Floats  # [K, G]
    size: Ints  # [K] number of gaps
    joint: Floats  # [K, G] times outside gaps at which a task without cost fits, in order
    joints: Ints  # [K] number of them


class Choice(NamedTuple):
    """Rule for choosing a device: earliest finish plus ``ahead``."""

    ahead: Floats  # [N, D] seconds expected after a task on a device, or [0, 0] for none
    forced: Ints  # [N] device on which a task must run, or -1
    insertion: bool  # whether gaps between tasks may be used


def plain_choice(n: int, insertion: bool) -> Choice:
    """Return the rule of the earliest finish."""
    return Choice(np.zeros((0, 0)), np.full(n, NOWHERE, np.int32), insertion)


def insert_all(tasks: Tasks, order: Ints, choice: Choice) -> ListSchedule:
    """Schedule the tasks in a topological order."""
    return ListSchedule(*_core.insert_all(tasks.core, order, choice))


def by_upward_rank(tasks: Tasks, insertion: bool) -> ListSchedule:
    """Schedule of HEFT, in one call because calls dominate on small graphs."""
    return ListSchedule(*_core.by_upward_rank(tasks.core, insertion))


def latest_starts(tasks: Tasks, schedule: ListSchedule) -> Floats:
    """Latest start of every task with the same makespan and devices, in the order of the schedule.

    On devices with several cores, the order does not count.
    """
    return _core.latest_starts(tasks.core, schedule)


@borrowing_kernel
def ready_on(tasks: Tasks, place: Ints, finish: Floats, v: int, ready: Floats) -> None:
    """Compute the time at which all inputs of v are on each device; see `ready_at`."""
    ready[:] = 0.0
    for i in range(tasks.in_start[v], tasks.in_start[v + 1]):
        e = tasks.in_stream[i]
        u = tasks.source[e]
        here, end, size, fixed_s = place[u], finish[u], tasks.size[e], tasks.fixed_s[e]
        at_home = max(ready[here], end)
        for a in range(len(ready)):
            latency, wire = tasks.latency[here, a], tasks.wire[here, a]
            there = end + sending_seconds(latency, size, wire, fixed_s)
            if there > ready[a]:
                ready[a] = there
        ready[here] = at_home


@borrowing_kernel
def find_open(tasks: Tasks, home: Ints, used: Floats, u: int, may: Bools) -> None:
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
def give_home(tasks: Tasks, home: Ints, used: Floats, u: int, a: int) -> None:
    """Make device a the home of unit u, if it has none yet, and take the unit's memory there."""
    if home[u] < 0:
        home[u] = a
        if len(tasks.memory):
            used[a] += tasks.memory[u]


@borrowing_kernel
def ready_at(tasks: Tasks, place: Ints, finish: Floats, v: int, a: int) -> float:
    """Time at which all inputs of v are on device a."""
    ready = 0.0
    for i in range(tasks.in_start[v], tasks.in_start[v + 1]):
        e = tasks.in_stream[i]
        u = tasks.source[e]
        ready = max(ready, finish[u] + transfer(tasks, e, place[u], a))
    return ready


@kernel
def all_free(tasks: Tasks) -> Gaps:
    """Gaps of idle cores."""
    cores = tasks.core_start[-1]
    start, end = np.zeros((cores, FIRST_GAPS)), np.full((cores, FIRST_GAPS), np.inf)
    joint, joints = np.zeros((cores, FIRST_GAPS)), np.zeros(cores, np.int32)
    return Gaps(start, end, np.ones(cores, np.int32), joint, joints)


@borrowing_kernel
def earliest_on(
    tasks: Tasks, gaps: Gaps, a: int, ready: float, work: float, insertion: bool
) -> tuple[int, int, float]:
    """Core of device a and gap with the earliest start of a task, and the start.

    The gap is -1 where a task without cost fits between two others.
    """
    best, best_gap, best_start = -1, -1, np.inf
    for c in range(tasks.core_start[a], tasks.core_start[a + 1]):
        last = gaps.size[c] - 1
        g = last
        if insertion:
            g = _first_from(gaps.end, c, gaps.size[c], ready)
            while max(ready, gaps.start[c, g]) + work > gaps.end[c, g]:
                g += 1
        begin = max(ready, gaps.start[c, g])
        if insertion and work == 0.0 and gaps.joints[c] > 0:
            joint = gaps.joint[c, _first_from(gaps.joint, c, gaps.joints[c], ready)]
            if ready <= joint < begin:
                g, begin = NOWHERE, joint
        if begin < best_start:
            best, best_gap, best_start = c, g, begin
    return best, best_gap, best_start


@borrowing_kernel
def _first_from(times: Floats, c: int, size: int, ready: float) -> int:
    """First of the ascending times of core c that is not before ``ready``, or the last of all."""
    low, high = 0, size - 1
    while low < high:
        middle = (low + high) // 2
        if times[c, middle] >= ready:
            high = middle
        else:
            low = middle + 1
    return low


@borrowing_kernel
def take(gaps: Gaps, c: int, g: int, start: float, finish: float, shortest: float) -> None:
    """Remove a time from a gap, which leaves two gaps, one or none.

    Gaps below the ``shortest`` work of any task are useless.
    """
    if g < 0:  # a task without cost, between two others
        return
    before = start - gaps.start[c, g] >= shortest and start > gaps.start[c, g]
    after = g == gaps.size[c] - 1 or (
        gaps.end[c, g] - finish >= shortest and gaps.end[c, g] > finish
    )
    if shortest == 0.0 and finish > start:
        if not before:
            _join(gaps, c, start)
        if not after:
            _join(gaps, c, finish)
    if before and after:
        for i in range(gaps.size[c], g + 1, -1):
            gaps.start[c, i], gaps.end[c, i] = gaps.start[c, i - 1], gaps.end[c, i - 1]
        gaps.size[c] += 1
        gaps.start[c, g + 1], gaps.end[c, g + 1] = finish, gaps.end[c, g]
        gaps.end[c, g] = start
    elif before:
        gaps.end[c, g] = start
    elif after:
        gaps.start[c, g] = finish
    else:
        for i in range(g, gaps.size[c] - 1):
            gaps.start[c, i], gaps.end[c, i] = gaps.start[c, i + 1], gaps.end[c, i + 1]
        gaps.size[c] -= 1


@borrowing_kernel
def _join(gaps: Gaps, c: int, time: float) -> None:
    """Note a time at which one task follows another without a gap."""
    i = gaps.joints[c]
    while i > 0 and gaps.joint[c, i - 1] > time:
        gaps.joint[c, i] = gaps.joint[c, i - 1]
        i -= 1
    gaps.joint[c, i] = time
    gaps.joints[c] += 1


@borrowing_kernel
def is_full(gaps: Gaps, c: int) -> bool:
    """Whether the arrays may be too short for another task on core c."""
    full: bool = max(gaps.size[c], gaps.joints[c] + 1) + 1 >= gaps.start.shape[1]
    return full


@kernel
def wider(gaps: Gaps) -> Gaps:
    """Copy the gaps into arrays of twice the length."""
    cores, room = gaps.start.shape
    start, end = np.zeros((cores, 2 * room)), np.full((cores, 2 * room), np.inf)
    joint = np.zeros((cores, 2 * room))
    for c in range(cores):
        copy_row(start[c, :room], gaps.start[c])
        copy_row(end[c, :room], gaps.end[c])
        copy_row(joint[c, :room], gaps.joint[c])
    return Gaps(start, end, gaps.size, joint, gaps.joints)
