"""Verification of placements: value and bound of an answer, judged anew before it is returned."""

import logging

from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.conditions import require_conditions
from streamplace.objectives.registry import Objective

LOG = logging.getLogger(__name__)
CLOSE = 1e-6
"""Share by which a value may differ from what a search has added up, or be beyond its bound."""


def verified(
    problem: Problem,
    objective: Objective,
    placement: Placement,
    claimed: float | None,
    bound: float | None,
) -> tuple[float, float | None]:
    """Return what an objective says of a placement, and the bound unless the value refutes it.

    Parameters
    ----------
    claimed
        Value that the search that made the placement believes in; None where it has none.

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
