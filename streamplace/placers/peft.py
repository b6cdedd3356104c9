"""PEFT: HEFT with look-ahead by a table of optimistic costs."""

import numpy as np

from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.registry import Budget, Found, placer
from streamplace.placers.scheduled import best_answer
from streamplace.scheduling.lists import rank_schedules, with_lookahead
from streamplace.scheduling.ranks import optimistic_costs
from streamplace.scheduling.tasks import tasks_of


@placer("peft", objectives=("makespan",))
def peft(
    problem: Problem, objective: Objective, *, seed: int, budget: Budget, tries: int = 1
) -> Found:
    """Predict Earliest Finish Time: HEFT that looks ahead to the end of the pass.

    Arabnejad and Barbosa (2014). The optimistic cost table (eq. 4)

        OCT(v, a) = max over streams (v, u) of min over devices b of
                    (OCT(u, b) + w(u, b) + c̄(v, u) where b is not a)

    is the least time after v on a. The ready task with the largest mean OCT comes next, on the
    device with the least EFT(v, d) + OCT(v, d). c̄ is the mean of the times of
    a transfer, as in HEFT here, not its time at the mean bandwidth.

    Parameters
    ----------
    tries
        Schedules made; all but the first break ties of ranks at random. The best counts.
    """
    tasks = tasks_of(problem)
    table, allowed = optimistic_costs(tasks), np.isfinite(tasks.work)
    mean = np.where(allowed, table, 0.0).sum(axis=1) / allowed.sum(axis=1)
    return best_answer(
        problem, objective, rank_schedules(tasks, mean, with_lookahead(table), tries, seed)
    )
