"""Large graphs: schedule again and again, in the order that the best schedule suggests.

A schedule is pushed to its end: from the last task back, each to its latest start at which nothing
becomes later. Who must start early then comes first in the next schedule; how much it looks ahead
changes from one to the next, and so does the order, by a little noise (forward-backward improvement
of schedules, with devices chosen anew).
"""

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.meter import Meter
from streamplace.placers.registry import Found
from streamplace.placers.scheduled import found
from streamplace.scheduling.insertion import insert_all, plain_choice
from streamplace.scheduling.lists import looking
from streamplace.scheduling.ranks import by_rank, least_after, upward
from streamplace.scheduling.slack import latest_starts
from streamplace.scheduling.tasks import tasks_of

LOOKS = (1.0, 0.5, 0.0, 0.75, 0.25)
"""Shares of the shortest way to the end that schedules look ahead by, in turn."""
NOISE = (0.0, 0.002, 0.01)
"""Shares of the makespan by which the order is disturbed, in turn."""
MOST_CELLS = 2_000_000_000
"""Streams times pairs of devices up to which schedules look ahead."""


def relist(
    problem: Problem, objective: Objective, start: Sequence[Placement], seed: int, meter: Meter
) -> Found:
    """Best schedule of many."""
    from streamplace.objectives.makespan.bound import least_makespan

    best, bound, value = None, least_makespan(problem), np.inf
    for placement in chain(start, _schedules(problem, seed)):
        reached = objective.value(problem, placement)
        meter.spend(1)
        if best is None or reached < value:
            best, value = placement, reached
            meter.note(value)
        if meter.over or value <= bound * (1 + 1e-12):
            break
    assert best is not None
    return Found(best, bound, tuple(meter.trace))


def _schedules(problem: Problem, seed: int) -> Iterator[Placement]:
    """Placements with priorities, one schedule after the other, without end."""
    tasks, rng = tasks_of(problem), np.random.default_rng(seed)
    looks = LOOKS if len(tasks.source) * tasks.n_devices**2 <= MOST_CELLS else (0.0,)
    after = least_after(tasks) if len(looks) > 1 else np.zeros((0, 0))
    rank, least, best = upward(tasks), np.inf, None
    number = 0
    while True:
        order = by_rank(tasks, rank)
        for look in looks:
            choice = looking(look * after) if look else plain_choice(len(order), True)
            schedule = insert_all(tasks, order, choice)
            yield found(problem, schedule).placement
            if schedule.complete and (best is None or schedule.finish.max() < least):
                best, least = schedule, float(schedule.finish.max())
        if best is not None:
            number += 1
            noise = NOISE[number % len(NOISE)] * least * rng.random(len(rank))
            rank = least - latest_starts(tasks, best) + noise
