"""Hill climbing for any objective, by evaluating batches of neighbours."""

from collections.abc import Sequence

import numpy as np

from streamplace.model.arrays import Ints
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.incumbent import Incumbent
from streamplace.placers.meter import Meter
from streamplace.placers.registry import Found

BATCH = 32
MOST_CHANGES = 4
"""Most operators (or colocated groups) in which a neighbour differs."""
PATIENCE = 30
"""Batches without a better neighbour before the climb jumps away from the best placement."""
JUMP = 0.2
"""Share of the operators that a jump moves."""


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
