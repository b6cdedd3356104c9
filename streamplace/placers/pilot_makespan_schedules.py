"""Schedules rebuilt by a policy, valued by what is asked for."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from streamplace.learn.models.pilot_makespan.features import PilotMakespanFeatures, features_of
from streamplace.learn.models.pilot_makespan.placing import first_schedules, trained
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.incumbent import Incumbent
from streamplace.placers.meter import Meter
from streamplace.placers.registry import Budget, Found
from streamplace.placers.scheduled import judge_schedule
from streamplace.scheduling.insertion import ListSchedule
from streamplace.scheduling.lists import placed
from streamplace.scheduling.ranks import by_rank, upward


def rebuild_schedules(
    problem: Problem,
    objective: Objective,
    weights: Path,
    looks: int,
    samples: int,
    seed: int,
    budget: Budget,
) -> tuple[Found, int]:
    """Best of first schedules, greedy looks and samples, and how many were tried."""
    features, meter = features_of(problem), Meter(budget, 1)
    best = Incumbent[Placement](objective.better, meter)

    def worth(schedule: ListSchedule) -> float:
        """Value of a schedule's placement, which is taken if none was better."""
        placement, value = judge_schedule(problem, objective, schedule)
        meter.spend(1)
        best.offer(placement, value)
        return value

    first = chain(_present(problem, objective, features), first_schedules(features))
    policy = trained(weights)
    for _ in policy.schedules(features, first, worth, looks, samples, seed):
        if not meter.chunk(1):
            break
    return best.answer(best.solution), meter.spent


def _present(
    problem: Problem, objective: Objective, features: PilotMakespanFeatures
) -> Iterator[ListSchedule]:
    """Where the way to a placement counts, the present one."""
    if objective.relocation is not None:
        order = by_rank(features.tasks, upward(features.tasks))
        yield placed(features.tasks, order, objective.relocation.stay(problem).index)
