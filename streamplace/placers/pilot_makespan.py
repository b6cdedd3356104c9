"""Pilot for one pass: rebuilds schedules, then searches with what is left of the budget."""

from pathlib import Path

from streamplace.errors import SettingError
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.refining import (
    NONE,
    SpentBudget,
    check_refiner,
    nothing_left,
    refine_answer,
)
from streamplace.placers.registry import PLACERS, Budget, Found, placer
from streamplace.placers.stopwatch import now

MOST_SAMPLES, SAMPLED = 900, 0.9
"""Schedules drawn at most, and as a share of the evaluations; search needs but a few of these."""


@placer("pilot-makespan", objectives=("makespan",))
def pilot_makespan(
    problem: Problem,
    objective: Objective,
    *,
    seed: int,
    budget: Budget,
    weights: str = "",
    looks: int = 3,
    samples: int | None = None,
    refine: str = "anneal",
) -> Found:
    """Learned policy that rebuilds schedules; search refines the best within the budget.

    Parameters
    ----------
    weights
        File of trained weights; those that come with streamplace where empty.
    looks
        Times that the best schedule is rebuilt with the likeliest device for every task.
    samples
        Schedules rebuilt in part, with devices drawn from the policy; the best of all goes on. By
        default nine tenths of the evaluations, but no more than 900; none where seconds are
        counted, for search needs less.
    refine
        Placer that goes on from there, or ``none``.
    """
    from streamplace.learn.loading import shipped
    from streamplace.placers.pilot_makespan_schedules import rebuild_schedules

    if looks < 1 or (samples or 0) < 0:
        raise SettingError(f"looks={looks}, samples={samples}; looks are at least 1, samples 0")
    check_refiner(refine)
    if samples is None:
        samples = min(MOST_SAMPLES, int(SAMPLED * (budget.evaluations or 0)))
    start = now()
    path = Path(weights) if weights else shipped("pilot-makespan")
    answer, tried = rebuild_schedules(problem, objective, path, looks, samples, seed, budget)
    spent = SpentBudget(now() - start, tried)
    if refine == NONE or nothing_left(budget, objective, spent):
        return answer
    search = PLACERS[refine].with_options(start=(answer.placement,))
    return refine_answer(answer, spent, search, problem, objective, seed, budget)
