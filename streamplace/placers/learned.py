"""What the placers of the paper's models have in common."""

from pathlib import Path

import numpy as np

from streamplace.errors import SettingError
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.registry import Budget, Found, Improvement
from streamplace.placers.stopwatch import now


def placed_by(
    model: str,
    problem: Problem,
    objective: Objective,
    seed: int,
    budget: Budget,
    weights: str,
    samples: int,
) -> Found:
    """Place greedily, then sample; the best by the objective wins, of equals the first.

    Parameters
    ----------
    weights
        File of trained weights; those that come with streamplace where empty.
    samples
        Placements drawn from the policy besides the greedy one, within the budget's evaluations.
    """
    from streamplace.io.weights import shipped
    from streamplace.learn.dream.placing import trained

    if samples < 0:
        raise SettingError(f"samples is {samples}; it must be at least 0")
    start = now()
    policy = trained(Path(weights) if weights else shipped(model), model)
    rows = policy.place_many([problem])[0].index[None]
    if budget.evaluations is not None:
        samples = min(samples, budget.evaluations - 1)
    if samples:
        rows = np.concatenate([rows, policy.sampled(problem, samples, seed)])
    values = objective.evaluate(problem, rows)
    best = objective.best(values)
    improvement = Improvement(now() - start, float(values[best]))
    return Found(problem.placement(rows[best]), trace=(improvement,))
