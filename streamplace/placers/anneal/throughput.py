"""Maximising the throughput: choice of the search, its start and its length, and its levels.

Large graphs are searched in cycles. A cycle coarsens the graph to a few hundred groups of units
without merging units that the best placement so far separates, so that this placement exists at
every level: units join the neighbour with which they exchange the most bytes. The search starts
from it on the coarsest level and passes its best placement down. Cycles with different groups
follow one another until the budget ends.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from streamsim import _core, throughput_of

from streamplace.model.arrays import Ints
from streamplace.model.coarsening import Level, contracted, finest_level
from streamplace.model.least_peak import least_peak, least_times
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.placers.anneal.starts import (
    best_place,
    first_place,
    obvious_places,
    places_of,
)
from streamplace.placers.anneal.walk import peak_of, placement_of, proceed, value_of
from streamplace.placers.incumbent import interruptible
from streamplace.placers.meter import Meter
from streamplace.placers.registry import Found

FIRST_ROUND = 4000
"""Proposals of the first round."""
ENDLESS = 2**62
FLAT = 600
"""Most units for a search without levels."""
NARROW = 128
"""Number of units above which the search begins with a wide slack (see `ATTEMPTS`)."""
USUAL_SLACK, WIDE_SLACK, TIGHTEN_BY = 0.05, 0.8, 0.7
MET = 1e-11
"""Share up to which a bound counts as met."""
FIRST_PART, FIRST_PART_OF_MANY = 16_000, 500_000
"""Proposals of the first of several searches with constant loads; each further search has twice as
many, so that a longer budget continues a shorter one."""
MAX_TIMES = 1e6
"""Largest factor of constant loads, for placements where these alone are too much."""
COARSEST_PER_DEVICE = 40
MAX_UNITS_KEPT = 0.95
"""Share of units above which a further level is not worth it, so that coarsening ends."""
COARSE_STEPS = 100_000
USUAL_MIX, COARSE_MIX = (0.3, 0.2, 0.5), (0.05, 0.2, 0.7)
"""Shares of neighbourhood moves, of swaps, and of moves to a neighbour."""
ATTEMPTS = ((0.5, 1.0), (0.8, 0.7), (0.65, 1.0))
"""Slack of every search of the coarsest level, and its factor from round to round. A wide slack
includes resources that are far from full in the energy, which large graphs need: nothing else
guides the distribution of traffic. The best width differs between graphs."""
EFFORT = 30
"""Proposals per unit on every finer level."""
FINE_MIX = (0.02, 0.05, 0.9)
GENTLE = 0.5
"""Factor of the temperature on finer levels, where the coarse structure is settled."""


def maximise(problem: Problem, start: Sequence[Placement], seed: int, meter: Meter) -> Found:
    """Search until the budget ends or the bound is met."""
    level = finest_level(problem)
    place = first_place(problem, level, start)
    seed %= 2**63
    if len(problem.instance.constant):
        # The least peak at the full rate is not the highest rate beside constant loads.
        candidates = [place, *places_of(problem, start)]
        fastest = max(candidates, key=lambda units: _value(problem, placement_of(problem, units)))
        return _beside_constants(problem, fastest, seed, meter)
    bound = max(1.0, least_peak(problem, level))
    descent = Descent(level, place, seed, meter, bound * (1 + MET))

    def best() -> Found:
        placement = placement_of(problem, descent.place)
        value, proven = _value(problem, placement), 1 / bound
        proven = value if proven <= value * (1 + MET) else proven
        return Found(placement, proven, tuple(meter.trace))

    with interruptible(best):
        descent.run()
    return best()


def _beside_constants(problem: Problem, place: Ints, seed: int, meter: Meter) -> Found:
    """Search in the presence of constant loads.

    For a fixed rate, constant loads are ordinary loads (`finest_level`), so every round searches
    for the least peak at the rate of the best placement so far (Dinkelbach 1967).
    """
    bound = least_times(problem)
    placement = placement_of(problem, place)
    value = _value(problem, placement)
    meter.note(value)
    times, size = bound, FIRST_PART if len(place) <= FLAT else FIRST_PART_OF_MANY

    def best() -> Found:
        proven = value if value * bound >= 1 - MET else 1 / bound
        return Found(placement, proven, tuple(meter.trace))

    with interruptible(best):
        while True:
            part = Meter(meter.up_to(size))
            level = finest_level(problem, times)
            lower = with_lower_peak(level, place, seed, part, bound * (1 + MET))
            meter.spend(part.spent)
            tried = placement_of(problem, lower)
            if (reached := _value(problem, tried)) > value:
                place, placement, value = lower, tried, reached
            meter.note(value)
            if value * bound >= 1 - MET or meter.over or part.spent == 0:
                break
            times = max(bound, min(1 / value, MAX_TIMES) if value else MAX_TIMES)
            size, seed = 2 * size, seed + 1
    return best()


def _value(problem: Problem, placement: Placement) -> float:
    return throughput_of(problem.instance, placement.index)


def with_lower_peak(level: Level, place: Ints, seed: int, meter: Meter, enough: float) -> Ints:
    """Device of every unit with the least peak found."""
    descent = Descent(level, place, seed, meter, enough)
    descent.run()
    return descent.place


class Descent:
    """A search for placements of the units of falling peak; ``place`` is the best so far."""

    def __init__(self, level: Level, place: Ints, seed: int, meter: Meter, enough: float) -> None:
        self._level, self._seed, self._meter, self._enough = level, seed, meter, enough
        self.place = place

    def run(self) -> None:
        """Search until the budget ends or the peak is enough."""
        level, meter = self._level, self._meter
        if level.n_units > FLAT:
            meter.note(value_of(peak_of(level, self.place)))
            for place in cycles(level, self.place, self._seed, meter, self._enough):
                self.place = place
            return
        wide = level.n_units > NARROW
        walk = _core.Walk(
            level.compiled,
            self.place,
            self._seed % 2**64,
            max(2, meter.at_most(FIRST_ROUND)),  # it cools within a limit of evaluations
            mix=USUAL_MIX,
            slack=WIDE_SLACK if wide else USUAL_SLACK,
            tighten=TIGHTEN_BY if wide else 1.0,
        )
        try:
            proceed(walk, ENDLESS, meter, self._enough)
        finally:
            self.place = walk.best


def cycles(level: Level, place: Ints, seed: int, meter: Meter, enough: float) -> Iterator[Ints]:
    """Yield the device of every unit after each cycle, with falling peak, until the budget ends.

    Without rules, the first cycle may merge any units; its result competes with the placement that
    the search starts from.
    """
    rng = np.random.default_rng(seed)
    if not level.ruled and not meter.late and peak_of(level, place) > enough:
        anew = _cycle(level, np.zeros(len(place), np.int32), rng, meter, enough)
        place = best_place(level, [place, anew])
        yield place
    while not meter.late and peak_of(level, place) > enough:
        place = _cycle(level, place, rng, meter, enough)
        yield place


def _cycle(
    level: Level, place: Ints, rng: np.random.Generator, meter: Meter, enough: float
) -> Ints:
    levels, groups, place = _coarsened(level, place, rng, meter)
    if groups:
        place = _search_coarse(levels[-1], place, rng, meter, enough)[groups[-1]]
    for i in range(max(len(groups) - 1, 0), -1, -1):
        place = _search_fine(levels[i], place, rng, meter, enough)
        if i > 0:
            place = place[groups[i - 1]]
    return place


def _search_coarse(
    level: Level, place: Ints, rng: np.random.Generator, meter: Meter, enough: float
) -> Ints:
    """Search several times from scratch; return the best placement."""
    if meter.late:
        return place
    if not level.ruled:
        place = best_place(level, [place, *obvious_places(level)])
    candidates = [place]
    for slack, tighten in ATTEMPTS:
        seed = int(rng.integers(2**62))
        mix, first = COARSE_MIX, COARSE_STEPS // 16
        walk = _core.Walk(level.compiled, place, seed, first, mix=mix, slack=slack, tighten=tighten)
        proceed(walk, COARSE_STEPS, meter, enough)
        candidates.append(walk.best)
        if walk.best_peak <= enough or meter.late:
            break
    return best_place(level, candidates)


def _search_fine(
    level: Level, place: Ints, rng: np.random.Generator, meter: Meter, enough: float
) -> Ints:
    """Improve the placement of a coarser level, unit by unit."""
    seed, steps = int(rng.integers(2**62)), EFFORT * len(place)
    if meter.late:
        return place
    walk = _core.Walk(
        level.compiled,
        place,
        seed,
        steps,
        mix=FINE_MIX,
        slack=USUAL_SLACK,
        heat=GENTLE,
        sweep=True,
    )
    proceed(walk, steps, meter, enough)
    return walk.best


def _coarsened(
    level: Level, place: Ints, rng: np.random.Generator, meter: Meter
) -> tuple[list[Level], list[Ints], Ints]:
    """Levels from fine to coarse, groups that map each to the next, and the coarsest placement."""
    levels, groups = [level], list[Ints]()
    goal = COARSEST_PER_DEVICE * len(level.device_type)
    while (n := len(place)) > goal and not meter.late:
        fine, order = levels[-1], rng.permutation(n)
        group, n_groups = fine.compiled.heavy_groups(place, order, 4.0 / goal, meter.remaining)
        if n_groups > MAX_UNITS_KEPT * n:
            break
        levels.append(contracted(fine, group, n_groups))
        groups.append(group)
        at = np.empty(n_groups, np.int32)
        at[group] = place
        place = at
    return levels, groups, place
