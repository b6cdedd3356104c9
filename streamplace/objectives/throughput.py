"""Relative throughput: the share of the sources' rate that the placed graph sustains."""

import numpy as np
from numpy.typing import NDArray

from streamplace.model.columns import Ints
from streamplace.model.problem import Problem
from streamplace.objectives.registry import objective


@objective("throughput", sense="max")
def throughput(problem: Problem, placements: Ints) -> NDArray[np.float64]:
    """Relative throughput in the steady state, 0 to 1 (max–min fair between sources)."""
    from streamsim import throughput as steady_throughput

    return steady_throughput(problem.instance, placements)
