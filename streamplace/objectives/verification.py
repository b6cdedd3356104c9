"""Verification: value and bound of a placement, evaluated again before it is returned."""

import logging

from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.conditions import require_conditions
from streamplace.objectives.registry import Objective

LOG = logging.getLogger(__name__)
CLOSE = 1e-6
"""Relative difference that rounding may cause between a search and its evaluation."""


def verified(
    problem: Problem,
    objective: Objective,
    placement: Placement,
    claimed: float | None,
    bound: float | None,
) -> tuple[float, float | None]:
    """Return the value of a placement, and its bound unless the value refutes it.

    Parameters
    ----------
    claimed
        Value by the search that found the placement; None if it has none.

    Raises
    ------
    PlacementError
        When the placement misses a condition.
    """
    require_conditions(problem, objective, placement)
    value = objective.value(problem, placement)
    if claimed is not None and abs(value - claimed) > CLOSE * max(abs(value), abs(claimed)):
        LOG.error("%s is %.9g, and not %.9g as its search says", objective.name, value, claimed)
    if bound is not None and objective.better(value, bound) and not _equal(value, bound):
        LOG.error("%s of %.9g is better than the bound %.9g", objective.name, value, bound)
        return value, None
    return value, bound


def _equal(a: float, b: float) -> bool:
    return abs(a - b) <= CLOSE * max(abs(a), abs(b))
