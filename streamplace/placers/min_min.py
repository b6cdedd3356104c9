"""Min-min: schedules the task of a batch with the earliest finish next."""

from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.registry import Budget, Found, placer
from streamplace.placers.scheduled import best_by_batches


@placer("min-min", objectives=("makespan",))
def min_min(problem: Problem, objective: Objective, *, seed: int, budget: Budget) -> Found:
    """Min–min: the task that can be completed earliest is next.

    Ibarra and Kim (1977, algorithm D), for task graphs as in Blythe et al. (2005): the ready tasks
    form a batch. Its next task is

        argmin over v of min over d of CT(v, d),  CT(v, d) = w(v, d) + max(free(d), ready(v, d)),

    on the device where it finishes first. When the batch is mapped, the tasks that have become
    ready form the next batch. Ties go to the highest upward rank.
    """
    return best_by_batches(problem, objective, "min-min")
