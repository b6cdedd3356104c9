"""EFT: a random walk that moves one task at a time to the device where it finishes earliest."""

import numpy as np

from streamplace.model.problem import Problem
from streamplace.model.sampling import random_placements
from streamplace.objectives.registry import Objective
from streamplace.placers.meter import Meter
from streamplace.placers.registry import Budget, Found, placer

STEPS_PER_TASK = 2


@placer("eft", objectives=("makespan",))
def eft(problem: Problem, objective: Objective, *, seed: int, budget: Budget) -> Found:
    """GiPH's baseline: repeatedly move a random task to where it finishes first.

    Hu et al. (2023). The walk begins at a random placement; every step takes a random task to the
    device with its earliest finish, the others being where and when they are. 2 N steps, or as many
    evaluations as the budget has; the best placement met counts.
    """
    from streamplace.scheduling.earliest import earliest_device, timed
    from streamplace.scheduling.tasks import tasks_of

    tasks, rng = tasks_of(problem), np.random.default_rng(seed)
    meter = Meter(budget, 1)
    left = budget.evaluations or 1 + STEPS_PER_TASK * problem.n_operators
    place = best = random_placements(problem, 1, rng)[0]
    best_value = np.inf
    while left > 0 and meter.chunk(1):
        value = float(objective.evaluate(problem, place[None])[0])
        meter.spend(1)
        left -= 1
        if not meter.trace or objective.better(value, best_value):
            best, best_value = place, value
            meter.note(value)
        v = int(rng.integers(problem.n_operators))
        start, finish = timed(problem, place)
        moved = place.copy()
        moved[tasks.unit == tasks.unit[v]] = earliest_device(tasks, place, start, finish, v)
        place = moved if problem.legal(moved)[0] else place
    return Found(problem.placement(best), trace=tuple(meter.trace))
