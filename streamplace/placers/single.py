"""Single: all operators on one device."""

import numpy as np

from streamplace.errors import PlacementError
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.registry import Budget, placer


@placer("single")
def single(problem: Problem, objective: Objective, *, seed: int, budget: Budget) -> Placement:
    """Put all operators on the one device that is best for them."""
    everywhere = np.arange(problem.n_devices, dtype=np.int32)[:, None]
    candidates = np.repeat(everywhere, problem.n_operators, axis=1)
    legal = candidates[problem.legal(candidates)]
    if not len(legal):
        raise PlacementError("the constraints allow no single device to run everything")
    return problem.placement(legal[objective.best(objective.evaluate(problem, legal))])
