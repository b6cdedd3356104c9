"""Encoder–decoder: the paper's baseline B, in place of Mirhoseini et al. (2017)."""

from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.learned import placed_by
from streamplace.placers.registry import Budget, Found, placer


@placer("encdec")
def encdec(
    problem: Problem,
    objective: Objective,
    *,
    seed: int,
    budget: Budget,
    weights: str = "",
    samples: int = 0,
) -> Found:
    """Encoder–decoder LSTMs (B of the DREAM paper), for up to five equal devices."""
    return placed_by("encdec", problem, objective, seed, budget, weights, samples)
