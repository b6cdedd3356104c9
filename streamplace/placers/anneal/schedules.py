"""Schedules under moves, and their annealing, for searches of the shortest pass.

A schedule is the device of every task and one topological order of all tasks, in which every core
runs its tasks. Moving a task changes nothing before the first affected position, and later tasks
are timed only while the makespan can still be short enough: a task that finishes too late for its
tail ends the trial.

The non-delay makespan of a sequence is that of cores that never wait while a task is ready, as in
the simulator: a free core runs the ready task of its device that comes first in the order, even if
waiting for another task would be better. The pass may therefore take longer than the sequence, or
shorter. Devices that hold the order take exactly as long as the sequence.

Most moves concern the critical chain, which alone decides the makespan: a task of it moves to
another device, often that of a neighbour, or before the task that it waits for on its core;
sometimes neighbours move along. The largest acceptable makespan is drawn before a move is tried,
so that most rejections are known after timing a few tasks.
"""

from typing import NamedTuple

import numpy as np
from streamsim.jit import borrowing_kernel, inlined_kernel, kernel

from streamplace.model.arrays import TIE, Floats, Ints, Words
from streamplace.model.devices import SLACK
from streamplace.placers.anneal.walk import choose, uniform
from streamplace.scheduling.insertion import ready_at
from streamplace.scheduling.tasks import Tasks, free_core, transfer

NOTHING = -1

# Indices of `Anneal.numbers`.
CURRENT, BEST, TEMPERATURE, COOLING, MOVED = range(5)

ON_CHAIN = 0.85
"""Share of moves of tasks on the critical chain."""
REORDER = 0.3
TOGETHER, CLUSTERS, MOST_UNITS = 0.25, 0.6, 16
"""Share of moves of several units, the share of connected groups among these, and the most units of
a group."""
BESIDE = 0.5
"""Share of moves to the device of a neighbour."""
BACK = 0.1
"""Share of moves to the device with the least moving cost, if moving costs count."""
REPLACED = 0.4
"""Share of moves to another device that also draw a new position."""


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
        begin, cause = 0.0, NOTHING
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
    non_delay.ready[:] = 0.0
    for v in range(n):
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


class Anneal(NamedTuple):
    """A search that can be paused."""

    sequence: Sequence
    non_delay: NonDelay
    best_order: Ints  # [N]
    best_place: Ints  # [N]
    used: Floats  # [D] bytes of memory, if limited
    group: Ints  # [MOST_UNITS] units of the move under trial
    homes: Ints  # [MOST_UNITS] their devices before the move
    random: Words  # [1]
    numbers: Floats  # [5]
    moving: Floats  # [N, D] additional cost of a task on a device in seconds, or [0, 0]


@kernel
def restart(tasks: Tasks, anneal: Anneal, order: Ints, place: Ints) -> None:
    """Continue the search from a schedule."""
    sequence = anneal.sequence
    for i in range(len(order)):
        sequence.order[i] = order[i]
        sequence.position[order[i]] = i
        sequence.place[i] = place[i]
    makespan, _ = follow(tasks, sequence, 0, sequence.least, np.inf)
    settle(tasks, sequence)
    anneal.used[:] = 0.0
    for u in range(len(tasks.memory)):
        anneal.used[sequence.place[tasks.members[tasks.member_start[u]]]] += tasks.memory[u]
    _stand(tasks, anneal, makespan)


@kernel
def search(tasks: Tasks, anneal: Anneal, steps: int) -> None:
    """Try ``steps`` moves."""
    for _ in range(steps):
        anneal.numbers[TEMPERATURE] *= anneal.numbers[COOLING]
        _try(tasks, anneal)


@borrowing_kernel
def _try(tasks: Tasks, anneal: Anneal) -> None:
    """Draw a move, and accept it if the resulting makespan is short enough."""
    sequence, random, numbers = anneal.sequence, anneal.random, anneal.numbers
    if uniform(random) < ON_CHAIN:
        v = sequence.chain[choose(random, sequence.length[0])]
    else:
        v = choose(random, len(sequence.order))
    limit = numbers[CURRENT] - numbers[TEMPERATURE] * np.log(1.0 - uniform(random))
    limit = limit * (1.0 + TIE) - numbers[MOVED]
    if uniform(random) < REORDER:
        _reorder(tasks, anneal, v, limit)
        return
    b = _drawn_device(tasks, anneal, v)
    if b == sequence.place[v] or tasks.work[v, b] == np.inf:
        return
    _relocate(tasks, anneal, v, b, limit)


@borrowing_kernel
def _reorder(tasks: Tasks, anneal: Anneal, v: int, limit: float) -> None:
    """Move a task to another position: before the task that its core ran before it, or random."""
    sequence = anneal.sequence
    first, old = earliest(tasks, sequence, v), sequence.position[v]
    to = first
    if sequence.cause[v] < NOTHING:
        to = sequence.position[waited_for(sequence, v)]
    if to <= first:
        to = first + choose(anneal.random, latest(tasks, sequence, v) - first + 1)
    if to == old:
        return
    bring(sequence, v, to)
    begin = min(old, to)
    makespan, end = follow(tasks, sequence, begin, sequence.tail, limit)
    if makespan < np.inf:
        _take(tasks, anneal, makespan)
        return
    restore(sequence, begin, end)
    bring(sequence, v, old)


@inlined_kernel
def _drawn_device(tasks: Tasks, anneal: Anneal, v: int) -> int:
    """Draw a device: any, that of a neighbour, or the one with the least moving cost."""
    random, n_in = anneal.random, tasks.in_start[v + 1] - tasks.in_start[v]
    if len(anneal.moving) and uniform(random) < BACK:
        return int(np.argmin(anneal.moving[v]))
    n_out = tasks.out_end[v] - tasks.out_start[v]
    if n_in + n_out > 0 and uniform(random) < BESIDE:
        u = _neighbour(tasks, v, choose(random, n_in + n_out))
        b: int = anneal.sequence.place[u]
        return b
    return choose(random, len(tasks.latency))


@inlined_kernel
def _neighbour(tasks: Tasks, v: int, i: int) -> int:
    """Neighbour i of task v, predecessors first."""
    n_in = tasks.in_start[v + 1] - tasks.in_start[v]
    if i < n_in:
        u: int = tasks.source[tasks.in_stream[tasks.in_start[v] + i]]
        return u
    w: int = tasks.target[tasks.out_start[v] + i - n_in]
    return w


@borrowing_kernel
def _relocate(tasks: Tasks, anneal: Anneal, v: int, b: int, limit: float) -> None:
    """Move the unit of a task, and possibly others, to another device."""
    sequence, u = anneal.sequence, tasks.unit[v]
    size = _gather(tasks, anneal, v, b)
    if size > 1 or tasks.member_start[u + 1] - tasks.member_start[u] > 1:
        _move_units(tasks, anneal, size, b, limit)
        return
    if not _may_move(tasks, anneal, 1, b):
        return
    a, old, tail = sequence.place[v], sequence.position[v], sequence.tail[v]
    to = old
    limit -= _dearer(tasks, anneal, 1, b)
    sequence.place[v] = b
    sequence.tail[v] = tail_of(tasks, sequence, v)
    if uniform(anneal.random) < REPLACED:
        first = earliest(tasks, sequence, v)
        to = first + choose(anneal.random, latest(tasks, sequence, v) - first + 1)
        bring(sequence, v, to)
    begin = min(old, to)
    makespan, end = follow(tasks, sequence, begin, sequence.tail, limit)
    if makespan < np.inf:
        _take_room(tasks, anneal, 1, b)
        _take(tasks, anneal, makespan)
        return
    restore(sequence, begin, end)
    bring(sequence, v, old)
    sequence.place[v], sequence.tail[v] = a, tail


@borrowing_kernel
def _gather(tasks: Tasks, anneal: Anneal, v: int, b: int) -> int:
    """Draw the units that move to device b with that of task v; return their number.

    Usually v's unit alone; else also a neighbour from any device, or a connected group on v's
    device.
    """
    sequence, random, group = anneal.sequence, anneal.random, anneal.group
    group[0], anneal.homes[0] = tasks.unit[v], sequence.place[v]
    size, largest, at_home = 1, 1, False
    if uniform(random) < TOGETHER:
        largest, at_home = 2, uniform(random) < CLUSTERS
        if at_home:
            largest += choose(random, MOST_UNITS - 1)
    for _ in range(2 * (largest - 1)):
        if size == largest:
            break
        u = group[choose(random, size)]
        members = tasks.member_start[u + 1] - tasks.member_start[u]
        w = _some_neighbour(
            tasks, random, tasks.members[tasks.member_start[u] + choose(random, members)]
        )
        if w < 0 or sequence.place[w] == b or (at_home and sequence.place[w] != anneal.homes[0]):
            continue
        if tasks.work[w, b] < np.inf and not _contains(group, size, tasks.unit[w]):
            group[size], anneal.homes[size] = tasks.unit[w], sequence.place[w]
            size += 1
    return size


@inlined_kernel
def _some_neighbour(tasks: Tasks, random: Words, v: int) -> int:
    """Random neighbour of a task, -1 if it has none."""
    degree = tasks.in_start[v + 1] - tasks.in_start[v] + tasks.out_end[v] - tasks.out_start[v]
    return _neighbour(tasks, v, choose(random, degree)) if degree > 0 else NOTHING


@inlined_kernel
def _contains(group: Ints, size: int, u: int) -> bool:
    contained = False
    for i in range(size):
        contained |= group[i] == u
    return contained


@borrowing_kernel
def _move_units(tasks: Tasks, anneal: Anneal, size: int, b: int, limit: float) -> None:
    sequence, group = anneal.sequence, anneal.group
    if not _may_move(tasks, anneal, size, b):
        return
    limit -= _dearer(tasks, anneal, size, b)
    begin = len(sequence.order)
    for i in range(size):
        begin = _put(tasks, sequence, group[i], b, begin)
    makespan, end = follow(tasks, sequence, begin, sequence.least, limit)
    if makespan < np.inf:
        _take_room(tasks, anneal, size, b)
        _take(tasks, anneal, makespan)
        return
    restore(sequence, begin, end)
    for i in range(size):
        _put(tasks, sequence, group[i], anneal.homes[i], 0)


@inlined_kernel
def _home(tasks: Tasks, sequence: Sequence, u: int) -> int:
    a: int = sequence.place[tasks.members[tasks.member_start[u]]]
    return a


@borrowing_kernel
def _put(tasks: Tasks, sequence: Sequence, u: int, b: int, begin: int) -> int:
    """Put the tasks of a unit on a device; return the first affected position, or ``begin``."""
    for i in range(tasks.member_start[u], tasks.member_start[u + 1]):
        v = tasks.members[i]
        sequence.place[v] = b
        begin = min(begin, sequence.position[v])
    return begin


@borrowing_kernel
def _may_move(tasks: Tasks, anneal: Anneal, size: int, b: int) -> bool:
    """Whether device b has enough memory for the units of the group, and no rivals of them."""
    if len(tasks.memory):
        used = anneal.used[b]
        for i in range(size):
            used += tasks.memory[anneal.group[i]]
        if used > tasks.room[b] * (1 + SLACK):
            return False
    for i in range(size):
        u = anneal.group[i]
        for k in range(tasks.rival_start[u], tasks.rival_start[u + 1]):
            r = tasks.rivals[k]
            if _contains(anneal.group, size, r) or _home(tasks, anneal.sequence, r) == b:
                return False
    return True


@borrowing_kernel
def _dearer(tasks: Tasks, anneal: Anneal, size: int, b: int) -> float:
    """Increase of the moving cost, in seconds, if the units of the group are on device b."""
    more = 0.0
    for i in range(size if len(anneal.moving) else 0):
        u = anneal.group[i]
        for k in range(tasks.member_start[u], tasks.member_start[u + 1]):
            v = tasks.members[k]
            more += anneal.moving[v, b] - anneal.moving[v, anneal.homes[i]]
    return more


@inlined_kernel
def _take_room(tasks: Tasks, anneal: Anneal, size: int, b: int) -> None:
    """Update the used memory after a move of the group."""
    if len(tasks.memory):
        for i in range(size):
            memory = tasks.memory[anneal.group[i]]
            anneal.used[anneal.homes[i]] -= memory
            anneal.used[b] += memory


@borrowing_kernel
def _take(tasks: Tasks, anneal: Anneal, makespan: float) -> None:
    settle(tasks, anneal.sequence)
    _stand(tasks, anneal, makespan)


@borrowing_kernel
def _stand(tasks: Tasks, anneal: Anneal, makespan: float) -> None:
    """Set the value of the current schedule."""
    moved = 0.0
    for v in range(len(anneal.moving)):
        moved += anneal.moving[v, anneal.sequence.place[v]]
    anneal.numbers[MOVED] = moved
    anneal.numbers[CURRENT] = makespan + moved
    _keep_if_best(tasks, anneal)


@borrowing_kernel
def _keep_if_best(tasks: Tasks, anneal: Anneal) -> None:
    """Keep the schedule if it is the best so far, with or without waiting cores."""
    if anneal.numbers[CURRENT] >= anneal.numbers[BEST] * (1 - TIE):
        return
    moved = anneal.numbers[MOVED]
    held = anneal.numbers[CURRENT] - moved
    non_delay = non_delay_makespan(tasks, anneal.sequence, anneal.non_delay, held * (1 + TIE))
    anneal.numbers[BEST] = (held if non_delay == np.inf else non_delay) + moved
    for i in range(len(anneal.best_order)):
        anneal.best_order[i] = anneal.sequence.order[i]
        anneal.best_place[i] = anneal.sequence.place[i]
