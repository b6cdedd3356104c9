"""The fewest devices that still sustain a throughput: more and more devices until it is reached."""

import numpy as np

from streamplace.errors import StreamplaceError
from streamplace.model.constraints import Constraints
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import MET, Condition, Objective
from streamplace.placers.meter import Meter
from streamplace.placers.registry import PLACERS, Budget

SHARE = 0.5
"""Every number of devices may take this share of what is left."""
LEAST = 20_000
"""Evaluations on all devices, which the clock does not end: some ten milliseconds."""


def rate_to_sustain(objective: Objective) -> Condition | None:
    """Return the rate to sustain, where the fewest devices that do are asked for."""
    if objective.base is None or objective.base.kind != "devices" or len(objective.conditions) != 1:
        return None
    (condition,) = objective.conditions
    rate = condition.objective
    return condition if rate.kind == "rate" and rate.usual and condition.sense == "max" else None


def min_devices(
    problem: Problem, condition: Condition, seed: int, meter: Meter
) -> Placement | None:
    """Placement on as few devices as were found to sustain the throughput; None if none do.

    The search for the highest throughput runs on all devices, so that there is an answer, then on
    the strongest device alone, on the two strongest, and so on; fewer devices than their CPU allows
    are not tried.
    """
    strongest = _strongest(problem)

    def sustaining(devices: list[str], part: Budget) -> Placement | None:
        try:
            fewer = _confined(problem, devices)
            result = PLACERS["anneal"].place(fewer, condition.objective, seed=seed, budget=part)
        except StreamplaceError:  # constraints that need other devices
            return None
        meter.spend(part.evaluations or 0)
        enough = result.value >= condition.limit * (1 - MET)
        return problem.placement(result.placement.index) if enough else None

    part = meter.part(SHARE)
    most = None if part is None else part.evaluations
    whole = sustaining(strongest, Budget(None, 1 if part is None else most or LEAST))
    for k in range(least_devices(problem, condition.limit), problem.n_devices + (whole is None)):
        if whole is not None and meter.late:
            break
        few = sustaining(strongest[:k], meter.part(SHARE) or Budget(meter.seconds, 1))
        if few is not None or meter.late:
            return few or whole
    return whole


def least_devices(problem: Problem, limit: float) -> int:
    """Devices without which the CPU cannot sustain a relative throughput, proven."""
    instance = problem.instance
    share = instance.load[:, instance.device_type]  # of every device, per operator
    strength = 1 / np.maximum(share.sum(axis=0), 1e-300)
    least = (share * strength).min(axis=1).sum() * limit
    if len(instance.constant) and instance.n_groups == 1:
        need = limit * share + instance.constant[:, instance.device_type]
        least = (need * strength).min(axis=1).sum()
    power = np.cumsum(np.sort(strength)[::-1])
    return min(int(np.searchsorted(power, least * (1 - MET))) + 1, problem.n_devices)


def _strongest(problem: Problem) -> list[str]:
    """Devices by strength; those that pins name come first."""
    instance, names = problem.instance, problem.cluster.devices.name
    work = instance.full_load.sum(axis=0)[instance.device_type]
    pinned = set(problem.constraints.pin.values())
    order = sorted(range(problem.n_devices), key=lambda d: (names[d] not in pinned, work[d], d))
    return [names[d] for d in order]


def _confined(problem: Problem, devices: list[str]) -> Problem:
    """Return the same problem on some of the devices."""
    old = problem.constraints
    allowed = {
        name: old.allowed.get(name, frozenset(devices)) & frozenset(devices)
        for name in problem.graph.operators.name
    }
    constraints = Constraints(old.pin, old.colocate, old.exlocate, allowed)
    return Problem(problem.graph, problem.cluster, constraints, problem.seconds, problem.moving)
