"""CPOP: the critical path on one device, other tasks where they finish earliest."""

import numpy as np

from streamplace.model.arrays import Floats, Ints
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.registry import Budget, Found, placer
from streamplace.placers.scheduled import best_answer
from streamplace.scheduling.insertion import plain_choice
from streamplace.scheduling.lists import rank_schedules
from streamplace.scheduling.ranks import downward, upward
from streamplace.scheduling.tasks import Tasks, tasks_of


@placer("cpop", objectives=("makespan",))
def cpop(
    problem: Problem, objective: Objective, *, seed: int, budget: Budget, tries: int = 1
) -> Found:
    """Critical Path on a Processor: the longest path on the device that runs it fastest.

    Topcuoglu, Hariri and Wu (2002). A task's priority is its downward plus its upward rank. The
    tasks of the largest priority form the critical path, from a source to a sink. All of them go to
    the device that runs them in the least time; if no device may run all, each goes to the device
    that may run most of the rest. Every other ready task, highest priority first, goes to the
    device with the earliest finish. The ranks contain means of transfer times, which the paper
    (eq. 4) computes from the mean bandwidth instead.

    Parameters
    ----------
    tries
        Schedules made; all but the first break ties of ranks at random. The best counts.
    """
    tasks = tasks_of(problem)
    priority, anywhere = upward(tasks) + downward(tasks), plain_choice(tasks.n_tasks, True)
    choice = anywhere._replace(forced=_on_one_device(tasks, priority))
    schedules = rank_schedules(tasks, priority, choice, tries, seed)
    if not schedules[-1].complete:  # memory or separations leave the path no room on one device
        schedules = rank_schedules(tasks, priority, anywhere, tries, seed)
    return best_answer(problem, objective, schedules)


def _on_one_device(tasks: Tasks, priority: Floats) -> Ints:
    """Device of every task of the critical path; -1 for all others."""
    forced = np.full(tasks.n_tasks, -1, np.int32)
    waiting = _critical_path(tasks, priority)
    while len(waiting):
        allowed = np.isfinite(tasks.work[waiting])
        n_allowed = allowed.sum(axis=0)
        total = np.where(allowed, tasks.work[waiting], 0.0).sum(axis=0)
        device = int(np.lexsort((total, -n_allowed))[0])
        forced[waiting[allowed[:, device]]] = device
        waiting = waiting[~allowed[:, device]]
    return forced


def _critical_path(tasks: Tasks, priority: Floats) -> Ints:
    """Path of highest priorities from a source to a sink."""
    sources = np.flatnonzero(np.diff(tasks.in_start) == 0)
    path = [int(sources[np.argmax(priority[sources])])]
    while tasks.out_start[path[-1]] < tasks.out_end[path[-1]]:
        followers = tasks.target[tasks.out_start[path[-1]] : tasks.out_end[path[-1]]]
        path.append(int(followers[np.argmax(priority[followers])]))
    return np.array(path, np.int32)
