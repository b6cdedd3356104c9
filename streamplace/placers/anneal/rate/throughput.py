"""Maximising the throughput: choice of the search, its start and its length.

With several sources the search alternates between the peak and the exact, max–min fair throughput.
The peak determines the rate of the slowest source, but not the higher rates of the others. An exact
value takes passes over the graph, a peak only the neighbourhood of a move; so the search by peak
finds good placements, and the search by exact value continues from there.
"""

import operator
from collections.abc import Iterator, Sequence

import numpy as np
from streamsim import Instance, incremental, throughput
from streamsim.incremental import LoadState, value
from streamsim.incremental import move as move_operator
from streamsim.instance import writable
from streamsim.jit import borrowing_kernel, inlined_kernel
from streamsim.topology import group_by

from streamplace.model.arrays import TIE, Ints
from streamplace.model.level import Level, finest_level, least_peak, least_times
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.placers.anneal.rate import search
from streamplace.placers.anneal.rate.multilevel import cycles
from streamplace.placers.anneal.rate.search import ENOUGH, FLAT, proceed, scatter, value_of
from streamplace.placers.anneal.rate.walk import (
    BEST_PEAK,
    COOLING,
    ENERGY,
    LENGTH,
    ROUND,
    SLACK,
    STEP,
    TEMPERATURE,
    TIGHTEN,
    UnitWalk,
    accepted,
    apart,
    count_used,
    first_place,
    mix,
    new_walk,
    peak_of,
    placement_of,
    places_of,
    propose,
    take_room,
)
from streamplace.placers.incumbent import Incumbent, handing_on
from streamplace.placers.meter import Meter
from streamplace.placers.partition import unit_of
from streamplace.placers.registry import Found

LEAST, LEAST_OF_SEVERAL = 2 * search.FIRST_ROUND, search.FIRST_ROUND // 2
"""Proposals made even if the time is over, within a millisecond on small graphs. After the first
round alone, one small graph in twelve has not improved; with several sources every third proposal
takes passes over the graph."""
NARROW = 128
"""Number of units above which the search begins with a wide slack (see `multilevel`)."""
WIDE_SLACK, TIGHTEN_BY = 0.8, 0.7
MET = 1e-11
"""Share up to which a bound counts as met."""
FIRST_PART, FIRST_PART_OF_MANY = 16_000, 500_000
"""Proposals of the first of several searches with constant loads; each further search has twice as
many, so that a longer budget continues a shorter one."""
MOST_TIMES = 1e6
"""Largest factor of constant loads, for placements where these alone are too much."""
LEAST_TURN = 1000
"""Proposals of the first turn of the peak; every next turn is twice as long."""
EXACT_SHARE = 2
"""Ratio of the proposals by peak to those by exact throughput."""
FAIR_HOT, FAIR_COLD, FIRST_FAIR_ROUND = 0.05, 0.0005, 500
"""First and last temperature by exact throughput, and length of the first round."""


def maximise(problem: Problem, start: Sequence[Placement], seed: int, meter: Meter) -> Found:
    """Search until the budget ends or the bound is met."""
    level = finest_level(problem)
    place = first_place(problem, level, start)
    seed %= 2**63
    if problem.instance.n_groups > 1:
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
            lower = least(finest_level(problem, times), place, seed, part, bound * (1 + MET))
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
        meter.note(value_of(peak_of(level, place)))
        yield from cycles(level, place, seed, meter, enough)
        return
    walk = new_walk(level, place, seed)
    search.begin(level, walk, search.FIRST_ROUND)
    if level.n_units > NARROW:
        walk.numbers[SLACK], walk.numbers[TIGHTEN] = WIDE_SLACK, TIGHTEN_BY
    yield walk.best
    proceed(level, walk, search.ENDLESS, meter, enough)


@borrowing_kernel
def _judged(instance: Instance, state: LoadState) -> float:
    return -value(instance, state)


@borrowing_kernel
def _lead(instance: Instance, state: LoadState, member: Ints, first: Ints, u: int, to: int) -> None:
    for k in range(first[u], first[u + 1]):
        move_operator(instance, state, member[k], to)


@borrowing_kernel
def begin_fair(instance: Instance, level: Level, walk: UnitWalk, state: LoadState) -> None:
    """Evaluate the first placement."""
    count_used(level, walk)
    mix(walk, 0.3, 0.2, 0.5)
    walk.numbers[BEST_PEAK] = walk.numbers[ENERGY] = _judged(instance, state)
    walk.counts[LENGTH] = FIRST_FAIR_ROUND // 2
    walk.counts[STEP] = walk.counts[LENGTH]


@borrowing_kernel
def fair_steps(
    instance: Instance,
    level: Level,
    walk: UnitWalk,
    state: LoadState,
    member: Ints,
    first: Ints,
    steps: int,
) -> int:
    """Propose ``steps`` moves, or fewer if the throughput becomes 1; return their number.

    The operators of unit u are ``member[first[u]:first[u + 1]]``; the energy is the negative
    throughput.
    """
    for step in range(steps):
        if walk.numbers[BEST_PEAK] <= -1.0:
            return step
        if walk.counts[STEP] == walk.counts[LENGTH]:
            _next_round(instance, level, walk, state, member, first)
        walk.numbers[TEMPERATURE] *= walk.numbers[COOLING]
        walk.counts[STEP] += 1
        _try_one(instance, level, walk, state, member, first)
    return steps


@borrowing_kernel
def go_to(
    instance: Instance,
    level: Level,
    walk: UnitWalk,
    state: LoadState,
    member: Ints,
    first: Ints,
    place: Ints,
) -> None:
    """Move to a placement, and keep it if it is the best."""
    for u in range(len(place)):
        walk.place[u] = place[u]
        _lead(instance, state, member, first, u, place[u])
    count_used(level, walk)
    walk.numbers[ENERGY] = _judged(instance, state)
    _keep_if_best(walk)


@borrowing_kernel
def _next_round(
    instance: Instance, level: Level, walk: UnitWalk, state: LoadState, member: Ints, first: Ints
) -> None:
    """Start a round of twice the length, alternately at the best and at a random placement."""
    walk.counts[ROUND] += 1
    walk.counts[LENGTH] *= 2
    walk.counts[STEP] = 0
    for u in range(len(walk.place)):
        walk.place[u] = walk.best[u]
    count_used(level, walk)
    if walk.counts[ROUND] % 2 == 0:
        scatter(level, walk)
    go_to(instance, level, walk, state, member, first, walk.place)
    walk.numbers[TEMPERATURE] = FAIR_HOT
    walk.numbers[COOLING] = (FAIR_COLD / FAIR_HOT) ** (1.0 / walk.counts[LENGTH])


@inlined_kernel
def _try_one(
    instance: Instance, level: Level, walk: UnitWalk, state: LoadState, member: Ints, first: Ints
) -> None:
    n_moved, n_back, a, b = propose(level, walk)
    if n_moved == 0:
        return
    for i in range(n_moved + n_back):
        walk.place[walk.moved[i]] = b if i < n_moved else a
    legal = len(level.rival_start) == 0 or apart(level, walk, n_moved + n_back)
    if legal:
        _follow(instance, walk, state, member, first, n_moved + n_back)
        reached = _judged(instance, state)
        if accepted(walk.random, reached - walk.numbers[ENERGY], walk.numbers[TEMPERATURE]):
            walk.numbers[ENERGY] = reached
            take_room(level, walk, n_moved, n_back, a, b)
            _keep_if_best(walk)
            return
    for i in range(n_moved + n_back):
        walk.place[walk.moved[i]] = a if i < n_moved else b
    if legal:
        _follow(instance, walk, state, member, first, n_moved + n_back)


@borrowing_kernel
def _follow(
    instance: Instance, walk: UnitWalk, state: LoadState, member: Ints, first: Ints, n: int
) -> None:
    """Move the operators of the units under trial to the devices of these units."""
    for i in range(n):
        u = walk.moved[i]
        _lead(instance, state, member, first, u, walk.place[u])


@inlined_kernel
def _keep_if_best(walk: UnitWalk) -> None:
    if walk.numbers[ENERGY] < walk.numbers[BEST_PEAK] - TIE:
        walk.numbers[BEST_PEAK] = walk.numbers[ENERGY]
        for u in range(len(walk.place)):
            walk.best[u] = walk.place[u]


def maximise_fair(
    problem: Problem, level: Level, place: Ints, start: Sequence[Placement], seed: int, meter: Meter
) -> Found:
    """Search until the budget ends or every source runs at its full rate."""
    best = UnitIncumbent(problem, meter)
    for placement in start:
        best.judge(placement.index[best.first_operator])
    best.judge(place)
    with handing_on(best.found):
        if level.n_units > FLAT:
            for improved in cycles(level, place, seed, meter, ENOUGH):
                best.judge(improved)
        else:
            _alternate(problem, level, place, seed, meter, best)
    return best.found()


class UnitIncumbent(Incumbent[Ints]):
    """The best placement of the units so far, by exact throughput."""

    def __init__(self, problem: Problem, meter: Meter) -> None:
        super().__init__(operator.gt, meter)
        self.unit = unit_of(problem)
        self.first_operator = np.unique(self.unit, return_index=True)[1]
        self._problem, self._instance = problem, problem.instance

    def found(self) -> Found:
        """Answer of a search that ends now."""
        bound = 1.0 if self.value >= 1.0 else None
        return self.answer(placement_of(self._problem, self.solution), bound)

    def judge(self, place: Ints) -> None:
        """Keep a placement if it is better."""
        value = throughput(self._instance, place[self.unit][None])[0]
        self.offer(np.array(place, np.int32), value)


def _alternate(
    problem: Problem, level: Level, place: Ints, seed: int, meter: Meter, best: UnitIncumbent
) -> None:
    """Take turns until the budget ends or neither search proposes anything.

    Sums in another order may round to the full rate in a search, and to just less in its judge.
    """
    instance = problem.instance
    by_peak, by_value = new_walk(level, place, seed), new_walk(level, best.solution, seed)
    state = incremental.start(instance, best.solution[best.unit])
    first, member = group_by(writable(best.unit), level.n_units)
    search.begin(level, by_peak, search.FIRST_ROUND)
    begin_fair(instance, level, by_value, state)
    turn, before = LEAST_TURN, -1
    while best.value < 1.0 and not meter.over and meter.spent > before:
        left, before = turn, meter.spent
        while by_peak.numbers[BEST_PEAK] > ENOUGH and (chunk := meter.chunk(min(left, 4096))):
            meter.spend(search.search(level, by_peak, chunk, ENOUGH))
            left -= chunk
        best.judge(by_peak.best)
        go_to(instance, level, by_value, state, member, first, best.solution)
        left = turn // EXACT_SHARE
        while best.value < 1.0 and (chunk := meter.chunk(min(left, 256))):
            meter.spend(fair_steps(instance, level, by_value, state, member, first, chunk))
            best.judge(by_value.best)
            left -= chunk
        turn *= 2
