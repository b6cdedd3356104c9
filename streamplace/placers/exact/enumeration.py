"""Enumeration: all legal placements of the units, of equal empty devices only the first.

Any objective whose values do not depend on an order of the operators is proven by it, under any
conditions, if few placements are legal.
"""

from collections.abc import Callable, Iterator

import numpy as np
from streamsim import _core

from streamplace.model.arrays import Ints
from streamplace.model.problem import Problem
from streamplace.objectives.conditions import BEYOND
from streamplace.objectives.registry import Objective
from streamplace.placers.exact.units import Units, units_of
from streamplace.placers.incumbent import Incumbent, handing_on
from streamplace.placers.meter import ENDLESS, Meter, Remaining
from streamplace.placers.registry import Budget, Found, Placer
from streamplace.placers.stopwatch import now

MOST_PLACEMENTS, PER_SECOND = 1_000_000, 200_000
"""Most legal placements that are all evaluated, and most per second of a budget."""
MOST_UNITS = 200
"""Most units of which few placements may be legal; to find out takes longer with more."""
HALF = 0.5
"""Share of a budget for trying all placements before any search."""
LISTED = 0.1
"""Share of a budget of seconds for finding out whether few placements are legal."""
PAUSE = 5e-4
"""Seconds between two readings of the clock."""
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
    if objective.ordered:
        return False
    seconds = None if budget.seconds is None else LISTED * budget.seconds
    return are_few(_units(problem, objective), int(most), seconds)


def _units(problem: Problem, objective: Objective) -> Units:
    """Units of a problem; no devices are equal where it counts which of them an operator is on."""
    units = units_of(problem)
    if objective.relocation is None:
        return units
    return units._replace(classes=np.arange(units.n_devices, dtype=np.int32))


def judge_all(units: Units, meter: Meter, judge: Callable[[Ints], object]) -> bool:
    """Judge all legal placements within the budget; return whether that was all of them.

    The first is judged in any case, and with a limit of time as many at once as take `PAUSE`.
    """
    listing = _core.Listing(units.compiled)
    together = BATCH if meter.seconds is None else 1
    while not listing.is_over:
        batch = listing.proceed(BATCH, STEPS, meter.remaining if meter.spent else ENDLESS)
        while len(batch):
            size = meter.chunk(min(len(batch), together))
            if not size:
                return False
            began = now()
            judge(batch[:size])
            batch = batch[size:]
            if meter.seconds is not None:
                together = max(1, min(2 * size, int(PAUSE / max(now() - began, 1e-9) * size)))
        if meter.seconds == 0 and not listing.is_over:
            return False
    return True


def legal_placements(units: Units) -> Iterator[Ints]:
    """Yield batches [B, U] of all legal placements, each once up to swaps of equal devices.

    A batch has fewer than `BATCH`, or none, at the end or where few placements are legal.
    """
    listing = _core.Listing(units.compiled)
    while not listing.is_over:
        yield listing.proceed(BATCH, STEPS, ENDLESS)


def are_few(units: Units, most: int, seconds: float | None = None) -> bool:
    """Whether at most so many placements, up to swaps of equal devices, are quickly listed."""
    if units.n_units > MOST_UNITS:
        return False
    return units.compiled.are_few(most, BATCH, STEPS, Remaining(seconds))
