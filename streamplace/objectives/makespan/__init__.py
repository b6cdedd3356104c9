"""Makespan: how long one pass through the placed graph takes."""

import numpy as np

from streamplace.model.columns import Floats, Ints
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.picture import Picture
from streamplace.objectives.registry import Explanation, Values, objective


def _bound(problem: Problem) -> float:
    from streamplace.objectives.makespan.bound import least_makespan

    return least_makespan(problem)


def _explain(problem: Problem, placement: Placement) -> Explanation:
    from streamplace.objectives.makespan.explain import explain

    return explain(problem, placement)


def _picture(problem: Problem, placement: Placement) -> Picture:
    from streamplace.objectives.makespan.picture import picture

    return picture(problem, placement)


@objective("makespan", sense="min", unit="s", bound=_bound, explain=_explain, picture=_picture)
def makespan(problem: Problem, placements: Ints, priorities: Floats | None = None) -> Values:
    """Seconds of one pass, where an operator runs once all of its inputs are there."""
    from streamsim.passes import Rules, makespans

    batch = np.atleast_2d(placements)
    if priorities is None:
        return makespans(problem.one_pass, batch)
    return makespans(problem.one_pass, batch, Rules(queue="priority"), priorities=priorities)
