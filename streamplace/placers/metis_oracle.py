"""METIS oracle: the best result of METIS over all numbers of parts."""

from typing import Literal

from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.oracle import with_best_k
from streamplace.placers.registry import PLACERS, Budget, Found, placer

METIS = PLACERS["metis"]


@placer("metis-oracle")
def metis_oracle(
    problem: Problem,
    objective: Objective,
    *,
    seed: int,
    budget: Budget,
    ufactor: int | None = None,
    method: Literal["auto", "recursive", "kway"] = "auto",
) -> Found:
    """METIS with the best number of parts.

    Parameters
    ----------
    ufactor, method
        As for ``metis``.
    """
    metis = METIS.with_options(ufactor=ufactor, method=method)
    return with_best_k(metis, problem, objective, seed, budget)
