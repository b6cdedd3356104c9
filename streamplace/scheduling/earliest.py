"""Earliest finish time of one task; all other tasks keep their devices and times."""

import numpy as np
from streamsim.jit import kernel
from streamsim.passes import GIPH, schedule

from streamplace.model.arrays import Floats, Ints
from streamplace.model.problem import Problem
from streamplace.scheduling.insertion import ready_at
from streamplace.scheduling.tasks import Tasks


def timed(problem: Problem, place: Ints) -> tuple[Floats, Floats]:
    """Start and finish of every task under a placement."""
    run = schedule(problem.one_pass, place, GIPH)
    return np.array(run.start), np.array(run.finish)


@kernel
def earliest_device(tasks: Tasks, place: Ints, start: Floats, finish: Floats, v: int) -> int:
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
