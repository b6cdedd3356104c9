"""Enumeration: all legal placements of the units, of equal empty devices only the first.

Any objective whose values do not depend on an order of the operators is proven by it, under any
conditions, if few placements are legal.
"""

from collections.abc import Callable, Iterator

import numpy as np
from streamsim.jit import borrowing_kernel

from streamplace.model.arrays import Bools, Ints, Longs
from streamplace.model.packing import meets_rival
from streamplace.model.problem import Problem
from streamplace.objectives.conditions import BEYOND
from streamplace.objectives.registry import Objective
from streamplace.placers.exact.prover import has_memory
from streamplace.placers.exact.units import Units, units_of
from streamplace.placers.incumbent import Incumbent, handing_on
from streamplace.placers.meter import Meter
from streamplace.placers.registry import Budget, Found, Placer

MOST_PLACEMENTS, PER_SECOND = 1_000_000, 200_000
"""Most legal placements that are all evaluated, and most per second of a budget."""
MOST_UNITS = 200
"""Most units of which few placements may be legal; to find out takes longer with more."""
HALF = 0.5
"""Share of a budget for trying all placements before any search."""
BATCH, STEPS = 4096, 200_000
"""Most placements that are listed at once, and most steps for them."""


def best_of_all(problem: Problem, objective: Objective, *, seed: int, budget: Budget) -> Found:
    """Evaluate all legal placements; without a bound if the budget ends before."""
    units, unit = _units(problem, objective), problem.unit
    meter = Meter(budget, 1)
    best = Incumbent[Ints](objective.better, meter)

    def judge(batch: Ints) -> None:
        values = objective.values(problem, batch[:, unit])
        first = objective.best(values)
        best.offer(batch[first].copy(), values[first])
        meter.spend(len(batch))

    def found(bound: float | None = None) -> Found:
        return best.answer(problem.placement(best.solution[unit]), bound)

    with handing_on(lambda: None if best.empty else found()):
        whole = judge_all(units, meter, judge)
    return found(best.value if whole and abs(best.value) < BEYOND else None)


BEST_OF_ALL = Placer("enumeration", "The best of all legal placements.", best_of_all)
"""Not registered: `auto` calls it where `is_enumerable`."""


def is_enumerable(problem: Problem, objective: Objective, budget: Budget) -> bool:
    """Whether half of a budget may suffice for all placements, which proves the best value."""
    most = float(MOST_PLACEMENTS)
    if budget.evaluations is not None:
        most = min(most, HALF * budget.evaluations)
    if budget.seconds is not None:
        most = min(most, HALF * budget.seconds * PER_SECOND)
    return not objective.ordered and are_few(_units(problem, objective), int(most))


def _units(problem: Problem, objective: Objective) -> Units:
    """Units of a problem; no devices are equal where it counts which of them an operator is on."""
    units = units_of(problem)
    if objective.relocation is None:
        return units
    return units._replace(classes=np.arange(units.n_devices, dtype=np.int32))


def judge_all(units: Units, meter: Meter, judge: Callable[[Ints], object]) -> bool:
    """Judge all legal placements within the budget; return whether that was all of them."""
    for batch in legal_placements(units):
        while size := meter.chunk(len(batch)):
            judge(batch[:size])
            batch = batch[size:]
        if len(batch):
            return False
    return True


def legal_placements(units: Units) -> Iterator[Ints]:
    """Yield batches [B, U] of all legal placements, each once up to swaps of equal devices.

    A batch has fewer than `BATCH`, or none, at the end or where few placements are legal.
    """
    allowed = np.isfinite(units.load)
    place, clock = np.full(units.n_units, -1, np.int32), np.zeros(1, np.int64)
    placed = np.zeros(units.n_devices, np.int32)
    while clock[0] >= 0:
        batch = np.empty((BATCH, units.n_units), np.int32)
        yield batch[: _list(units, allowed, place, placed, clock, batch)]


def are_few(units: Units, most: int) -> bool:
    """Whether at most so many placements, up to swaps of equal devices, are quickly listed."""
    if units.n_units > MOST_UNITS:
        return False
    before = 0
    for number, batch in enumerate(legal_placements(units)):
        if before + len(batch) > most:
            return False
        before = (number + 1) * BATCH
    return True


@borrowing_kernel
def _list(
    units: Units, allowed: Bools, place: Ints, placed: Ints, clock: Longs, batch: Ints
) -> int:
    """Write the next placements to the batch; return their number.

    ``clock`` has the unit that is moved next, -1 at the end; those before it are ``placed`` [D],
    and -1 is the device of the others.
    """
    n, n_devices, size, steps = len(place), allowed.shape[1], 0, 0
    u = clock[0]
    while u >= 0 and size < len(batch) and steps < STEPS:
        steps += 1
        d = place[u] + 1
        place[u] = -1
        while d < n_devices and not _may(units, allowed, place, placed, u, d):
            d += 1
        if d == n_devices:
            u -= 1
            if u >= 0:
                placed[place[u]] -= 1
            continue
        place[u] = d
        if u + 1 < n:
            placed[d] += 1
            u += 1
            continue
        for v in range(n):
            batch[size, v] = place[v]
        size += 1
    clock[0] = u
    return size


@borrowing_kernel
def _may(units: Units, allowed: Bools, place: Ints, placed: Ints, u: int, d: int) -> bool:
    """Whether a unit may be placed on a device, which is the first of those that are equal."""
    if not allowed[u, d] or meets_rival(place, units.rival_start, units.rivals, u, d):
        return False
    if not has_memory(units, place, u, d):
        return False
    earlier = False
    for a in range(d):
        earlier |= units.classes[a] == units.classes[d] and placed[a] == 0
    return placed[d] > 0 or not earlier
