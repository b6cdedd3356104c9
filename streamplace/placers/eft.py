"""EFT: a random walk that moves one task at a time to the device where it finishes earliest."""

import numpy as np
from streamsim.jit import kernel
from streamsim.passes import GIPH, schedule

from streamplace.learn.improver import STEPS_PER_OPERATOR
from streamplace.model.arrays import Floats, Ints
from streamplace.model.problem import Problem, random_placements
from streamplace.objectives.registry import Objective
from streamplace.placers.incumbent import Incumbent
from streamplace.placers.meter import Meter
from streamplace.placers.registry import Budget, Found, placer
from streamplace.scheduling.insertion import ready_at
from streamplace.scheduling.tasks import Tasks, tasks_of


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
        start, finish = np.array(run.start), np.array(run.finish)
        moved = place.copy()
        moved[tasks.unit == tasks.unit[v]] = _earliest_device(tasks, place, start, finish, v)
        place = moved if problem.legal(moved)[0] else place
    return best.answer(problem.placement(best.solution))


@kernel
def _earliest_device(tasks: Tasks, place: Ints, start: Floats, finish: Floats, v: int) -> int:
    """Device on which task v finishes earliest, between or after the other tasks there."""
    best, soonest = place[v], np.inf
    for a in range(tasks.work.shape[1]):
        work = tasks.work[v, a]
        if work == np.inf:
            continue
        cores = tasks.core_start[a + 1] - tasks.core_start[a]
        begin = ready_at(tasks, place, finish, v, a)
        moved = True
        while moved:  # postpone until a core is free for the duration of the task
            moved, busy, until = False, 0, np.inf
            for u in range(len(place)):
                overlaps = start[u] < begin + work and finish[u] > begin
                if u != v and place[u] == a and overlaps:
                    busy += 1
                    until = min(until, finish[u])
            if busy >= cores:
                begin, moved = until, True
        if begin + work < soonest:
            best, soonest = a, begin + work
    return best
