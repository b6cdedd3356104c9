"""List schedulers: an order of the tasks, a way to choose devices, and the schedule they make."""

from collections.abc import Iterator

import numpy as np

from streamplace.model.columns import Floats, Ints
from streamplace.model.problem import Problem
from streamplace.scheduling.insertion import (
    NOWHERE,
    Choice,
    Schedule,
    insert_all,
    plain_choice,
)
from streamplace.scheduling.ranks import (
    by_rank,
    downward,
    least_after,
    optimistic_costs,
    upward,
)
from streamplace.scheduling.tasks import Tasks, tasks_of

TIE = 1e-9
"""What is nearer than this share counts as equal, and the draw decides."""


def foresighted(problem: Problem) -> Schedule:
    """Schedule of PEFT."""
    tasks = tasks_of(problem)
    table = optimistic_costs(tasks)
    rank = _mean_where_allowed(tasks, table)
    return insert_all(tasks, by_rank(tasks, rank), looking(table))


def farsighted(problem: Problem) -> Iterator[Schedule]:
    """Schedules that look ahead by the shortest way to the end, in full and by half."""
    tasks = tasks_of(problem)
    after = least_after(tasks)
    order = by_rank(tasks, upward(tasks))
    for ahead in (after, after / 2):
        yield insert_all(tasks, order, looking(ahead))


def looking(ahead: Floats) -> Choice:
    """Earliest finish plus what is expected after it."""
    return Choice(ahead, np.full(len(ahead), NOWHERE, np.int32), True)


def placed(tasks: Tasks, order: Ints, place: Ints) -> Schedule:
    """Schedule of a placement [N]; where that is -1, on the device that is soonest done."""
    return insert_all(tasks, order, Choice(np.zeros((0, 0)), np.array(place, np.int32), True))


def quickest_device(tasks: Tasks) -> int:
    """Device that works least if it runs all tasks that it may run."""
    return int(np.where(np.isinf(tasks.work), 0.0, tasks.work).sum(axis=0).argmin())


def path_on_one_device(problem: Problem) -> Schedule:
    """Schedule of CPOP."""
    tasks = tasks_of(problem)
    priority = upward(tasks) + downward(tasks)
    forced = np.full(tasks.n_tasks, NOWHERE, np.int32)
    left = _critical_path(tasks, priority)
    while len(left):
        allowed = np.isfinite(tasks.work[left])
        most = allowed.sum(axis=0)
        total = np.where(allowed, tasks.work[left], 0.0).sum(axis=0)
        device = int(np.lexsort((total, -most))[0])
        forced[left[allowed[:, device]]] = device
        left = left[~allowed[:, device]]
    choice = Choice(np.zeros((0, 0)), forced, True)
    schedule = insert_all(tasks, by_rank(tasks, priority), choice)
    if schedule.complete:
        return schedule
    return insert_all(tasks, by_rank(tasks, priority), plain_choice(tasks.n_tasks, True))


def critical_paths(tasks: Tasks, rng: np.random.Generator) -> Iterator[Schedule]:
    """Longest path to an exit first, where it can start first; equals are drawn, without end."""
    rank, usable = upward(tasks), np.isfinite(tasks.work)
    tie = TIE * float(rank.max())
    nowhere = np.full(tasks.n_tasks, NOWHERE, np.int32)
    while True:
        order = by_rank(tasks, rank + tie * rng.random(len(rank)))
        noise = tie * rng.random(tasks.work.shape)
        sooner = np.where(usable, noise - np.where(usable, tasks.work, 0.0), np.inf)
        yield insert_all(tasks, order, Choice(sooner, nowhere, False))


def _critical_path(tasks: Tasks, priority: Floats) -> Ints:
    """Path of highest priorities from a source to a sink."""
    sources = np.flatnonzero(np.diff(tasks.in_start) == 0)
    path = [int(sources[np.argmax(priority[sources])])]
    while tasks.out_start[path[-1]] < tasks.out_end[path[-1]]:
        followers = tasks.target[tasks.out_start[path[-1]] : tasks.out_end[path[-1]]]
        path.append(int(followers[np.argmax(priority[followers])]))
    return np.array(path, np.int32)


def _mean_where_allowed(tasks: Tasks, table: Floats) -> Floats:
    allowed = np.isfinite(tasks.work)
    return np.asarray(np.where(allowed, table, 0.0).sum(axis=1) / allowed.sum(axis=1))
