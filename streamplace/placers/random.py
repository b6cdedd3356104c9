"""Random: the best of many random placements."""

import numpy as np

from streamplace.model.arrays import Floats
from streamplace.model.problem import Problem, random_placements
from streamplace.objectives.registry import Objective
from streamplace.placers.registry import Budget, Found, placer
from streamplace.placers.result import Improvement
from streamplace.placers.stopwatch import now

DEFAULT_SAMPLES = 1000
BATCH_CELLS = 1_000_000


@placer("random")
def random(problem: Problem, objective: Objective, *, seed: int, budget: Budget) -> Found:
    """Sample placements on random numbers of devices and keep the best; 1000 by default."""
    start = now()
    rng = np.random.default_rng(seed)
    remaining = budget.evaluations or DEFAULT_SAMPLES
    per_batch = max(1, BATCH_CELLS // problem.n_operators)
    best, best_value = np.empty(0, np.int32), 0.0
    trace: list[Improvement] = []
    done = 0
    late = False
    while remaining > 0 and not late:
        batch = problem.canonical(random_placements(problem, min(remaining, per_batch), rng))
        remaining -= len(batch)
        values = objective.evaluate(problem, batch)
        for i in _records(values, objective):
            if not trace or objective.better(values[i], best_value):
                best, best_value = batch[i], float(values[i])
                trace.append(Improvement(now() - start, best_value, done + i + 1))
        done += len(batch)
        late = budget.seconds is not None and now() - start > budget.seconds
    return Found(problem.placement(best), trace=tuple(trace))


def _records(values: Floats, objective: Objective) -> list[int]:
    """Indices of the values that are better than all before them."""
    goods = values if objective.sense == "max" else -values
    best = np.maximum.accumulate(goods)
    return [0, *(np.flatnonzero(best[1:] > best[:-1]) + 1).tolist()]
