"""Oracle: tries every number of parts and keeps the best, as if it were known beforehand.

The oracles of the DREAM paper try 2 to 5 parts on 5 devices; these try 1 to all devices.
"""

from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.incumbent import Incumbent
from streamplace.placers.meter import Meter
from streamplace.placers.registry import Budget, Found, Placer, remaining_budget


def with_best_k(
    base: Placer, problem: Problem, objective: Objective, seed: int, budget: Budget
) -> Found:
    """Try k from the number of devices down to one; on ties, the smallest k wins.

    Each try gets an equal share of the seconds that remain, and of all evaluations.
    """
    meter = Meter(budget, problem.n_devices)
    best = Incumbent[Placement](lambda a, b: not objective.better(b, a), meter)
    share = None
    if budget.evaluations is not None:
        share = max(1, budget.evaluations // problem.n_devices)
    for k in range(problem.n_devices, 0, -1):
        if meter.late and not best.empty:
            break
        seconds = meter.seconds
        part = remaining_budget(None if seconds is None else seconds / k, share)
        result = base.with_options(k=k).attempt(problem, objective, seed=seed, budget=part)
        meter.spend(1)
        best.offer(result.placement, result.value)
    return best.answer(best.solution)
