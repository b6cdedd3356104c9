"""List scheduling with insertion: maps each task in turn to the core where it finishes earliest.

A task may start in a gap between two tasks of a core, and one without cost also where there is no
gap. `latest_starts` gives the slack of a schedule.
"""

from typing import NamedTuple

import numpy as np
from streamsim import _core

from streamplace.model.arrays import Floats, Ints
from streamplace.scheduling.tasks import Tasks

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
    """Schedule of HEFT by one call, because calls take most of the time on small graphs."""
    return ListSchedule(*_core.by_upward_rank(tasks.core, insertion))


def latest_starts(tasks: Tasks, schedule: ListSchedule) -> Floats:
    """Latest start of every task with the same makespan and devices, in the order of the schedule.

    On devices with several cores, the order does not count.
    """
    return _core.latest_starts(tasks.core, schedule)
