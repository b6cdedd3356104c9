"""The answer that a schedule is."""

import numpy as np

from streamplace.model.problem import Problem
from streamplace.placers.registry import Found
from streamplace.scheduling.insertion import Schedule


def found(problem: Problem, schedule: Schedule, *, keep: bool = True) -> Found:
    """Placement of a schedule, with its order as priorities.

    Constraints can leave a task without a device late in a schedule; then the nearest legal
    placement is the answer.
    """
    if schedule.complete:
        return Found(problem.placement(schedule.place, -schedule.start if keep else None))
    return Found(problem.placement(problem.repaired(np.maximum(schedule.place, 0))))
