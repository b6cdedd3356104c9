"""Placements of schedules, with their order held or as priorities.

Devices that hold the order of a schedule run it as planned. Devices that use it as priorities run
other ready tasks instead of waiting, which may be better or worse. The better of the two is kept.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from streamplace.model.arrays import TIE, Ints
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.registry import Found
from streamplace.scheduling.insertion import ListSchedule
from streamplace.scheduling.lists import RULES, by_batches
from streamplace.scheduling.ranks import by_start, priorities_of, upward
from streamplace.scheduling.tasks import tasks_of


class Judged(NamedTuple):
    """A placement and its value."""

    placement: Placement
    value: float


def best_answer(problem: Problem, objective: Objective, schedules: Iterable[ListSchedule]) -> Found:
    """Placement of the best schedule by the objective, with its order; on ties the first."""
    answers = [judge_schedule(problem, objective, schedule) for schedule in schedules]
    best = min(answers, key=lambda answer: answer.value)
    return Found(best.placement, value=best.value)


def best_by_batches(problem: Problem, objective: Objective, *rules: str) -> Found:
    """Best of the schedules by batches under these rules; equals come in order of upward rank."""
    tasks = tasks_of(problem)
    rank = upward(tasks)
    schedules = (by_batches(tasks, RULES[rule], rank) for rule in rules)
    return best_answer(problem, objective, schedules)


def judge_schedule(problem: Problem, objective: Objective, schedule: ListSchedule) -> Judged:
    """Placement of a schedule, with its order as priorities or, if that is better, held.

    Constraints can leave a task without a device late in a schedule; then the result is the nearest
    legal placement, without an order.
    """
    if not schedule.complete:
        placement = without_order(problem, schedule)
        return Judged(placement, objective.value(problem, placement))
    eager = problem.placement(schedule.place, -schedule.start)
    value = objective.value(problem, eager)
    single = bool((problem.cluster.devices.cores == 1).all())
    if not objective.ordered or (single and value <= schedule.finish.max() * (1 + TIE)):
        return Judged(eager, value)
    held = problem.placement(
        schedule.place, priorities_of(planned_order(problem, schedule)), "order"
    )
    planned = objective.value(problem, held)
    return Judged(held, planned) if objective.better(planned, value) else Judged(eager, value)


def without_order(problem: Problem, schedule: ListSchedule) -> Placement:
    """Placement of a schedule without its order."""
    if schedule.complete:
        return problem.placement(schedule.place)
    return problem.placement(problem.repaired(np.maximum(schedule.place, 0)))


def planned_order(problem: Problem, schedule: ListSchedule) -> Ints:
    """Tasks by start, then by finish: those of no duration come first."""
    return by_start(tasks_of(problem), schedule.start, schedule.finish)
