"""DREAM: graph-aware encoder–decoder, the paper's B+F1&F2 (Ni et al. 2020)."""

from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.learned import placed_by
from streamplace.placers.registry import Budget, Found, placer


@placer("dream")
def dream(
    problem: Problem,
    objective: Objective,
    *,
    seed: int,
    budget: Budget,
    weights: str = "",
    samples: int = 0,
) -> Found:
    """Graph-aware encoder–decoder of the DREAM paper, for up to five equal devices."""
    return placed_by("dream", problem, objective, seed, budget, weights, samples)
