"""Objectives without a search of their own: start from the best by related ones, and climb.

The climb evaluates batches of neighbours.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from streamplace.model.arrays import Ints
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import OBJECTIVES, Objective
from streamplace.placers.anneal.min_devices import least_devices, min_devices, rate_to_sustain
from streamplace.placers.incumbent import Incumbent
from streamplace.placers.meter import Meter
from streamplace.placers.registry import PLACERS, Budget, Found

BATCH = 32
MOST_CHANGES = 4
"""Most operators (or colocated groups) in which a neighbour differs."""
PATIENCE = 30
"""Batches without a better neighbour before the climb jumps away from the best placement."""
JUMP = 0.2
"""Share of the operators that a jump moves."""
SEARCHED = ("rate", "pass")
"""Kinds of objectives that have a search of their own."""
SHARE = 0.3
"""Share of the remaining budget for a search by another objective."""


def best_by(
    problem: Problem, objective: Objective, start: Sequence[Placement], seed: int, budget: Budget
) -> Found:
    """Search for the best placement by any objective, under any conditions."""
    meter = Meter(budget, BATCH)
    condition = rate_to_sustain(objective)
    if condition is not None:
        few = min_devices(problem, condition, seed, meter)
        answer = climb(problem, objective, start if few is None else (*start, few), seed, meter)
        return replace(answer, bound=float(least_devices(problem, condition.limit)))
    guides = _guides(problem, objective, seed, meter)
    answer = climb(problem, objective, (*start, *guides), seed, meter)
    ordered = (*start, *guides) if objective.ordered else ()  # the climb ignored their order
    for placement in chain.from_iterable(_either_way(problem, each) for each in ordered):
        value, reached = objective.value(problem, placement), answer.placement
        if objective.better(value, objective.value(problem, reached)):
            answer = replace(answer, placement=placement)
    return answer


def _either_way(problem: Problem, placement: Placement) -> Iterator[Placement]:
    """Yield a placement and, if devices hold its order, the same with priorities instead."""
    yield placement
    if placement.queue == "order":
        yield problem.placement(placement.index, placement.priority)


def _guides(
    problem: Problem, objective: Objective, seed: int, meter: Meter
) -> tuple[Placement, ...]:
    """Best placements by the objective's guide, and by the quantities that its conditions limit."""
    limited = [condition.objective for condition in objective.conditions]
    names = dict.fromkeys(
        [objective.guide, *(each.quantity for each in limited if each.kind in SEARCHED)]
    )
    placements = []
    for name in filter(None, names):
        part = meter.part(SHARE)
        if part is not None and OBJECTIVES[name].refuses(problem) is None:
            result = PLACERS["anneal"].place(problem, OBJECTIVES[name], seed=seed, budget=part)
            meter.spend(part.evaluations or 0)
            placements.append(result.placement)
    return tuple(placements)


def climb(
    problem: Problem, objective: Objective, start: Sequence[Placement], seed: int, meter: Meter
) -> Found:
    """Move to the best of every batch of neighbours if it is no worse; jump when stuck."""
    rng = np.random.default_rng(seed)
    batch = np.stack([placement.index for placement in start] or [_together(problem)])
    values = objective.evaluate(problem, batch)
    current, current_value = batch[objective.best(values)], float(values[objective.best(values)])
    best = Incumbent[Ints](objective.better, meter)
    best.offer(current, current_value)
    stuck = 0
    while size := meter.chunk(BATCH):
        neighbours = _neighbours(problem, current, rng)[:size]
        values = objective.evaluate(problem, neighbours)
        meter.spend(size)
        i = objective.best(values)
        stuck = 0 if objective.better(values[i], current_value) else stuck + 1
        if not objective.better(current_value, values[i]):
            current, current_value = neighbours[i], float(values[i])
        best.offer(current, current_value)
        if stuck > PATIENCE:
            current, stuck = _jumped(problem, best.solution, rng), 0
            current_value = float(objective.evaluate(problem, current[None])[0])
    return best.answer(problem.placement(best.solution))


def _together(problem: Problem) -> Ints:
    return problem.repaired(np.zeros(problem.n_operators, np.int32))


def _neighbours(problem: Problem, place: Ints, rng: np.random.Generator) -> Ints:
    """Batch of placements that differ from ``place`` in a few operators."""
    n_changes = rng.integers(1, MOST_CHANGES, size=BATCH, endpoint=True)
    batch = np.tile(place, (BATCH, 1))
    for row, n in zip(batch, n_changes, strict=True):
        row[rng.integers(problem.n_operators, size=n)] = rng.integers(problem.n_devices)
    return problem.repaired(batch)


def _jumped(problem: Problem, place: Ints, rng: np.random.Generator) -> Ints:
    moves = rng.random(problem.n_operators) < JUMP
    anywhere = rng.integers(problem.n_devices, size=problem.n_operators)
    return problem.repaired(np.where(moves, anywhere, place))
