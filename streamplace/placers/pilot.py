"""Pilot: our own policy places at once; the rest of the budget goes into sampling and search."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from streamplace.errors import SettingError
from streamplace.model.columns import Ints
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.portfolio import metis_to_begin_with
from streamplace.placers.registry import PLACERS, Budget, Found, Improvement, Placer, placer
from streamplace.placers.stopwatch import now

SAMPLES = 30


@placer("pilot")
def pilot(
    problem: Problem,
    objective: Objective,
    *,
    seed: int,
    budget: Budget,
    weights: str = "",
    walks: int = 2,
    looks: int = 3,
    samples: int | None = None,
    refine: str = "anneal",
) -> Found:
    """Learned policy for any cluster, at once; then refined by search within the budget.

    Parameters
    ----------
    weights
        File of trained weights; those that come with streamplace where empty.
    walks
        Times that the policy begins, each time at another operator.
    looks
        Times that it goes through the operators of a walk, deciding about each anew.
    samples
        Placements drawn from the policy besides the likeliest ones; the best of all goes on. By
        default 30 where evaluations are counted, and none where seconds are: search needs less.
    refine
        Placer that goes on from there, or ``none``.
    """
    from streamplace.io.weights import shipped
    from streamplace.learn.pilot.placing import trained

    if samples is None:
        samples = SAMPLES if budget.evaluations is not None else 0
    if min(looks, walks) < 1 or samples < 0:
        raise SettingError(
            f"walks={walks}, looks={looks}, samples={samples}; walks and looks are at least 1, "
            "samples 0"
        )
    if refine != "none" and "start" not in PLACERS[refine].defaults():
        raise SettingError(f"placer {refine!r} cannot go on from a placement; refine by anneal")
    start = now()
    policy = trained(Path(weights) if weights else shipped("pilot"))
    most = walks * looks + samples if budget.evaluations is None else budget.evaluations
    rows = _walked(policy.walks(problem, min(looks, most)), min(walks, -(-most // looks)), budget)
    rows = rows[:most]
    if min(samples, most - len(rows)) > 0:
        drawn = policy.sampled(problem, min(samples, most - len(rows)), seed)
        rows = np.concatenate([rows, drawn])
    values = objective.evaluate(problem, rows)
    best = objective.best(values)
    improvement = Improvement(now() - start, float(values[best]), len(rows))
    found = Found(problem.placement(rows[best]), trace=(improvement,))
    if refine == "none" or _spent(budget, objective, now() - start, len(rows)):
        return found
    beginnings = (found.placement, *metis_to_begin_with(problem, objective, seed, budget))
    refiner = PLACERS[refine].with_options(start=beginnings)
    left = _left(budget, now() - start, len(rows))
    return _refined(found, refiner, problem, objective, seed, left)


def _walked(walks: Iterator[Ints], most: int, budget: Budget) -> Ints:
    """Placements after so many walks, or fewer where the seconds end before; at least one."""
    start, found = now(), [next(walks)]
    while len(found) < most and (budget.seconds is None or now() - start <= budget.seconds):
        found.append(next(walks))
    return np.concatenate(found)


def _spent(budget: Budget, objective: Objective, seconds: float, evaluations: int) -> bool:
    """Whether nothing remains; of throughput, which is quickly evaluated, the least work does."""
    if budget.evaluations is not None and budget.evaluations <= evaluations:
        return True
    late = budget.seconds is not None and budget.seconds <= seconds
    return late and objective.name != "throughput"


def _left(budget: Budget, seconds: float, evaluations: int) -> Budget:
    """What remains of a budget, be it a moment."""
    return Budget(
        None if budget.seconds is None else max(budget.seconds - seconds, 1e-6),
        None if budget.evaluations is None else budget.evaluations - evaluations,
    )


def _refined(
    found: Found, refiner: Placer, problem: Problem, objective: Objective, seed: int, budget: Budget
) -> Found:
    """Let another placer go on from what was found."""
    result = refiner.place(problem, objective, seed=seed, budget=budget)
    first = found.trace[-1]
    later = [
        Improvement(first.seconds + step.seconds, step.value, first.evaluations + step.evaluations)
        for step in result.trace
        if objective.better(step.value, first.value)
    ]
    return Found(result.placement, result.bound, (first, *later))
