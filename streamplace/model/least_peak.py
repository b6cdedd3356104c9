"""Lower bounds of the peak load of every placement, from the loads of single units."""

import sys
from typing import TYPE_CHECKING

import numpy as np

from streamplace.model.coarsening import Level, finest_level

if TYPE_CHECKING:
    from streamplace.model.problem import Problem

MAX_STEPS, CONVERGED = 60, 1e-12
"""Most steps of the bound, and the relative gain at which it has converged."""
ENDLESS_TIMES = 1e100
"""Factor above which constant loads alone are too much; sums of loads stay finite at it."""


def least_peak(problem: "Problem", level: Level) -> float:
    """Lower bound on the peak: the heaviest unit, or the mean of all CPU loads.

    With weights y_d that sum to 1, the peak is at least Σ_d y_d L_d ≥ Σ_u min_d y_d load(u, d).
    The weights are proportional to the power of the devices, so the bound is the mean load if all
    operators run faster on faster devices by the same factor.
    """
    types = level.device_type
    alone = level.load[:, types]
    if len(level.core):
        alone = np.maximum(alone, level.core[:, types])
    if problem.rules is not None:
        alone = np.where(level.allowed[level.kind], alone, np.inf)
    heaviest = float(alone.min(axis=1).max())
    whole = level.load.sum(axis=0)[types]
    if not (whole > sys.float_info.min * len(whole)).all():  # the weights would overflow
        return heaviest
    weight = 1 / whole
    shares = level.load[:, types] * (weight / weight.sum())
    return max(heaviest, float(shares.min(axis=1).sum()))


def peak_yardstick(problem: "Problem", level: Level) -> float:
    """Least peak that a placement could have by the CPU alone, but at least 1."""
    least = least_peak(problem, level)
    return max(1.0, least) if np.isfinite(least) else 1.0


def least_times(problem: "Problem") -> float:
    """Lower bound (at least 1) on the factor by which full rates must be divided.

    A lower bound on the peak with constant loads multiplied by ``times``, as in `finest_level`,
    bounds this factor if it is at least ``times``; then ``times`` is raised to it.
    """
    times = 1.0
    for _ in range(MAX_STEPS):
        least = least_peak(problem, finest_level(problem, times))
        if least <= times * (1 + CONVERGED) or times >= ENDLESS_TIMES:
            break
        times = least
    return times
