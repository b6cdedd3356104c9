"""Maximising the throughput: choice of the search, its start and its length, and its levels.

Large graphs are searched in cycles. A cycle coarsens the graph to a few hundred groups of units
without merging units that the best placement so far separates, so that this placement exists at
every level: units join the neighbour with which they exchange the most bytes. The search starts
from it on the coarsest level and passes its best placement down. Cycles with different groups
follow one another until the budget ends.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from streamsim import throughput_of
from streamsim.jit import kernel

from streamplace.model.arrays import Floats, Ints, Longs
from streamplace.model.coarsening import Level, contracted, finest_level
from streamplace.model.least_peak import least_peak, least_times
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.placers.anneal.walk import (
    BEST_PEAK,
    ENDLESS,
    FIRST_ROUND,
    FLAT,
    HEAT,
    SWEEP,
    TIGHTEN,
    WIDTH,
    begin_search,
    best_place,
    first_place,
    mix,
    new_walk,
    obvious_places,
    peak_of,
    placement_of,
    places_of,
    proceed,
    value_of,
)
from streamplace.placers.incumbent import handing_on
from streamplace.placers.meter import Meter
from streamplace.placers.registry import Found

LEAST = 2 * FIRST_ROUND
"""Proposals made even if the time is over, within a millisecond on small graphs. After the first
round alone, one small graph in twelve has not improved."""
NARROW = 128
"""Number of units above which the search begins with a wide slack (see `ATTEMPTS`)."""
WIDE_SLACK, TIGHTEN_BY = 0.8, 0.7
MET = 1e-11
"""Share up to which a bound counts as met."""
FIRST_PART, FIRST_PART_OF_MANY = 16_000, 500_000
"""Proposals of the first of several searches with constant loads; each further search has twice as
many, so that a longer budget continues a shorter one."""
MOST_TIMES = 1e6
"""Largest factor of constant loads, for placements where these alone are too much."""
COARSEST_PER_DEVICE = 40
SHRINK = 2.5
"""Largest ratio of the units of a level to those of the next coarser one."""
LEAST_SHRINK = 0.95
"""Share of units above which a further level is not worth it, so that coarsening ends."""
COARSE_STEPS = 100_000
COARSE_MIX = (0.05, 0.2, 0.7)
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

    def best() -> Found:
        placement = placement_of(problem, place)
        value, proven = _value(problem, placement), 1 / bound
        proven = value if proven <= value * (1 + MET) else proven
        return Found(placement, proven, tuple(meter.trace))

    with handing_on(best):
        for lower in _falling(level, place, seed, meter, bound * (1 + MET)):
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
        proven = value if value * bound >= 1 - MET else 1 / bound
        return Found(placement, proven, tuple(meter.trace))

    with handing_on(best):
        while True:
            part = Meter(meter.up_to(size), min(LEAST, size) if meter.spent == 0 else 1)
            level = finest_level(problem, times)
            lower = with_lower_peak(level, place, seed, part, bound * (1 + MET))
            meter.spend(part.spent)
            tried = placement_of(problem, lower)
            if (reached := _value(problem, tried)) > value:
                place, placement, value = lower, tried, reached
            meter.note(value)
            if value * bound >= 1 - MET or meter.over or part.spent == 0:
                break
            times = max(bound, min(1 / value, MOST_TIMES) if value else MOST_TIMES)
            size, seed = 2 * size, seed + 1
    return best()


def _value(problem: Problem, placement: Placement) -> float:
    return throughput_of(problem.instance, placement.index)


def with_lower_peak(level: Level, place: Ints, seed: int, meter: Meter, enough: float) -> Ints:
    """Device of every unit with the least peak found."""
    for best in _falling(level, place, seed, meter, enough):
        place = best
    return place


def _falling(level: Level, place: Ints, seed: int, meter: Meter, enough: float) -> Iterator[Ints]:
    """Yield placements of the units, of falling peak; a search may improve the latest in place."""
    if level.n_units > FLAT:
        meter.note(value_of(peak_of(level, place)))
        yield from cycles(level, place, seed, meter, enough)
        return
    walk = new_walk(level, place, seed)
    begin_search(level, walk, first_round(meter))
    if level.n_units > NARROW:
        walk.numbers[WIDTH], walk.numbers[TIGHTEN] = WIDE_SLACK, TIGHTEN_BY
    yield walk.best
    proceed(level, walk, ENDLESS, meter, enough)


def first_round(meter: Meter) -> int:
    """Proposals of the first round, which cools within a limit of evaluations."""
    return max(2, meter.at_most(FIRST_ROUND))


def cycles(level: Level, place: Ints, seed: int, meter: Meter, enough: float) -> Iterator[Ints]:
    """Yield the device of every unit after each cycle, with falling peak, until the budget ends.

    Without rules, the first cycle may merge any units; its result competes with the placement that
    the search starts from.
    """
    rng = np.random.default_rng(seed)
    if not level.ruled and not meter.late and peak_of(level, place) > enough:
        anew = _cycle(level, np.zeros(level.n_units, np.int32), rng, meter, enough)
        place = best_place(level, [place, anew])
        yield place
    while not meter.over and peak_of(level, place) > enough:
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
    if meter.over:
        return place
    if not level.ruled:
        place = best_place(level, [place, *obvious_places(level)])
    candidates = [place]
    for slack, tighten in ATTEMPTS:
        walk = new_walk(level, place, int(rng.integers(2**62)))
        begin_search(level, walk, COARSE_STEPS // 16)
        walk.numbers[WIDTH], walk.numbers[TIGHTEN] = slack, tighten
        mix(walk, *COARSE_MIX)
        proceed(level, walk, COARSE_STEPS, meter, enough)
        candidates.append(walk.best)
        if walk.numbers[BEST_PEAK] <= enough or meter.over:
            break
    return best_place(level, candidates)


def _search_fine(
    level: Level, place: Ints, rng: np.random.Generator, meter: Meter, enough: float
) -> Ints:
    """Improve the placement of a coarser level, unit by unit."""
    seed, steps = int(rng.integers(2**62)), EFFORT * level.n_units
    if meter.over:
        return place
    walk = new_walk(level, place, seed)
    begin_search(level, walk, steps)
    walk.numbers[HEAT] *= GENTLE
    walk.counts[SWEEP] = 1
    mix(walk, *FINE_MIX)
    proceed(level, walk, steps, meter, enough)
    return walk.best


def _coarsened(
    level: Level, place: Ints, rng: np.random.Generator, meter: Meter
) -> tuple[list[Level], list[Ints], Ints]:
    """Levels from fine to coarse, groups that map each to the next, and the coarsest placement."""
    levels, groups = [level], list[Ints]()
    goal = COARSEST_PER_DEVICE * len(level.device_type)
    while (n := levels[-1].n_units) > goal and not meter.late:
        group, n_groups = _heavy_groups(levels[-1], place, rng.permutation(n), 4.0 / goal)
        if n_groups > LEAST_SHRINK * n:
            break
        levels.append(contracted(levels[-1], group, n_groups))
        groups.append(group)
        at = np.empty(n_groups, np.int32)
        at[group] = place
        place = at
    return levels, groups, place


@kernel
def _heavy_groups(level: Level, place: Ints, order: Longs, most: float) -> tuple[Ints, int]:
    """Group of every unit and the number of groups, which are numbered by first unit.

    In the given order, every single unit joins the neighbouring group with which it has the most
    traffic, among those on the same device, under the same rules, and within the weight limit: a
    group weighs at most ``most``, where the entire graph weighs 2 (CPU load and number of units
    count equally). Units with rivals stay single.
    """
    n = len(level.load)
    leader = np.arange(n).astype(np.int32)
    weight, size = _weights(level), np.ones(n, np.int32)
    towards, n_groups = np.zeros(n), n
    for u in order:
        if n_groups * SHRINK <= n:
            break
        if size[leader[u]] > 1 or _has_rivals(level, u):
            continue
        best = _heaviest(level, place, leader, weight, towards, u, most)
        if best >= 0:
            leader[u] = best
            weight[best] += weight[u]
            size[best] += 1
            n_groups -= 1
    return _numbered(leader)


@kernel
def _heaviest(
    level: Level, place: Ints, leader: Ints, weight: Floats, towards: Floats, u: int, most: float
) -> int:
    """Leader of the group that unit u may join and has the most traffic with, or -1.

    ``towards`` is all 0 before and after.
    """
    best, heaviest = -1, 0.0
    for e in range(level.start[u], level.start[u + 1]):
        if not _has_rivals(level, level.peer[e]):
            towards[leader[level.peer[e]]] += level.sent[e] + level.taken[e]
    for e in range(level.start[u], level.start[u + 1]):
        g = leader[level.peer[e]]
        fits = weight[g] + weight[u] <= most
        if (
            fits
            and towards[g] > heaviest
            and place[g] == place[u]
            and level.kind[g] == level.kind[u]
        ):
            best, heaviest = g, towards[g]
    for e in range(level.start[u], level.start[u + 1]):
        towards[leader[level.peer[e]]] = 0.0
    return best


@kernel
def _has_rivals(level: Level, u: int) -> bool:
    return len(level.rival_start) > 0 and level.rival_start[u] < level.rival_start[u + 1]


@kernel
def _weights(level: Level) -> Floats:
    """Share of every unit in the CPU load plus its share in the number of units."""
    n, types = level.load.shape
    weight, whole = np.zeros(n), 0.0
    for u in range(n):
        for c in range(types):
            weight[u] += level.load[u, c]
        whole += weight[u]
    for u in range(n):
        weight[u] = (weight[u] / whole if whole > 0 else 0.0) + 1.0 / n
    return weight


@kernel
def _numbered(leader: Ints) -> tuple[Ints, int]:
    """Number groups by first appearance; a leader leads itself."""
    n = len(leader)
    number, group, n_groups = np.full(n, -1, np.int32), np.empty(n, np.int32), 0
    for u in range(n):
        g = leader[u]
        if number[g] < 0:
            number[g] = n_groups
            n_groups += 1
        group[u] = number[g]
    return group, n_groups
