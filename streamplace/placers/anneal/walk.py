"""Walk: the core's annealing of units, and the placements it starts from."""

from collections.abc import Sequence

import numpy as np
from streamsim import _core

from streamplace.model.arrays import TIE, Ints
from streamplace.model.coarsening import Level
from streamplace.model.placement import Placement
from streamplace.model.placement_rules import PlacementRules
from streamplace.model.problem import Problem
from streamplace.placers.meter import Meter

RUNS = (1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 91, 128, 181, 256)
"""Numbers of devices of the first placements."""
FEWEST_IN_RUNS = 64
FEW_UNITS = 2000
"""Most units for which repairing a placement one by one is cheap."""
ENOUGH = 1 + TIE
"""Largest peak at which every source runs at its full rate, with rounding."""


def scrambled(seed: int) -> int:
    """Initial generator state for a seed (splitmix64), never 0."""
    x = (seed + 0x9E3779B97F4A7C15) % 2**64
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    return (x ^ (x >> 31)) | 1


def first_place(problem: Problem, level: Level, start: Sequence[Placement]) -> Ints:
    """Device of every unit in the best of ``start`` and a few obvious placements."""
    rules, starts = problem.rules, places_of(problem, start)
    places = obvious_places(level) if rules is None else _legal_places(level, rules)
    return best_place(level, starts + places)


def places_of(problem: Problem, placements: Sequence[Placement]) -> list[Ints]:
    """Device of every unit in each of these placements."""
    return [placement.index[problem.first_operator] for placement in placements]


def peak_of(level: Level, place: Ints) -> float:
    """Load of the fullest resource or single core under a placement of the units."""
    return float(level.compiled.peaks(place[None])[0])


def best_place(level: Level, candidates: Sequence[Ints]) -> Ints:
    """Return the first candidate with the lowest peak."""
    places = np.array(candidates, np.int32)
    best: Ints = places[level.compiled.peaks(places).argmin()]
    return best


def obvious_places(level: Level) -> list[Ints]:
    """All units on the fastest device; on large levels also equal runs on 2, 3, … devices."""
    totals = np.maximum(level.load.sum(axis=0)[level.device_type], 1e-300)
    if level.n_units <= FEWEST_IN_RUNS:
        return [np.full(level.n_units, np.argmin(totals), np.int32)]
    devices = np.argsort(totals, kind="stable").astype(np.int32)
    weight = level.load.mean(axis=1) + 1e-300
    middle = (np.cumsum(weight) - weight / 2) / weight.sum()
    places = []
    for k in (*(n for n in RUNS if n < len(devices)), len(devices)):
        ends = np.cumsum(1 / totals[devices[:k]])
        run = np.minimum(np.searchsorted(ends / ends[-1], middle), k - 1)
        places.append(devices[run])
    return places


def _legal_places(level: Level, rules: PlacementRules) -> list[Ints]:
    """Return the rules' witness and, if that is cheap, repaired versions of obvious placements."""
    if rules.n_units > FEW_UNITS:
        return [rules.witness]
    first = rules.first_operator
    return [
        rules.witness,
        *(rules.repaired(place[rules.unit])[first] for place in obvious_places(level)),
    ]


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
