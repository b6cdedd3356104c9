"""What is left of a budget after a first answer, and a search that goes on from there."""

from typing import NamedTuple

from streamplace.errors import SettingError
from streamplace.model.messages import quoted
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.incumbent import continued
from streamplace.placers.registry import PLACERS, Budget, Found, Placer

NONE = "none"


class SpentBudget(NamedTuple):
    """What a first answer took."""

    seconds: float
    evaluations: int


def check_refiner(name: str) -> None:
    """Raise SettingError unless a placer of this name can go on from a placement."""
    if name != NONE and "start" not in PLACERS[name].defaults():
        raise SettingError(
            f"placer {quoted(name)} cannot start from a placement; refine with anneal"
        )


def nothing_left(budget: Budget, objective: Objective, spent: SpentBudget) -> bool:
    """Whether nothing remains; by a quick objective, the least work of a search does."""
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
    """Let a search go on from a first answer, with what remains of the budget."""
    result = search.attempt(problem, objective, seed=seed, budget=_left(budget, spent))
    trace = continued(answer.trace, result.trace, *spent, objective.better)
    return Found(result.placement, result.bound, tuple(trace))


def _left(budget: Budget, spent: SpentBudget) -> Budget:
    """What remains of a budget, be it a moment."""
    return Budget(
        None if budget.seconds is None else max(budget.seconds - spent.seconds, 1e-6),
        None if budget.evaluations is None else budget.evaluations - spent.evaluations,
    )
