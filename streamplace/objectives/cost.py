"""Cost: the seconds of one pass on devices and links, added up, or the money for them."""

import numpy as np

from streamplace.model.arrays import Floats, Ints
from streamplace.model.mixins import kept
from streamplace.model.problem import Problem
from streamplace.objectives.pass_bounds import least_of_a_pass
from streamplace.objectives.registry import objective

PASSES, HOUR = 1e6, 3600.0
"""Passes to which costs in money refer, and seconds to which prices refer."""


def _per_core_second(problem: Problem) -> Floats:
    """Price of a core second of each device for many passes; 1 without prices, [D]."""
    devices = problem.cluster.devices
    if not devices.price.any():
        return np.ones(problem.n_devices)
    return np.asarray(PASSES * devices.price / (HOUR * devices.cores))


@kept
def bound(problem: Problem) -> float:
    """Least cost if only a spanning forest of the streams costs anything."""
    platform, is_priced = problem.cluster.platform, problem.cluster.devices.price.any()

    def sending(tuples: float, size: float) -> Floats:
        if is_priced:
            return np.zeros_like(platform.latency)
        return platform.latency + tuples * platform.gap + size * platform.wire

    return least_of_a_pass(problem, _per_core_second(problem), sending)


@objective(
    "cost",
    sense="min",
    unit="s",
    of=" of cores and links per pass",
    money="per million passes",
    beside="throughput",
    bound=bound,
)
def cost(problem: Problem, placements: Ints) -> Floats:
    """Sum of core and transfer seconds of one pass, or the price of its core seconds.

    A pass is one tuple of the fastest source. Every stream between two devices is a transfer of
    its own, with the link's latency, at the speed of the slowest of the link and the two network
    cards. Constant loads take core seconds as long as a pass lasts at the rate that is carried.
    Where devices have prices, a million passes cost price per hour × core seconds / cores, and
    links nothing.
    """
    from streamsim.pass_costs import spent

    passed = spent(problem.instance, np.atleast_2d(placements))
    core = passed.priced(_per_core_second(problem))
    return np.asarray(core if problem.cluster.devices.price.any() else core + passed.link_seconds)
