"""Annealing of schedules: moves of tasks between devices and in their order.

Most moves concern the critical chain, which alone decides the makespan: a task of it goes to
another device, often to that of a neighbour, or before the task that it waits for on its core; now
and then a neighbour comes along. Before a move is tried it is drawn how long the makespan may
become for it to be taken, so that most moves that will not be are told after a few tasks.
"""

from typing import NamedTuple

import numpy as np
from streamsim.jit import borrowing_kernel, inlined_kernel, kernel

from streamplace.model.columns import Floats, Ints
from streamplace.model.memory import SLACK
from streamplace.placers.anneal.eager import Eager, eager_makespan
from streamplace.placers.anneal.proposals import choose, uniform
from streamplace.placers.anneal.sequence import (
    NOTHING,
    Sequence,
    Words,
    bring,
    earliest,
    follow,
    latest,
    restore,
    settle,
    tail_of,
    waited_for,
)
from streamplace.placers.scheduling.tasks import Tasks

# Places in `Anneal.numbers`.
CURRENT, BEST, TEMPERATURE, COOLING = range(4)

ON_CHAIN = 0.85
"""Share of moves of tasks on the critical chain."""
REORDER = 0.3
TOGETHER = 0.15
BESIDE = 0.5
"""Share of moves to the device of a neighbour."""
REPLACED = 0.4
"""Share of moves to another device that also draw a new position."""
ROUNDING = 1e-12


class Anneal(NamedTuple):
    """A search that can be paused."""

    sequence: Sequence
    eager: Eager
    best_order: Ints  # [N]
    best_place: Ints  # [N]
    used: Floats  # [D] bytes of memory, where that limits
    random: Words  # [1]
    numbers: Floats  # [4]


@kernel
def begin(tasks: Tasks, anneal: Anneal) -> None:
    """Time the schedule that the search begins with."""
    sequence = anneal.sequence
    makespan, _ = follow(tasks, sequence, 0, sequence.least, np.inf)
    settle(tasks, sequence)
    anneal.used[:] = 0.0
    for u in range(len(tasks.memory)):
        anneal.used[sequence.place[tasks.members[tasks.member_start[u]]]] += tasks.memory[u]
    anneal.numbers[CURRENT] = makespan
    _keep_if_best(tasks, anneal)


@kernel
def restart(tasks: Tasks, anneal: Anneal, order: Ints, place: Ints) -> None:
    """Go on from another schedule."""
    sequence = anneal.sequence
    for i in range(len(order)):
        sequence.order[i] = order[i]
        sequence.position[order[i]] = i
        sequence.place[i] = place[i]
    begin(tasks, anneal)


@kernel
def search(tasks: Tasks, anneal: Anneal, steps: int) -> None:
    """Try so many moves."""
    for _ in range(steps):
        anneal.numbers[TEMPERATURE] *= anneal.numbers[COOLING]
        _try(tasks, anneal)


@borrowing_kernel
def _try(tasks: Tasks, anneal: Anneal) -> None:
    """Draw a move, and take it if what it leads to is short enough."""
    sequence, random, numbers = anneal.sequence, anneal.random, anneal.numbers
    if uniform(random) < ON_CHAIN:
        v = sequence.chain[choose(random, sequence.length[0])]
    else:
        v = choose(random, len(sequence.order))
    limit = numbers[CURRENT] - numbers[TEMPERATURE] * np.log(1.0 - uniform(random))
    limit *= 1.0 + ROUNDING
    if uniform(random) < REORDER:
        _reorder(tasks, anneal, v, limit)
        return
    b = _drawn_device(tasks, anneal, v)
    if b == sequence.place[v] or tasks.work[v, b] == np.inf:
        return
    _relocate(tasks, anneal, v, b, limit)


@borrowing_kernel
def _reorder(tasks: Tasks, anneal: Anneal, v: int, limit: float) -> None:
    """Bring a task to another position: before the one that its core took before it, or any."""
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
    """Draw a device: any, or that of a neighbour."""
    random, n_in = anneal.random, tasks.in_start[v + 1] - tasks.in_start[v]
    n_out = tasks.out_end[v] - tasks.out_start[v]
    if n_in + n_out > 0 and uniform(random) < BESIDE:
        u = _neighbour(tasks, v, choose(random, n_in + n_out))
        b: int = anneal.sequence.place[u]
        return b
    return choose(random, len(tasks.latency))


@inlined_kernel
def _neighbour(tasks: Tasks, v: int, i: int) -> int:
    """Neighbour i of task v: first those that it waits for."""
    n_in = tasks.in_start[v + 1] - tasks.in_start[v]
    if i < n_in:
        u: int = tasks.source[tasks.in_stream[tasks.in_start[v] + i]]
        return u
    w: int = tasks.target[tasks.out_start[v] + i - n_in]
    return w


@borrowing_kernel
def _relocate(tasks: Tasks, anneal: Anneal, v: int, b: int, limit: float) -> None:
    """Move a task, with all that belong to it and perhaps a neighbour, to another device."""
    sequence, u = anneal.sequence, tasks.unit[v]
    other = _company(tasks, anneal, v, b)
    if not _may_move(tasks, anneal, u, other, b):
        return
    if other >= 0 or tasks.member_start[u + 1] - tasks.member_start[u] > 1:
        _move_units(tasks, anneal, u, other, b, limit)
        return
    a, old, tail = sequence.place[v], sequence.position[v], sequence.tail[v]
    to = old
    sequence.place[v] = b
    sequence.tail[v] = tail_of(tasks, sequence, v)
    if uniform(anneal.random) < REPLACED:
        first = earliest(tasks, sequence, v)
        to = first + choose(anneal.random, latest(tasks, sequence, v) - first + 1)
        bring(sequence, v, to)
    begin = min(old, to)
    makespan, end = follow(tasks, sequence, begin, sequence.tail, limit)
    if makespan < np.inf:
        _move_memory(tasks, anneal, u, a, b)
        _take(tasks, anneal, makespan)
        return
    restore(sequence, begin, end)
    bring(sequence, v, old)
    sequence.place[v], sequence.tail[v] = a, tail


@inlined_kernel
def _company(tasks: Tasks, anneal: Anneal, v: int, b: int) -> int:
    """Draw whether a neighbour's unit comes along to device b; -1 if none does."""
    degree = tasks.in_start[v + 1] - tasks.in_start[v] + tasks.out_end[v] - tasks.out_start[v]
    if degree == 0 or uniform(anneal.random) >= TOGETHER:
        return NOTHING
    w = _neighbour(tasks, v, choose(anneal.random, degree))
    may = tasks.work[w, b] < np.inf and tasks.unit[w] != tasks.unit[v]
    comes: int = tasks.unit[w] if may and anneal.sequence.place[w] != b else NOTHING
    return comes


@borrowing_kernel
def _move_units(tasks: Tasks, anneal: Anneal, u: int, other: int, b: int, limit: float) -> None:
    """Move one or two units to a device."""
    sequence = anneal.sequence
    a = _home(tasks, sequence, u)
    c = _home(tasks, sequence, other) if other >= 0 else b
    begin = _put(tasks, sequence, u, b, len(sequence.order))
    if other >= 0:
        begin = _put(tasks, sequence, other, b, begin)
    makespan, end = follow(tasks, sequence, begin, sequence.least, limit)
    if makespan < np.inf:
        _move_memory(tasks, anneal, u, a, b)
        if other >= 0:
            _move_memory(tasks, anneal, other, c, b)
        _take(tasks, anneal, makespan)
        return
    restore(sequence, begin, end)
    _put(tasks, sequence, u, a, 0)
    if other >= 0:
        _put(tasks, sequence, other, c, 0)


@inlined_kernel
def _home(tasks: Tasks, sequence: Sequence, u: int) -> int:
    """Device of a unit."""
    a: int = sequence.place[tasks.members[tasks.member_start[u]]]
    return a


@borrowing_kernel
def _put(tasks: Tasks, sequence: Sequence, u: int, b: int, begin: int) -> int:
    """Put the tasks of a unit on a device; the first position that this concerns, or ``begin``."""
    for i in range(tasks.member_start[u], tasks.member_start[u + 1]):
        v = tasks.members[i]
        sequence.place[v] = b
        begin = min(begin, sequence.position[v])
    return begin


@borrowing_kernel
def _may_move(tasks: Tasks, anneal: Anneal, u: int, w: int, b: int) -> bool:
    """Whether units u and w (if it is one) may be on device b, which has room and no rivals."""
    if len(tasks.memory):
        more = tasks.memory[u] + (tasks.memory[w] if w >= 0 else 0.0)
        if anneal.used[b] + more > tasks.room[b] * (1 + SLACK):
            return False
    return not (
        _meets_rival(tasks, anneal.sequence, u, w, b)
        or (w >= 0 and _meets_rival(tasks, anneal.sequence, w, u, b))
    )


@borrowing_kernel
def _meets_rival(tasks: Tasks, sequence: Sequence, u: int, beside: int, b: int) -> bool:
    """Whether a unit that must be apart from u is on device b or comes along."""
    for i in range(tasks.rival_start[u], tasks.rival_start[u + 1]):
        r = tasks.rivals[i]
        if r == beside or _home(tasks, sequence, r) == b:
            return True
    return False


@inlined_kernel
def _move_memory(tasks: Tasks, anneal: Anneal, u: int, a: int, b: int) -> None:
    if len(tasks.memory):
        anneal.used[a] -= tasks.memory[u]
        anneal.used[b] += tasks.memory[u]


@borrowing_kernel
def _take(tasks: Tasks, anneal: Anneal, makespan: float) -> None:
    """Go on from where the move led."""
    settle(tasks, anneal.sequence)
    anneal.numbers[CURRENT] = makespan
    _keep_if_best(tasks, anneal)


@borrowing_kernel
def _keep_if_best(tasks: Tasks, anneal: Anneal) -> None:
    """Remember the schedule if it is the best so far, of cores that do not wait, too."""
    best = anneal.numbers[BEST] * (1 - ROUNDING)
    if anneal.numbers[CURRENT] >= best:
        return
    makespan = eager_makespan(tasks, anneal.sequence, anneal.eager, best)
    if makespan == np.inf:
        return
    anneal.numbers[BEST] = makespan
    for i in range(len(anneal.best_order)):
        anneal.best_order[i] = anneal.sequence.order[i]
        anneal.best_place[i] = anneal.sequence.place[i]
