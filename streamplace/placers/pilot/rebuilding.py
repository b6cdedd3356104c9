"""Pilot for one pass: HEFT's schedule, foresight's, and what the policy makes of the better one."""

from math import nan
from pathlib import Path

from streamplace.learn.rebuild.placing import trained
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.meter import Meter
from streamplace.placers.pilot.plan import Plan
from streamplace.placers.registry import Budget, Found
from streamplace.placers.scheduled import found

SAMPLES = 1000
"""Where evaluations are counted: beyond these, search needs less."""


def rebuild(
    problem: Problem, objective: Objective, weights: Path, plan: Plan, seed: int, budget: Budget
) -> tuple[Found, int]:
    """Best of all schedules, and how many were tried."""
    samples, meter, tried = plan.samples, Meter(budget, 1), 0
    if samples is None:
        samples = SAMPLES if budget.evaluations is not None else 0
    best: Placement | None = None
    value = nan
    for schedule in trained(weights).schedules(problem, plan.looks, samples, seed):
        if not meter.chunk(1):
            break
        placement = found(problem, schedule).placement
        reached = objective.value(problem, placement)
        meter.spend(1)
        tried += 1
        if best is None or objective.better(reached, value):
            best, value = placement, reached
            meter.note(value)
    assert best is not None
    return Found(best, trace=tuple(meter.trace)), tried
