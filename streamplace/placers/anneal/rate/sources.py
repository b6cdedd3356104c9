"""Several sources: the search alternates between the peak and the exact, max–min fair throughput.

The peak determines the rate of the slowest source, but not the higher rates of the others. An exact
value takes passes over the graph, a peak only the neighbourhood of a move; so the search by peak
finds good placements, and the search by exact value continues from there.
"""

import operator
from collections.abc import Sequence

import numpy as np
from streamsim import Instance, incremental, throughput
from streamsim.incremental import LoadState, value
from streamsim.incremental import move as move_operator
from streamsim.instance import writable
from streamsim.jit import borrowing_kernel, inlined_kernel
from streamsim.topology import group_by

from streamplace.model.arrays import Ints
from streamplace.model.level import Level
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.placers.anneal.rate import search
from streamplace.placers.anneal.rate.first_places import placement_of
from streamplace.placers.anneal.rate.multilevel import cycles
from streamplace.placers.anneal.rate.proposals import accepted, apart, mix, propose
from streamplace.placers.anneal.rate.search import ENOUGH, FLAT, scatter
from streamplace.placers.anneal.rate.walk import (
    BEST_PEAK,
    COOLING,
    ENERGY,
    LENGTH,
    ROUND,
    STEP,
    TEMPERATURE,
    UnitWalk,
    count_used,
    new_walk,
    take_room,
)
from streamplace.placers.incumbent import Incumbent, handing_on
from streamplace.placers.meter import Meter
from streamplace.placers.registry import Found

LEAST_TURN = 1000
"""Proposals of the first turn of the peak; every next turn is twice as long."""
EXACT_SHARE = 2
"""Ratio of the proposals by peak to those by exact throughput."""
HOT, COLD = 0.05, 0.0005
FIRST_ROUND = 500


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
    walk.counts[LENGTH] = FIRST_ROUND // 2
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
    walk.numbers[TEMPERATURE] = HOT
    walk.numbers[COOLING] = (COLD / HOT) ** (1.0 / walk.counts[LENGTH])


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
    if walk.numbers[ENERGY] < walk.numbers[BEST_PEAK] - 1e-12:
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
        rules = problem.rules
        alone = np.arange(problem.n_operators, dtype=np.int32)
        self.unit = alone if rules is None else rules.unit
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
