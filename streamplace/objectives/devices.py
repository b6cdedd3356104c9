"""Devices: the number of devices that a placement uses."""

from math import ceil

import numpy as np

from streamplace.model.arrays import ROUNDING, Floats, Ints
from streamplace.model.problem import Problem
from streamplace.objectives.registry import objective


def least_devices(problem: Problem, share: float = 0.0) -> float:
    """Lower bound of the devices of a placement that carries a share of the rate.

    The largest of three numbers: of units of which no two may share a device; of the largest
    devices whose memory is enough; and of the devices whose CPU all operators need if each runs
    where it needs least.
    """
    rules, instance = problem.rules, problem.instance
    needed = 1
    allowed = np.ones(instance.load.shape, np.bool_)[:, instance.device_type]
    if rules is not None:
        allowed = rules.allowed[rules.unit]
        apart = set(map(tuple, np.sort(rules.apart, axis=1).tolist()))
        rivals: list[int] = []
        for u in np.argsort(rules.allowed.sum(axis=1), kind="stable").tolist():
            alone = not rivals or ~(rules.allowed[rivals] & rules.allowed[u]).any(axis=1)
            linked = [(min(u, v), max(u, v)) in apart for v in rivals]
            if np.all(np.logical_or(alone, linked)):
                rivals.append(u)
        needed = max(needed, len(rivals))
        if rules.memory is not None and rules.room is not None:
            roomiest = np.cumsum(np.sort(rules.room)[::-1]) * (1 + ROUNDING)
            needed = max(needed, 1 + int(np.searchsorted(roomiest, rules.memory.sum())))
    if share > 0.0:
        load = share * instance.load
        if len(instance.constant):
            load = load + instance.constant
        used = np.where(allowed, load[:, instance.device_type], np.inf).min(axis=1).sum()
        needed = max(needed, ceil(used * (1 - ROUNDING) - ROUNDING))
    return float(needed)


@objective(
    "devices",
    sense="min",
    unit="devices",
    limit=1.0,
    kind="devices",
    beside="throughput",
    bound=least_devices,
)
def devices(problem: Problem, placements: Ints) -> Floats:
    """Number of devices in use; combine it with a condition, such as throughput>=1."""
    used = np.sort(np.atleast_2d(placements), axis=1)
    return np.asarray(1.0 + (np.diff(used, axis=1) != 0).sum(axis=1), np.float64)
