"""CPOP: the critical path on one device, other tasks where they finish earliest."""

from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.registry import Budget, Found, placer


@placer("cpop", objectives=("makespan",))
def cpop(
    problem: Problem, objective: Objective, *, seed: int, budget: Budget, tries: int = 1
) -> Found:
    """Critical Path on a Processor: the longest path on the device that runs it fastest.

    Topcuoglu, Hariri and Wu (2002). A task's priority is its downward plus its upward rank. The
    tasks of the largest priority form the critical path, from a source to a sink; all of them go to
    the one device that runs them in the least time (where none may run all, each group of them that
    one may), every other ready task, highest priority first, to the device with the earliest
    finish. The ranks contain means of the times of transfers, which the paper (eq. 4) computes from
    the mean bandwidth instead.

    Parameters
    ----------
    tries
        Schedules made; each but the first draws which of equal ranks come first. The best counts.
    """
    from streamplace.placers.scheduled import best_answer
    from streamplace.scheduling.lists import path_on_one_device

    return best_answer(problem, objective, path_on_one_device(problem, tries, seed))
