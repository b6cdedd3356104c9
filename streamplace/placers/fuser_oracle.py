"""Fuser oracle: the best result of the fuser over all numbers of parts."""

from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.oracle import with_best_k
from streamplace.placers.registry import PLACERS, Budget, Found, placer

FUSER = PLACERS["fuser"]


@placer("fuser-oracle")
def fuser_oracle(problem: Problem, objective: Objective, *, seed: int, budget: Budget) -> Found:
    """The fuser with the best number of parts."""
    return with_best_k(FUSER, problem, objective, seed, budget)
