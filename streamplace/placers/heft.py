"""HEFT: tasks by upward rank, each on the device where it finishes earliest."""

from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.registry import Budget, Found, placer
from streamplace.placers.scheduled import best_answer, without_order
from streamplace.scheduling.insertion import ListSchedule, by_upward_rank, plain_choice
from streamplace.scheduling.lists import rank_schedules
from streamplace.scheduling.ranks import upward
from streamplace.scheduling.tasks import tasks_of


@placer("heft", objectives=("makespan",))
def heft(
    problem: Problem,
    objective: Objective,
    *,
    seed: int,
    budget: Budget,
    insertion: bool = True,
    keep: bool = True,
    tries: int = 1,
) -> Found:
    """Heterogeneous Earliest Finish Time: by longest path to the end, each where it finishes first.

    Topcuoglu, Hariri and Wu (2002). Tasks come in falling order of the upward rank (eq. 8)

        rank(v) = w̄(v) + max over streams (v, u) of (c̄(v, u) + rank(u)),

    w̄ the mean over the devices that may run v and c̄ the mean over ordered pairs of different
    devices; each goes to the device with the earliest finish (eqs. 5 and 6),

        EFT(v, d) = w(v, d) + max(a time at which d is free, when all inputs of v are on d).

    c̄ is the mean of the times, which the paper (eq. 4) computes from the mean bandwidth instead.

    Parameters
    ----------
    insertion
        Use gaps between tasks that are long enough; else only the time after the last task.
    keep
        Keep HEFT's order of the tasks on each device, as priorities or held, whichever is better;
        else devices run tasks in the order in which they become ready.
    tries
        Schedules made; all but the first break ties of ranks at random. The best counts.
    """
    tasks = tasks_of(problem)
    schedules: tuple[ListSchedule, ...]
    if tries == 1:
        schedules = (by_upward_rank(tasks, insertion),)
    else:
        choice = plain_choice(tasks.n_tasks, insertion)
        schedules = rank_schedules(tasks, upward(tasks), choice, tries, seed)
    if keep:
        return best_answer(problem, objective, schedules)
    eager = [without_order(problem, schedule) for schedule in schedules]
    return Found(min(eager, key=lambda placement: objective.value(problem, placement)))
