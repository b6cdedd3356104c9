"""Several sources: the search alternates between the peak and the exact throughput."""

import operator
from collections.abc import Sequence

import numpy as np
from streamsim import incremental, throughput
from streamsim.instance import writable
from streamsim.topology import group_by

from streamplace.model.arrays import Ints
from streamplace.model.level import Level
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.placers.anneal.rate import max_min, search
from streamplace.placers.anneal.rate.chunks import ENOUGH, FLAT, placement_of
from streamplace.placers.anneal.rate.multilevel import cycles
from streamplace.placers.anneal.rate.walk import BEST_PEAK, new_walk
from streamplace.placers.incumbent import Incumbent, handing_on
from streamplace.placers.meter import Meter
from streamplace.placers.registry import Found

LEAST_TURN = 1000
"""Proposals of the first turn of the peak; every next turn is twice as long."""
EXACT_SHARE = 2
"""Ratio of the proposals by peak to those by exact throughput."""


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
    max_min.begin_fair(instance, level, by_value, state)
    turn, before = LEAST_TURN, -1
    while best.value < 1.0 and not meter.over and meter.spent > before:
        left, before = turn, meter.spent
        while by_peak.numbers[BEST_PEAK] > ENOUGH and (chunk := meter.chunk(min(left, 4096))):
            meter.spend(search.search(level, by_peak, chunk, ENOUGH))
            left -= chunk
        best.judge(by_peak.best)
        max_min.go_to(instance, level, by_value, state, member, first, best.solution)
        left = turn // EXACT_SHARE
        while best.value < 1.0 and (chunk := meter.chunk(min(left, 256))):
            meter.spend(max_min.fair_steps(instance, level, by_value, state, member, first, chunk))
            best.judge(by_value.best)
            left -= chunk
        turn *= 2
