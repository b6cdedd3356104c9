"""Pilot for graphs that run for ever: walks through the operators, samples, then search."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from streamplace.learn.pilot.placing import trained
from streamplace.model.columns import Ints
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.pilot.plan import Plan
from streamplace.placers.registry import Budget, Found, Improvement
from streamplace.placers.stopwatch import now

SAMPLES = 30


def walk(
    problem: Problem, objective: Objective, weights: Path, plan: Plan, seed: int, budget: Budget
) -> tuple[Found, int]:
    """Best of all walks and samples, and how many placements were tried."""
    start, policy, looks = now(), trained(weights), plan.looks
    samples = plan.samples
    if samples is None:
        samples = SAMPLES if budget.evaluations is not None else 0
    most = plan.walks * looks + samples if budget.evaluations is None else budget.evaluations
    walks = min(plan.walks, -(-most // looks))
    rows = _walked(policy.walks(problem, min(looks, most)), walks, budget)[:most]
    if min(samples, most - len(rows)) > 0:
        drawn = policy.sampled(problem, min(samples, most - len(rows)), seed)
        rows = np.concatenate([rows, drawn])
    values = objective.evaluate(problem, rows)
    best = objective.best(values)
    improvement = Improvement(now() - start, float(values[best]), len(rows))
    return Found(problem.placement(rows[best]), trace=(improvement,)), len(rows)


def _walked(walks: Iterator[Ints], most: int, budget: Budget) -> Ints:
    """Placements after so many walks, or fewer where the seconds end before; at least one."""
    start, found = now(), [next(walks)]
    while len(found) < most and (budget.seconds is None or now() - start <= budget.seconds):
        found.append(next(walks))
    return np.concatenate(found)
