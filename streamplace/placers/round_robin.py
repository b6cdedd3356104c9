"""Round-robin: assigns operators to devices in turn, in topological order."""

import numpy as np

from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.registry import Budget, placer


@placer("round-robin")
def round_robin(problem: Problem, objective: Objective, *, seed: int, budget: Budget) -> Placement:
    """Deal operators to devices in turn; a baseline that any placer should beat."""
    turn = np.empty(problem.n_operators, np.int32)
    turn[problem.graph.order] = np.arange(problem.n_operators) % problem.n_devices
    return problem.placement(problem.repaired(turn))
