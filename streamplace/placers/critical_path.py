"""Critical path: the longest path to an exit first, where it can start first; the best of fifty."""

import numpy as np

from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.meter import Meter
from streamplace.placers.registry import Budget, Found, placer

TIE = 1e-9
"""What is nearer than this share counts as equal, and the draw decides."""


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
    from streamplace.placers.scheduled import found
    from streamplace.scheduling.insertion import NOWHERE, Choice, insert_all
    from streamplace.scheduling.ranks import by_rank, upward
    from streamplace.scheduling.tasks import tasks_of

    tasks, rng = tasks_of(problem), np.random.default_rng(seed)
    rank, usable = upward(tasks), np.isfinite(tasks.work)
    tie = TIE * float(rank.max())
    nowhere = np.full(tasks.n_tasks, NOWHERE, np.int32)
    meter = Meter(budget, 1)
    best, best_value = None, np.inf
    while runs > 0 and meter.chunk(1):
        order = by_rank(tasks, rank + tie * rng.random(len(rank)))
        noise = tie * rng.random(tasks.work.shape)
        sooner = np.where(usable, noise - np.where(usable, tasks.work, 0.0), np.inf)
        answer = found(problem, insert_all(tasks, order, Choice(sooner, nowhere, False)))
        value = objective.value(problem, answer.placement)
        meter.spend(1)
        if best is None or objective.better(value, best_value):
            best, best_value = answer.placement, value
            meter.note(best_value)
        runs -= 1
    assert best is not None
    return Found(best, trace=tuple(meter.trace))
