"""Max-min: schedules the task of a batch with the latest earliest finish next."""

from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.registry import Budget, Found, placer
from streamplace.placers.scheduled import best_by_batches


@placer("max-min", objectives=("makespan",))
def max_min(problem: Problem, objective: Objective, *, seed: int, budget: Budget) -> Found:
    """Max–min: the task with the latest earliest completion time is next.

    Ibarra and Kim (1977, algorithm E), for task graphs as in Blythe et al. (2005). As min-min, but
    the next task of a batch is argmax over v of min over d of CT(v, d), so that long tasks are not
    left to the end, where nothing could run beside them.
    """
    return best_by_batches(problem, objective, "max-min")
