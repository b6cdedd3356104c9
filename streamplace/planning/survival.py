"""Survival: plans that carry a share of the rate after the loss of any one machine.

After a loss, the subtasks of the lost machine go to the best places on the others, as for the
objective `survives`, within the slots of the machines. Packed machines that survive too little are
respread: while that helps, parts of operators move away from the machine whose loss costs most, or
change places.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import inf

import numpy as np
from streamsim import throughput_of
from streamsim._core import Survival

from streamplace.errors import GraphError
from streamplace.model.arrays import Floats, Ints
from streamplace.model.devices import SLACK
from streamplace.model.expansion import Expansion
from streamplace.model.problem import Problem
from streamplace.objectives.survives import Loss, freedom_of, loss_by
from streamplace.planning.demand import slot_groups
from streamplace.planning.deployment import (
    TOLERANCE,
    PlannedDeployment,
    acceptor,
    deployed,
    paired,
    placing_of,
)
from streamplace.planning.offers import offer_of
from streamplace.planning.packing import Accept, PackedMachines, Packing, is_whole, packing_of, uses
from streamplace.planning.problem import PlanProblem

MAX_TRIALS = 400
"""Most changes to try for one plan that survives too little."""
MAX_EXACT = 32
"""Most machines whose losses are searched to the end, not only up to a sufficient share."""


def losses_of(
    problem: PlanProblem, deployment: PlannedDeployment, devices: Ints
) -> tuple[Loss, ...]:
    """Loss of each of these devices, with the share that the others carry; the worst first."""
    placing, placement = placing_of(problem, deployment, devices), deployment.placement
    core = _core(problem, deployment.expansion, placing)
    enough = inf if len(devices) <= MAX_EXACT else problem.settings.survives
    losses = [loss_by(core, placing, placement, device, enough) for device in placement.pes()]
    return tuple(sorted(losses, key=lambda loss: loss.relative_throughput))


def _core(problem: PlanProblem, expansion: Expansion, placing: Problem) -> Survival:
    freedom = freedom_of(placing)
    catalogue, slots = problem.catalogue, np.zeros(0)
    if problem.cluster is None and np.isfinite([offer.slots for offer in catalogue.offers]).any():
        of_offer = {offer.name: float(offer.slots) for offer in catalogue.whole}
        names = placing.cluster.devices.name
        slots = np.array([of_offer[offer_of(name, catalogue.alone)] for name in names])
    group = np.unique(slot_groups(problem.demand, catalogue), return_inverse=True)[1]
    freedom = freedom._replace(
        kind=expansion.operator.astype(np.int32), group=group.astype(np.int32), slots=slots
    )
    return Survival(placing.instance.core, freedom)


def survivor(problem: PlanProblem) -> Accept:
    """Return a function that accepts packed machines if they carry the rate and survive a loss."""
    accept = acceptor(problem)

    def accepted(packed: PackedMachines) -> PackedMachines | None:
        carrying = accept(packed)
        if carrying is None:
            return None
        try:
            return _respread(problem, carrying)
        except GraphError:
            return None

    return accepted


def _respread(problem: PlanProblem, packed: PackedMachines) -> PackedMachines | None:
    """Change the contents of packed machines until they survive a loss; None if that fails."""
    deployment, share = deployed(problem, packed), problem.settings.survives
    devices = np.arange(len(packed.kinds)) if packed.devices is None else packed.devices
    placing = placing_of(problem, deployment, devices.astype(np.int32))
    core = _core(problem, deployment.expansion, placing)
    packing = packing_of(problem.demand, problem.catalogue, packed.parallelism)
    random, enough = np.random.default_rng(problem.settings.seed), share * (1 - SLACK)

    def shares_of(rows: Ints) -> Floats:
        """Share that is carried without each machine, [D]: 1 for an idle one, 0 for no plan."""
        where, _ = paired(problem.demand, packed.parallelism, rows)
        place, shares = devices[np.concatenate(where)].astype(np.int32), np.ones(len(rows))
        if throughput_of(placing.instance, place) < 1 - TOLERANCE:
            return np.zeros(len(rows))
        for machine in np.flatnonzero(rows.any(axis=1)).tolist():
            shares[machine] = core.without(place, int(devices[machine]), share)[0]
        return shares

    def score(shares: Floats) -> tuple[float, float]:
        capped = np.minimum(shares, enough)
        return round(float(capped.min()), 9), round(float(capped.sum()), 9)

    rows, trials = packed.rows, 0
    shares = shares_of(rows)
    while shares.min() < enough:
        for other in _changes(packing, packed.kinds, rows, int(np.argmin(shares)), random):
            trials += 1
            if trials > MAX_TRIALS:
                return None
            reached = shares_of(other)
            if reached.min() > 0 and score(reached) > score(shares):
                rows, shares = other, reached
                break
        else:
            return None
    return replace(packed, rows=rows)


def _changes(
    packing: Packing, kinds: Ints, rows: Ints, worst: int, random: np.random.Generator
) -> Iterator[Ints]:
    """Contents with a part of some operator away from a machine, or in place of another."""
    part = packing.part
    units = [packing.unit == u for u in np.unique(packing.unit)]
    parts = [np.where(unit, part, 0).astype(np.int32) for unit in units]
    nothing = np.zeros_like(part)
    pairs = [(a, b) for a in range(len(parts)) for b in range(-1, len(parts)) if a != b]
    options = [(*pair, m) for pair in pairs for m in range(len(rows)) if m != worst]
    for i in random.permutation(len(options)).tolist():
        a, b, machine = options[i]
        change = parts[a] - (parts[b] if b >= 0 else nothing)
        changed = rows.copy()
        changed[worst] -= change
        changed[machine] += change
        pair, both = changed[[worst, machine]], kinds[[worst, machine]]
        if (pair < 0).any() or uses(packing, both, pair).max() > 1 + SLACK:
            continue
        if is_whole(packing, pair).all():
            yield changed
