"""Ranks: time before and after every task in a pass, by mean work and transfers."""

import numpy as np
from streamsim import _core

from streamplace.model.arrays import Bools, Floats, Ints
from streamplace.scheduling.tasks import Tasks

MAX_ORDERS, MAX_ORDERED_TASKS = 8, 2000
"""Most orders of equal ranks to try before a search, and most tasks of all of them together."""
TIE = 1e-9
"""Share of the highest rank within which ranks count as equal."""


def upward(tasks: Tasks) -> Floats:
    """Upward rank of HEFT: rank(v) = w̄(v) + max over streams (v, u) of (c̄(v, u) + rank(u))."""
    return _core.upward(tasks.core)


def downward(tasks: Tasks) -> Floats:
    """Downward rank: rank(v) = max over streams (u, v) of (rank(u) + w̄(u) + c̄(u, v))."""
    return _core.downward(tasks.core)


def optimistic_costs(tasks: Tasks) -> Floats:
    """Optimistic cost table of PEFT, shape [N, D].

    OCT(v, a) = max over streams (v, u) of min over devices b of
    (OCT(u, b) + w(u, b) + c̄(v, u) where b differs from a).
    """
    return _core.optimistic_costs(tasks.core)


def least_after(tasks: Tasks) -> Floats:
    """Least seconds from the end of every task, on each device, to the end of the pass [N, D]."""
    return _core.least_after(tasks.core)


def by_rank(tasks: Tasks, rank: Floats) -> Ints:
    """Order tasks topologically by highest rank, then lowest index."""
    return _core.by_rank(tasks.core, rank)


def n_orders(n_tasks: int) -> int:
    """Number of orders of equal ranks that a search tries at its beginning."""
    return min(max(1, MAX_ORDERED_TASKS // n_tasks), MAX_ORDERS)


def after_predecessors(tasks: Tasks, order: Ints) -> Ints:
    """Order tasks as in another order, but each after its predecessors.

    Starts that were computed backwards are rounded, so a task without duration may seem to start
    after its successor.
    """
    return by_rank(tasks, priorities_of(order))


def by_start(tasks: Tasks, start: Floats, tie: Bools | Floats) -> Ints:
    """Order tasks by start, then by ``tie``, then topologically.

    Every task comes after its predecessors, whatever its start.
    """
    position = np.empty(len(tasks.order), np.int64)
    position[tasks.order] = np.arange(len(tasks.order))
    return after_predecessors(tasks, np.lexsort((position, tie, start)).astype(np.int32))


def priorities_of(order: Ints) -> Floats:
    """Priorities that give an order of tasks."""
    priority: Floats = np.empty(len(order))
    priority[order] = -np.arange(len(order), dtype=np.float64)
    return priority
