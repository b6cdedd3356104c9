"""Refining: a search that continues from a first placement with the remaining budget."""

from typing import NamedTuple

from streamplace.errors import SettingError
from streamplace.model.messages import quoted
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.incumbent import continued
from streamplace.placers.registry import PLACERS, Budget, Found, Placer

NONE = "none"


class SpentBudget(NamedTuple):
    """Part of a budget that the first placement used."""

    seconds: float
    evaluations: int


def check_refiner(name: str) -> None:
    """Raise SettingError unless a placer of this name can start from a placement."""
    if name != NONE and "start" not in PLACERS[name].defaults():
        raise SettingError(
            f"placer {quoted(name)} cannot start from a placement; refine with anneal"
        )


def nothing_left(budget: Budget, objective: Objective, spent: SpentBudget) -> bool:
    """Whether no budget remains for a search; with a quick objective, time never runs out."""
    if budget.evaluations is not None and budget.evaluations <= spent.evaluations:
        return True
    late = budget.seconds is not None and budget.seconds <= spent.seconds
    return late and not objective.quick


def refine_answer(
    answer: Found,
    spent: SpentBudget,
    search: Placer,
    problem: Problem,
    objective: Objective,
    seed: int,
    budget: Budget,
) -> Found:
    """Continue from a first answer with a search on the remaining budget."""
    result = search.attempt(problem, objective, seed=seed, budget=_left(budget, spent))
    trace = continued(answer.trace, result.trace, *spent, objective.better)
    return Found(result.placement, result.bound, tuple(trace))


def _left(budget: Budget, spent: SpentBudget) -> Budget:
    """Remaining budget; at least a microsecond."""
    return Budget(
        None if budget.seconds is None else max(budget.seconds - spent.seconds, 1e-6),
        None if budget.evaluations is None else budget.evaluations - spent.evaluations,
    )
