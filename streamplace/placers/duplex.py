"""Duplex: the better of min-min and max-min."""

from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.registry import Budget, Found, placer
from streamplace.placers.scheduled import best_by_batches


@placer("duplex", objectives=("makespan",))
def duplex(problem: Problem, objective: Objective, *, seed: int, budget: Budget) -> Found:
    """Better of min-min and max-min.

    Armstrong, Hensgen and Kidd (1998); Braun et al. (2001). Min-min is good where all tasks take
    about as long, max-min where a few take much longer than the others.
    """
    return best_by_batches(problem, objective, "min-min", "max-min")
