"""Latency: the time of a tuple on the longest path, without queueing."""

import numpy as np

from streamplace.model.arrays import Floats, Ints
from streamplace.model.problem import Problem
from streamplace.objectives.registry import objective


@objective("latency", sense="min", unit="s", guide="makespan")
def latency(problem: Problem, placements: Ints) -> Floats:
    """Seconds that a tuple takes on the longest path from a source to a sink, without load.

    Per operator, the core seconds of one tuple; per stream between devices, its latency, the time
    of its bytes on the slowest of the link and the two network cards, and of its overhead at both
    ends.
    """
    from streamsim.latency import latencies

    return latencies(problem.instance, np.atleast_2d(placements))
