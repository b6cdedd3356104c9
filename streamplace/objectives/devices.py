"""Devices: the number of devices that a placement uses."""

import numpy as np

from streamplace.model.arrays import Floats, Ints
from streamplace.model.problem import Problem
from streamplace.objectives.registry import objective


@objective("devices", sense="min", unit="devices", limit=1.0, kind="devices", beside="throughput")
def devices(problem: Problem, placements: Ints) -> Floats:
    """Number of devices in use; combine it with a condition, such as throughput>=1."""
    used = np.sort(np.atleast_2d(placements), axis=1)
    return np.asarray(1.0 + (np.diff(used, axis=1) != 0).sum(axis=1), np.float64)
