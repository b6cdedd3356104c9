"""Features of the policy: of a problem and its previous schedule, and of devices for one task.

The features of a device are the effect of running a task there, given the schedule so far. All
times are shares of the span of the previous schedule. These numbers are the only inputs of the
network, in the core, which computes them, and in torch.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from streamplace.model.arrays import Bools, Floats, Ints
from streamplace.model.problem import Problem
from streamplace.scheduling.insertion import ListSchedule, latest_starts
from streamplace.scheduling.ranks import by_rank, least_after
from streamplace.scheduling.tasks import Tasks, tasks_of


class TaskDeviceFeature(IntEnum):
    """Features of a device, by column."""

    FINISH = 0
    FINISH_AND_WAY_TO_THE_END = 1
    WAIT = 2
    READY = 3
    WORK = 4
    LATE = 5
    LATER_THAN_ELSEWHERE = 6
    BUSY_UNTIL = 7
    COMING_LOAD = 8
    BEFORE = 9
    SHARE_OF_INPUTS_AT_HOME = 10
    SHARE_OF_OUTPUTS_AT_HOME = 11
    SHARE_OF_PARTNERS_AT_HOME = 12
    WAY_TO_THE_END = 13


class TaskStepFeature(IntEnum):
    """Features of a decision itself, by column."""

    SLACK = 0
    POSITION = 1
    OUTPUTS = 2
    INPUTS = 3
    WORK = 4
    SENDING = 5
    TASKS = 6
    DEVICES = 7
    OPEN = 8
    LOAD = 9


N_DEVICE, N_STEP = len(TaskDeviceFeature), len(TaskStepFeature)


class PilotMakespanFeatures(NamedTuple):
    """A problem; seconds."""

    tasks: Tasks
    after: Floats  # [N, D] least seconds from the end of a task on a device to the end of the pass
    least: Floats  # [N] work on the quickest device
    coming: Floats  # [N] bytes that a task receives
    going: Floats  # [N] bytes that it sends
    shortest: float  # work of the shortest task


class PreviousSchedule(NamedTuple):
    """The schedule that is to be improved, with the slack of its tasks."""

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
        shortest=float(tasks.work.min()),
    )


def previous_of(tasks: Tasks, schedule: ListSchedule, noise: Floats) -> PreviousSchedule:
    """Features of a schedule; tasks with the earliest latest start are decided first.

    Noise [N], in shares of the span, moves tasks in that order.
    """
    latest, span = latest_starts(tasks, schedule), schedule.finish.max()
    order = by_rank(tasks, span - latest + span * noise)
    cores = np.diff(tasks.core_start)[schedule.place]
    seconds = tasks.work[np.arange(len(order)), schedule.place] / cores
    loads = np.bincount(schedule.place, seconds, tasks.n_devices).astype(np.float64)
    return PreviousSchedule(order, schedule.place, latest, span, loads)


def staying(before: PreviousSchedule, stays: Bools) -> Ints:
    """Devices [S, N] of the tasks that stay, step by step; -1 for the other tasks."""
    return np.where(stays, before.place[before.order], -1).astype(np.int32)
