"""Starts: the placements from which the throughput annealing may begin."""

from collections.abc import Sequence

import numpy as np

from streamplace.model.arrays import Ints
from streamplace.model.coarsening import Level
from streamplace.model.placement import Placement
from streamplace.model.placement_rules import PlacementRules
from streamplace.model.problem import Problem

RUNS = (1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 91, 128, 181, 256)
"""Numbers of devices of the first placements."""
MIN_UNITS_IN_RUNS = 64
"""Number of units above which runs are tried."""
MAX_REPAIRED_UNITS = 2000
"""Most units for which repairing a placement one by one is cheap."""


def first_place(problem: Problem, level: Level, start: Sequence[Placement]) -> Ints:
    """Device of every unit in the best of ``start`` and a few obvious placements."""
    rules, starts = problem.rules, places_of(problem, start)
    places = obvious_places(level) if rules is None else _legal_places(level, rules)
    return best_place(level, starts + places)


def places_of(problem: Problem, placements: Sequence[Placement]) -> list[Ints]:
    """Device of every unit in each of these placements."""
    return [placement.index[problem.first_operator] for placement in placements]


def best_place(level: Level, candidates: Sequence[Ints]) -> Ints:
    """Return the first candidate with the lowest peak."""
    places = np.array(candidates, np.int32)
    best: Ints = places[level.compiled.peaks(places).argmin()]
    return best


def obvious_places(level: Level) -> list[Ints]:
    """All units on the fastest device; on large levels also equal runs on 2, 3, … devices."""
    totals = np.maximum(level.load.sum(axis=0)[level.device_type], 1e-300)
    if level.n_units <= MIN_UNITS_IN_RUNS:
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
    if rules.n_units > MAX_REPAIRED_UNITS:
        return [rules.witness]
    first = rules.first_operator
    return [
        rules.witness,
        *(rules.repaired(place[rules.unit])[first] for place in obvious_places(level)),
    ]
