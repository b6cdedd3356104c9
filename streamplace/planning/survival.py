"""Survival: plans that carry a share of the rate after the loss of any one machine.

After a loss, the subtasks of the lost machine go to the best places on the others, as for the
objective `survives`, within the slots of the machines. Packed machines that survive too little are
respread: while that helps, parts of operators move away from the machine whose loss costs most, or
change places.
"""

from collections.abc import Iterator
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
from streamplace.planning.packing import Accept, PackedMachines, is_whole, packing_of, uses
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
    accept, share = acceptor(problem), problem.settings.survives

    def accepted(packed: PackedMachines) -> PackedMachines | None:
        carrying = accept(packed)
        if carrying is None:
            return None
        try:
            return _Respreading(problem, carrying, share).run()
        except GraphError:
            return None

    return accepted


class _Respreading:
    """Changes of the contents of packed machines, so that they survive a loss."""

    def __init__(self, problem: PlanProblem, packed: PackedMachines, share: float) -> None:
        self._problem, self._packed, self._share = problem, packed, share
        deployment = deployed(problem, packed)
        count = len(packed.kinds)
        self._devices = np.arange(count) if packed.devices is None else packed.devices
        placing = placing_of(problem, deployment, self._devices.astype(np.int32))
        self._instance = placing.instance
        self._core = _core(problem, deployment.expansion, placing)
        self._packing = packing_of(problem.demand, problem.catalogue, packed.parallelism)
        self._random = np.random.default_rng(problem.settings.seed)

    def run(self) -> PackedMachines | None:
        """Return contents that survive; None if none are found."""
        rows, trials = self._packed.rows, 0
        shares = self._shares(rows)
        while shares.min() < self._share * (1 - SLACK):
            worst = int(np.argmin(shares))
            for other in self._changes(rows, worst):
                trials += 1
                if trials > MAX_TRIALS:
                    return None
                reached = self._shares(other)
                if reached.min() > 0 and self._score(reached) > self._score(shares):
                    rows, shares = other, reached
                    break
            else:
                return None
        packed = self._packed
        return PackedMachines(packed.kinds, packed.parallelism, rows, packed.devices)

    def _score(self, shares: Floats) -> tuple[float, float]:
        capped = np.minimum(shares, self._share * (1 - SLACK))
        return round(float(capped.min()), 9), round(float(capped.sum()), 9)

    def _place(self, rows: Ints) -> Ints:
        where, _ = paired(self._problem.demand, self._packed.parallelism, rows)
        return self._devices[np.concatenate(where)].astype(np.int32)

    def _shares(self, rows: Ints) -> Floats:
        """Share that is carried without each machine, [D]: 1 for an idle one, 0 for no plan."""
        place, shares = self._place(rows), np.ones(len(rows))
        if throughput_of(self._instance, place) < 1 - TOLERANCE:
            return np.zeros(len(rows))
        for machine in np.flatnonzero(rows.any(axis=1)).tolist():
            device = int(self._devices[machine])
            shares[machine] = self._core.without(place, device, self._share)[0]
        return shares

    def _changes(self, rows: Ints, worst: int) -> Iterator[Ints]:
        """Contents with a part of some operator away from a machine, or in place of another."""
        packing, part = self._packing, self._packing.part
        units = [packing.unit == u for u in np.unique(packing.unit)]
        parts = [np.where(unit, part, 0).astype(np.int32) for unit in units]
        nothing = np.zeros_like(part)
        pairs = [(a, b) for a in range(len(parts)) for b in range(-1, len(parts)) if a != b]
        options = [(*pair, m) for pair in pairs for m in range(len(rows)) if m != worst]
        for i in self._random.permutation(len(options)).tolist():
            a, b, machine = options[i]
            change = parts[a] - (parts[b] if b >= 0 else nothing)
            changed = rows.copy()
            changed[worst] -= change
            changed[machine] += change
            pair = changed[[worst, machine]]
            kinds = self._packed.kinds[[worst, machine]]
            if (pair < 0).any() or uses(packing, kinds, pair).max() > 1 + SLACK:
                continue
            if is_whole(packing, pair).all():
                yield changed
