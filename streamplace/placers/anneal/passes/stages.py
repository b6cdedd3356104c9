"""Passes that split into stages: searches every stage separately.

The devices of cut tasks are kept, so that an improvement of one stage improves the pass. All stages
in turn get a short search, then all a longer one.
"""

from collections.abc import Iterator

import numpy as np

from streamplace.placers.anneal.passes.shortest import (
    PassPlan,
    anneal_plans,
    best_plan,
    listed_plans,
)
from streamplace.placers.meter import Meter
from streamplace.scheduling.insertion import NOWHERE
from streamplace.scheduling.ranks import least_after
from streamplace.scheduling.stages import Stage, Stages, least_by_work
from streamplace.scheduling.tasks import Tasks

FIRST_ROUND, GROWTH = 1000, 2
"""Moves of the first search of a stage, and growth from one search to the next."""


def part_of(plan: PassPlan, stage: Stage, n: int) -> PassPlan:
    """Restrict a plan of n tasks to a stage."""
    local = np.full(n, -1, np.int32)
    local[stage.rows] = np.arange(len(stage.rows))
    order = local[plan.order]
    return PassPlan(order[order >= 0], plan.place[stage.rows])


def improved_plans(
    tasks: Tasks, stages: Stages, plan: PassPlan, seed: int, meter: Meter
) -> Iterator[PassPlan]:
    """Yield a plan that is no worse after every round through the stages, until the budget ends."""
    parts = [part_of(plan, stage, tasks.n_tasks) for stage in stages.stages]
    moves = FIRST_ROUND
    while not meter.over:
        for i, (stage, part) in enumerate(zip(stages.stages, parts, strict=True)):
            if meter.over:
                break
            own = Meter(meter.up_to(moves), 1)
            parts[i] = _search_stage(stage, part, moves == FIRST_ROUND, seed, own)
            meter.spend(own.spent)
        yield _whole_plan(stages, parts, tasks.n_tasks)
        moves *= GROWTH


def _search_stage(stage: Stage, part: PassPlan, first: bool, seed: int, meter: Meter) -> PassPlan:
    """Search a stage with its cut tasks on fixed devices."""
    begin = int(part.place[0]) if stage.begins else NOWHERE
    tasks = stage.between(begin, int(part.place[-1]) if stage.ends else NOWHERE)
    after = least_after(tasks)
    plans = [part, *(listed_plans(tasks, after) if first else ())]
    least = float(after[0, begin]) if stage.begins else 0.0
    return best_plan(anneal_plans(tasks, plans, after, least, seed, meter))


def _whole_plan(stages: Stages, parts: list[PassPlan], n: int) -> PassPlan:
    place = np.full(n, NOWHERE, np.int32)
    orders = []
    for stage, part in zip(stages.stages, parts, strict=True):
        place[stage.rows] = part.place
        orders.append(stage.rows[part.order[int(stage.begins) :]])
    return PassPlan(np.concatenate(orders), place)


def least_of(stages: Stages) -> float:
    """Lower bound of the makespan, in seconds: the sum of the stages' bounds by work."""
    return float(sum(least_by_work(stage).min() for stage in stages.stages))
