"""Running a walk: chunk by chunk, until the budget ends or the peak is low enough."""

from streamplace.model.arrays import Ints
from streamplace.model.level import Level
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.placers.anneal.rate import search
from streamplace.placers.anneal.rate.walk import BEST_PEAK, UnitWalk
from streamplace.placers.meter import Meter

CHUNK = 2048
"""Proposals between two readings of the clock."""
FLAT = 600
"""Most units for a search without levels."""
ENOUGH = 1 + 1e-12
"""Largest peak at which every source runs at its full rate, with rounding."""


def proceed(level: Level, walk: UnitWalk, steps: int, meter: Meter, enough: float) -> None:
    """Continue the search for ``steps`` steps, or until the budget ends or the peak is enough."""
    meter.note(value_of(walk.numbers[BEST_PEAK]))
    while steps > 0 and walk.numbers[BEST_PEAK] > enough:
        chunk = min(steps, meter.chunk(CHUNK))
        if chunk == 0:
            return
        meter.spend(search.search(level, walk, chunk, enough))
        meter.note(value_of(walk.numbers[BEST_PEAK]))
        steps -= chunk


def value_of(peak: float) -> float:
    """Throughput of a single source under a peak."""
    return float(1 / max(peak, 1.0))


def placement_of(problem: Problem, place: Ints) -> Placement:
    """Placement of the operators from the devices of their units."""
    return problem.placement(place if problem.rules is None else place[problem.rules.unit])
