"""Walk: the core's annealing of units."""

from streamsim import _core

from streamplace.model.arrays import TIE, Ints
from streamplace.model.coarsening import Level
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.placers.meter import Meter

ENOUGH = 1 + TIE
"""Largest peak at which every source runs at its full rate, with rounding."""


def peak_of(level: Level, place: Ints) -> float:
    """Load of the fullest resource or single core under a placement of the units."""
    return float(level.compiled.peaks(place[None])[0])


def placement_of(problem: Problem, place: Ints) -> Placement:
    """Placement of the operators from the devices of their units."""
    return problem.placement(place[problem.unit])


def proceed(walk: _core.Walk, proposals: int, meter: Meter, enough: float) -> None:
    """Continue a search until the budget or the proposals end, or the peak is enough."""
    meter.note(value_of(walk.best_peak))
    try:
        walk.run(proposals, enough, meter.remaining)
    finally:
        meter.follow((seconds, value_of(peak), n) for seconds, peak, n in walk.take_notes())


def value_of(peak: float) -> float:
    """Throughput of a single source under a peak."""
    return float(1 / max(peak, 1.0))
