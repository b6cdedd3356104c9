"""Pilot: a learned policy places first; the rest of the budget goes to sampling and search."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np

from streamplace.errors import SettingError
from streamplace.learn.models.pilot.options import LOOKS, WALKS
from streamplace.model.arrays import Ints
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.incumbent import check_refiner, refined
from streamplace.placers.portfolio import metis_to_begin_with
from streamplace.placers.registry import PLACERS, Budget, Found, placer
from streamplace.placers.result import Improvement
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
    walks: int = WALKS,
    looks: int = LOOKS,
    samples: int | None = None,
    refine: str = "anneal",
) -> Found:
    """Learned policy for any cluster; search refines its placement within the budget.

    Where the makespan is asked for it is `pilot-makespan`.

    Parameters
    ----------
    weights
        File of trained weights; those that come with streamplace where empty.
    walks
        Times that the policy begins, each time at another operator; for the makespan once.
    looks
        Times that it goes through the operators of a walk, deciding about each anew.
    samples
        Placements drawn from the policy besides the likeliest ones; the best of all goes on. By
        default 30 where evaluations are counted (for the makespan most of these), and none where
        seconds are: search needs less.
    refine
        Placer that goes on from there, or ``none``.
    """
    from streamplace.learn.loading import shipped
    from streamplace.learn.models.pilot.placing import trained

    if min(looks, walks) < 1 or (samples or 0) < 0:
        raise SettingError(
            f"walks={walks}, looks={looks}, samples={samples}; walks and looks are at least 1, "
            "samples 0"
        )
    check_refiner(refine)
    if objective.kind == "pass":
        options = {"weights": weights, "looks": looks, "samples": samples, "refine": refine}
        passing = PLACERS["pilot-makespan"].function
        return cast(Found, passing(problem, objective, seed=seed, budget=budget, **options))
    if samples is None:
        samples = SAMPLES if budget.evaluations is not None else 0
    start = now()
    policy = trained(Path(weights) if weights else shipped("pilot"))
    most = walks * looks + samples if budget.evaluations is None else budget.evaluations
    rows = _walked(policy.walks(problem, min(looks, most)), min(walks, -(-most // looks)), budget)
    rows = rows[:most]
    if (left := min(samples, most - len(rows))) > 0:
        rows = np.concatenate([rows, policy.sampled(problem, left, seed)])
    values = objective.evaluate(problem, rows)
    best = objective.best(values)
    improvement = Improvement(now() - start, float(values[best]), len(rows))
    answer = Found(problem.placement(rows[best]), trace=(improvement,))
    case = problem, objective, seed, budget
    return refined(answer, start, len(rows), refine, *case, partial(metis_to_begin_with, *case))


def _walked(walks: Iterator[Ints], most: int, budget: Budget) -> Ints:
    """Placements of at most ``most`` walks within the time budget; at least one walk."""
    start, rows = now(), [next(walks)]
    while len(rows) < most and (budget.seconds is None or now() - start <= budget.seconds):
        rows.append(next(walks))
    return np.concatenate(rows)
