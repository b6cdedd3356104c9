"""The fewest devices that sustain a throughput: tries increasing numbers of devices."""

import numpy as np
from streamsim import Instance
from streamsim.filling import work_of_sources

from streamplace.errors import StreamplaceError
from streamplace.model.arrays import Floats
from streamplace.model.constraints import Constraints
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import MET, Condition, Objective
from streamplace.placers.meter import Meter
from streamplace.placers.registry import PLACERS, Budget

SHARE = 0.5
"""Share of the remaining budget for each number of devices."""
LEAST = 20_000
"""Evaluations on all devices, made even if the time is over: about ten milliseconds."""


def rate_to_sustain(objective: Objective) -> Condition | None:
    """Return the condition on the rate, if the objective is the fewest devices that sustain it."""
    if objective.base is None or objective.base.kind != "devices" or len(objective.conditions) != 1:
        return None
    (condition,) = objective.conditions
    rate = condition.objective
    return condition if rate.kind == "rate" and rate.usual and condition.sense == "max" else None


def min_devices(
    problem: Problem, condition: Condition, seed: int, meter: Meter
) -> Placement | None:
    """Placement on the fewest devices found to sustain the throughput; None if none do.

    The search for the highest throughput runs on all devices, so that there is a result, then on
    the strongest device alone, on the two strongest, and so on, starting at the fewest that their
    CPU allows.
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
        few = sustaining(strongest[:k], meter.part(SHARE) or meter.up_to(1))
        if few is not None or meter.late:
            return few or whole
    return whole


def least_devices(problem: Problem, limit: float) -> int:
    """Lower bound of the number of devices whose CPU sustains a relative throughput."""
    if limit <= 0:
        return 1
    instance = problem.instance
    share = instance.load[:, instance.device_type]  # of every device, per operator
    strength = 1 / np.maximum(share.sum(axis=0), 1e-300)
    if instance.n_groups > 1:
        need = instance.full_load[:, instance.device_type]
        least = _least_work(instance, (need * strength).min(axis=1), limit)
    else:
        need = limit * share
        if len(instance.constant):
            need = need + instance.constant[:, instance.device_type]
        least = (need * strength).min(axis=1).sum()
    power = np.cumsum(np.sort(strength)[::-1])
    return min(int(np.searchsorted(power, least * (1 - MET))) + 1, problem.n_devices)


def _least_work(instance: Instance, work: Floats, limit: float) -> float:
    """Least work with which the sources reach a relative throughput.

    The throughput is the mean of the relative rates of sources, weighted by their rates, so the
    groups with the least work per tuple go first. ``work`` [N] is the work of operators at full
    rate, constant loads included. Charging constant loads in proportion to the rate never
    overestimates: an operator with any input has its full constant load on a device with capacity
    for it, and an operator without input may be on a device that constant loads fill.
    """
    rates = np.bincount(instance.group, instance.rate[instance.sources])
    each = np.bincount(instance.group, work_of_sources(instance, work))
    cheapest = np.argsort(each / rates)
    weight = (rates / rates.sum())[cheapest]
    before = np.cumsum(weight) - weight
    reached = np.clip((limit - before) / weight, 0.0, 1.0)
    return float(reached @ each[cheapest])


def _strongest(problem: Problem) -> list[str]:
    """Devices by falling strength, pinned ones first."""
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
