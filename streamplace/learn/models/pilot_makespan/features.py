"""Features of a problem and of the previous schedule, computed before the schedule is rebuilt."""

from typing import NamedTuple

import numpy as np
from streamsim.jit import kernel

from streamplace.model.arrays import Bools, Floats, Ints
from streamplace.model.problem import Problem
from streamplace.scheduling.insertion import ListSchedule, latest_starts, shortest_work
from streamplace.scheduling.ranks import by_rank, least_after
from streamplace.scheduling.tasks import Tasks, tasks_of


class PilotMakespanFeatures(NamedTuple):
    """A problem; seconds."""

    tasks: Tasks
    after: Floats  # [N, D] least seconds from the end of a task on a device to the end of the pass
    least: Floats  # [N] work where it is quickest
    coming: Floats  # [N] bytes that a task receives
    going: Floats  # [N] bytes that it sends
    shortest: float  # work of the shortest task


class CompleteSchedule(NamedTuple):
    """A complete schedule, with the slack of its tasks."""

    order: Ints  # [N] order of the decisions
    place: Ints  # [N]
    latest: Floats  # [N] start of every task when all are as late as can be
    span: float  # seconds that the pass takes
    loads: Floats  # [D] seconds that a core of each device works


def features_of(problem: Problem) -> PilotMakespanFeatures:
    """Compute the features of a problem."""
    tasks = tasks_of(problem)
    n, size = tasks.n_tasks, tasks.size
    return PilotMakespanFeatures(
        tasks=tasks,
        after=least_after(tasks),
        least=tasks.work.min(axis=1),
        coming=np.bincount(tasks.target, size, n).astype(np.float64),
        going=np.bincount(tasks.source, size, n).astype(np.float64),
        shortest=shortest_work(tasks),
    )


@kernel
def before_of(tasks: Tasks, schedule: ListSchedule, noise: Floats) -> CompleteSchedule:
    """Features of a schedule; tasks with the earliest latest start are decided first.

    Noise [N], in shares of the span, moves tasks in that order.
    """
    latest, span = latest_starts(tasks, schedule), schedule.finish.max()
    order = by_rank(tasks, span - latest + span * noise)
    loads = np.zeros(len(tasks.latency))
    for v in range(len(order)):
        a = schedule.place[v]
        loads[a] += tasks.work[v, a] / (tasks.core_start[a + 1] - tasks.core_start[a])
    return CompleteSchedule(order, schedule.place, latest, span, loads)


def staying(before: CompleteSchedule, stays: Bools) -> Ints:
    """Devices of the tasks that stay [S, N], step by step; -1 where they are decided anew."""
    return np.where(stays, before.place[before.order], -1).astype(np.int32)
