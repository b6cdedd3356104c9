"""EFT: a random walk that moves one task at a time to the device where it finishes earliest."""

import numpy as np
from streamsim import _core
from streamsim.passes import GIPH, schedule

from streamplace.learn.registry import STEPS_PER_OPERATOR
from streamplace.model.arrays import Ints
from streamplace.model.problem import Problem, random_placements
from streamplace.objectives.registry import Objective
from streamplace.placers.incumbent import Incumbent
from streamplace.placers.meter import Meter
from streamplace.placers.registry import Budget, Found, placer
from streamplace.scheduling.insertion import ListSchedule
from streamplace.scheduling.tasks import tasks_of


@placer("eft", objectives=("makespan",))
def eft(problem: Problem, objective: Objective, *, seed: int, budget: Budget) -> Found:
    """GiPH's baseline: repeatedly move a random task to where it finishes first.

    Hu et al. (2023). The walk begins at a random placement. Every step moves a random task to the
    device with its earliest finish, while all other tasks keep their devices and times. The walk
    takes 2 N steps, or as many as the budget has evaluations, and returns its best placement.

    The published code of the baseline ignores whether a device is busy: it takes the time when all
    inputs are there plus the work. Here a task also waits until a core is free for all of its work.
    """
    tasks, rng = tasks_of(problem), np.random.default_rng(seed)
    meter = Meter(budget, 1)
    best = Incumbent[Ints](objective.better, meter)
    steps = budget.evaluations or 1 + STEPS_PER_OPERATOR * problem.n_operators
    place = random_placements(problem, 1, rng)[0]
    while steps > 0 and meter.chunk(1):
        value = float(objective.evaluate(problem, place[None])[0])
        meter.spend(1)
        steps -= 1
        best.offer(place, value)
        v = int(rng.integers(problem.n_operators))
        run = schedule(problem.one_pass, place, GIPH)
        schedule_now = ListSchedule(place, run.start, run.finish)
        moved = place.copy()
        moved[tasks.unit == tasks.unit[v]] = _core.earliest_device(tasks.core, schedule_now, v)
        place = moved if problem.legal(moved)[0] else place
    return best.answer(problem.placement(best.solution))
