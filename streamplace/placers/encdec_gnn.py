"""Graph encoder and LSTM decoder: the paper's B+F1."""

from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.learned import placed_by
from streamplace.placers.registry import Budget, Found, placer


@placer("encdec-gnn")
def encdec_gnn(
    problem: Problem,
    objective: Objective,
    *,
    seed: int,
    budget: Budget,
    weights: str = "",
    samples: int = 0,
) -> Found:
    """Graph encoder, LSTM decoder (B+F1 of the DREAM paper), up to five devices."""
    return placed_by("encdec-gnn", problem, objective, seed, budget, weights, samples)
