"""Enumeration: all legal placements of the units, with only the first of equal empty devices.

If few placements are legal, it proves the best value of any objective that does not depend on an
order of the operators, under any conditions.
"""

from collections.abc import Callable

import numpy as np
from streamsim import _core

from streamplace.model.arrays import Ints
from streamplace.model.problem import Problem
from streamplace.objectives.conditions import BEYOND
from streamplace.objectives.registry import Objective
from streamplace.placers.exact.units import Units, units_of
from streamplace.placers.incumbent import Incumbent, interruptible
from streamplace.placers.meter import ENDLESS, Meter, Remaining
from streamplace.placers.registry import Budget, Found, Placer
from streamplace.placers.stopwatch import now

MAX_PLACEMENTS, PER_SECOND = 1_000_000, 200_000
"""Most legal placements that are all evaluated, and most per second of a budget."""
MAX_UNITS = 200
"""Units of a problem whose legal placements are counted; with more, that takes too long."""
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

    with interruptible(lambda: None if best.empty else found()):
        whole = judge_all(units, meter, judge)
    if best.empty:  # an error if nothing is legal
        first = problem.repaired(np.zeros(problem.n_operators, np.int32))
        return Found(problem.placement(first))
    return found(best.value if whole and abs(best.value) < BEYOND else None)


BEST_OF_ALL = Placer("enumeration", "The best of all legal placements.", best_of_all)
"""Not registered: `auto` calls it where `is_enumerable`."""


def is_enumerable(problem: Problem, objective: Objective, budget: Budget) -> bool:
    """Whether half of a budget may suffice for all placements, which proves the best value."""
    most = float(MAX_PLACEMENTS)
    if budget.evaluations is not None:
        most = min(most, HALF * budget.evaluations)
    if budget.seconds is not None:
        most = min(most, HALF * budget.seconds * PER_SECOND)
    if objective.ordered:
        return False
    seconds = None if budget.seconds is None else LISTED * budget.seconds
    return are_few(_units(problem, objective), int(most), seconds)


def _units(problem: Problem, objective: Objective) -> Units:
    """Units of a problem; beside a present placement, no devices are interchangeable."""
    units = units_of(problem)
    if objective.relocation is None:
        return units
    return units._replace(classes=np.arange(units.n_devices, dtype=np.int32))


def judge_all(units: Units, meter: Meter, judge: Callable[[Ints], object]) -> bool:
    """Judge all legal placements within the budget; return whether all were judged.

    The first is judged in any case. Under a limit of time, a batch takes about `PAUSE`.
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


def are_few(units: Units, most: int, seconds: float | None = None) -> bool:
    """Whether at most so many placements, up to swaps of equal devices, are quickly listed."""
    if units.n_units > MAX_UNITS:
        return False
    return units.compiled.are_few(most, BATCH, STEPS, Remaining(seconds))
