"""Sufferage: schedules the task of a batch that would lose most on its second-best device next."""

from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.registry import Budget, Found, placer
from streamplace.placers.scheduled import best_by_batches


@placer("sufferage", objectives=("makespan",))
def sufferage(problem: Problem, objective: Objective, *, seed: int, budget: Budget) -> Found:
    """Sufferage: the task that would lose most on its second-best device is next.

    Maheswaran, Ali, Siegel, Hensgen and Freund (1999), for task graphs as in Blythe et al. (2005).
    As min-min, but the next task of a batch is

        argmax over v of (second least over d of CT(v, d) - least over d of CT(v, d)).

    Tasks that become ready wait until all of the batch are mapped. Two published forms differ:
    Maheswaran et al. map up to one task per device before they compute CT again, and SAGA chooses
    from all ready tasks, also those that have just become ready.
    """
    return best_by_batches(problem, objective, "sufferage")
