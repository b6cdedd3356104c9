"""Critical path: longest path to an exit first, each task where it starts earliest; best of 50."""

from itertools import islice

import numpy as np

from streamplace.errors import OptionError
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.incumbent import Incumbent
from streamplace.placers.meter import Meter
from streamplace.placers.registry import Budget, Found, placer
from streamplace.placers.scheduled import judge_schedule
from streamplace.scheduling.lists import critical_paths
from streamplace.scheduling.tasks import tasks_of


@placer("critical-path", objectives=("makespan",))
def critical_path(
    problem: Problem, objective: Objective, *, seed: int, budget: Budget, runs: int = 50
) -> Found:
    """Doppler's baseline: longest path to an exit first, earliest start; the best of 50.

    Kwok and Ahmad (1999), as Doppler (Yao et al., 2025) has it: of the ready tasks the one with the
    longest path to an exit, onto the device where it can start first; equals are drawn.

    Parameters
    ----------
    runs
        Schedules made; the best of them counts.
    """
    if runs < 1:
        raise OptionError(f"runs is {runs}; it must be at least 1")
    meter = Meter(budget, 1)
    best = Incumbent[Placement](objective.better, meter)
    schedules = critical_paths(tasks_of(problem), np.random.default_rng(seed))
    for schedule in islice(schedules, runs):
        if not meter.chunk(1):
            break
        placement, value = judge_schedule(problem, objective, schedule)
        meter.spend(1)
        best.offer(placement, value)
    return best.answer(best.solution)
