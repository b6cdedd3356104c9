"""Duplex: the better of min-min and max-min."""

from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.registry import Budget, Found, placer


@placer("duplex", objectives=("makespan",))
def duplex(problem: Problem, objective: Objective, *, seed: int, budget: Budget) -> Found:
    """Better of min-min and max-min.

    Armstrong, Hensgen and Kidd (1998); Braun et al. (2001). Min-min is good where all tasks take
    about as long, max-min where a few take much longer than the others.
    """
    from streamplace.placers.scheduled import best_answer
    from streamplace.scheduling.batches import RULES, by_batches
    from streamplace.scheduling.ranks import upward
    from streamplace.scheduling.tasks import tasks_of

    tasks = tasks_of(problem)
    rank, rules = upward(tasks), (RULES["min-min"], RULES["max-min"])
    schedules = (by_batches(tasks, rule, rank) for rule in rules)
    return best_answer(problem, objective, schedules)
