"""Cost: the seconds of one pass on devices and links, added up."""

import numpy as np

from streamplace.model.arrays import Floats, Ints
from streamplace.model.problem import Problem
from streamplace.objectives.registry import objective


@objective("cost", sense="min", unit="s", of=" of cores and links per pass", beside="throughput")
def cost(problem: Problem, placements: Ints) -> Floats:
    """Sum of core seconds and transfer seconds of one pass, regardless of overlap (GiPH's total).

    A pass is one tuple of the fastest source. Every stream between two devices is a transfer of
    its own, with the link's latency, at the speed of the slowest of the link and the two network
    cards. Constant loads take core seconds as long as a pass lasts at the rate that is carried.
    """
    from streamsim.pass_costs import spent

    passed = spent(problem.instance, np.atleast_2d(placements))
    return np.asarray(passed.core_seconds.sum(axis=1) + passed.link_seconds)
