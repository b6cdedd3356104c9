"""Foresight: HEFT with the least remaining time after each task on each device."""

from itertools import chain

from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.registry import Budget, Found, placer
from streamplace.placers.scheduled import best_answer
from streamplace.scheduling.insertion import plain_choice
from streamplace.scheduling.lists import rank_schedules, with_lookahead
from streamplace.scheduling.ranks import least_after, upward
from streamplace.scheduling.tasks import tasks_of


@placer("foresight", objectives=("makespan",))
def foresight(
    problem: Problem, objective: Objective, *, seed: int, budget: Budget, tries: int = 1
) -> Found:
    """HEFT with look-ahead along the shortest way to the end over the actual links; our own.

    The least time after v on device a, if no core and no link is ever busy, is

        after(v, a) = max over streams (v, u) of min over devices b of
                      (c(v, u, a, b) + w(u, b) + after(u, b)).

    Unlike PEFT's table this knows what each link costs and where a task may run. Tasks come in
    falling order of the upward rank, each to the device with the least EFT(v, a) + after(v, a);
    half of ``after`` is tried as well, and none of it, which is HEFT. The best of these schedules
    counts, so that the answer is never worse than HEFT's.

    Parameters
    ----------
    tries
        Schedules of each of the three; all but the first break ties of ranks at random.
    """
    tasks = tasks_of(problem)
    after, rank = least_after(tasks), upward(tasks)
    choices = (with_lookahead(after), with_lookahead(after / 2), plain_choice(tasks.n_tasks, True))
    schedules = (rank_schedules(tasks, rank, choice, tries, seed) for choice in choices)
    return best_answer(problem, objective, chain.from_iterable(schedules))
