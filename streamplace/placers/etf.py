"""m-ETF: runs the pair of ready task and device that can start earliest, within memory."""

import numpy as np

from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.registry import Budget, Found, placer
from streamplace.placers.scheduled import best_answer
from streamplace.scheduling.lists import start_soonest
from streamplace.scheduling.ranks import upward
from streamplace.scheduling.tasks import tasks_of


@placer("etf", objectives=("makespan",))
def etf(problem: Problem, objective: Objective, *, seed: int, budget: Budget) -> Found:
    """Earliest Task First with memory: the task that can start first is next.

    Hwang, Chow, Anger and Lee (1989); with memory, m-ETF of Baechi (Jeon et al., 2020). Each
    step takes the pair of a ready task and a device with memory left that can start first; ties go
    to the task of the highest upward rank.
    """
    tasks = tasks_of(problem)
    nobody = np.full(tasks.n_tasks, -1, np.int32)
    return best_answer(problem, objective, [start_soonest(tasks, upward(tasks), nobody)])
