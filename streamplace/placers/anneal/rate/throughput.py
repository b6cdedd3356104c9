"""Maximising the throughput: choice of the search, its start and its length."""

from collections.abc import Iterator, Sequence

from streamsim import throughput

from streamplace.model.arrays import Ints
from streamplace.model.level import Level, finest_level, least_peak, least_times
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.placers.anneal.rate import search
from streamplace.placers.anneal.rate.first_places import first_place, placement_of, places_of
from streamplace.placers.anneal.rate.search import FLAT, proceed, value_of
from streamplace.placers.anneal.rate.walk import SLACK, TIGHTEN, new_walk, peak_of
from streamplace.placers.incumbent import handing_on
from streamplace.placers.meter import Meter
from streamplace.placers.registry import Found

LEAST, LEAST_OF_SEVERAL = 2 * search.FIRST_ROUND, search.FIRST_ROUND // 2
"""Proposals made even if the time is over, within a millisecond on small graphs. After the first
round alone, one small graph in twelve has not improved; with several sources every third proposal
takes passes over the graph."""
NARROW = 128
"""Number of units above which the search begins with a wide slack (see `multilevel`)."""
WIDE_SLACK, TIGHTEN_BY = 0.8, 0.7
ROUNDING = 1e-11
FIRST_PART, FIRST_PART_OF_MANY = 16_000, 500_000
"""Proposals of the first of several searches with constant loads; each further search has twice as
many, so that a longer budget continues a shorter one."""
MOST_TIMES = 1e6
"""Largest factor of constant loads, for placements where these alone are too much."""


def maximise(problem: Problem, start: Sequence[Placement], seed: int, meter: Meter) -> Found:
    """Search until the budget ends or the bound is met."""
    level = finest_level(problem)
    place = first_place(problem, level, start)
    seed %= 2**63
    if problem.instance.n_groups > 1:
        from streamplace.placers.anneal.rate.sources import maximise_fair

        return maximise_fair(problem, level, place, start, seed, meter)
    if len(problem.instance.constant):
        # The least peak at the full rate is not the highest rate beside constant loads.
        candidates = [place, *places_of(problem, start)]
        fastest = max(candidates, key=lambda one: _value(problem, placement_of(problem, one)))
        return _beside_constants(problem, fastest, seed, meter)
    bound = max(1.0, least_peak(problem, level))

    def best() -> Found:
        placement = placement_of(problem, place)
        value, proven = _value(problem, placement), 1 / bound
        proven = value if proven <= value * (1 + ROUNDING) else proven
        return Found(placement, proven, tuple(meter.trace))

    with handing_on(best):
        for lower in _falling(level, place, seed, meter, bound * (1 + ROUNDING)):
            place = lower
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
        proven = value if value * bound >= 1 - ROUNDING else 1 / bound
        return Found(placement, proven, tuple(meter.trace))

    with handing_on(best):
        while True:
            part = Meter(meter.up_to(size), min(LEAST, size) if meter.spent == 0 else 1)
            lower = least(finest_level(problem, times), place, seed, part, bound * (1 + ROUNDING))
            meter.spend(part.spent)
            tried = placement_of(problem, lower)
            if (reached := _value(problem, tried)) > value:
                place, placement, value = lower, tried, reached
            meter.note(value)
            if value * bound >= 1 - ROUNDING or meter.over or part.spent == 0:
                break
            times = max(bound, min(1 / value, MOST_TIMES) if value else MOST_TIMES)
            size, seed = 2 * size, seed + 1
    return best()


def _value(problem: Problem, placement: Placement) -> float:
    return float(throughput(problem.instance, placement.index[None])[0])


def least_work(problem: Problem) -> int:
    """Proposals that the search makes even if the time is over."""
    return LEAST if len(problem.instance.sources) == 1 else LEAST_OF_SEVERAL


def least(level: Level, place: Ints, seed: int, meter: Meter, enough: float) -> Ints:
    """Device of every unit with the least peak found."""
    for best in _falling(level, place, seed, meter, enough):
        place = best
    return place


def _falling(level: Level, place: Ints, seed: int, meter: Meter, enough: float) -> Iterator[Ints]:
    """Yield placements of the units, of falling peak; a search may improve the latest in place."""
    if level.n_units > FLAT:
        from streamplace.placers.anneal.rate.multilevel import cycles

        meter.note(value_of(peak_of(level, place)))
        yield from cycles(level, place, seed, meter, enough)
        return
    walk = new_walk(level, place, seed)
    search.begin(level, walk, search.FIRST_ROUND)
    if level.n_units > NARROW:
        walk.numbers[SLACK], walk.numbers[TIGHTEN] = WIDE_SLACK, TIGHTEN_BY
    yield walk.best
    proceed(level, walk, search.ENDLESS, meter, enough)
