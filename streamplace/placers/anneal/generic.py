"""Objectives without a search of their own: begin with what a near one's finds, and climb."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import OBJECTIVES, Objective
from streamplace.placers.anneal.climb import BATCH, climb
from streamplace.placers.anneal.min_devices import carried, fewest, least_devices
from streamplace.placers.meter import Meter
from streamplace.placers.registry import PLACERS, Budget, Found

NEAR = {"makespan": "makespan", "latency": "makespan"}
"""The objective whose search is a good beginning for another one's."""
SHARE = 0.3
"""What that search gets of the budget."""


def best_by(
    problem: Problem, objective: Objective, start: Sequence[Placement], seed: int, budget: Budget
) -> Found:
    """Best placement found, by any objective and under any conditions."""
    meter = Meter(budget, BATCH)
    condition = carried(objective)
    if condition is not None:
        few = fewest(problem, condition, seed, meter)
        found = climb(problem, objective, start if few is None else (*start, few), seed, meter)
        return replace(found, bound=float(least_devices(problem, condition.limit)))
    near = _near(problem, objective, seed, meter)
    found = climb(problem, objective, (*start, *near), seed, meter)
    ordered = (*start, *near) if objective.ordered else ()  # these were climbed without order
    for placement in chain.from_iterable(_either_way(problem, each) for each in ordered):
        value, reached = objective.value(problem, placement), found.placement
        if objective.better(value, objective.value(problem, reached)):
            found = replace(found, placement=placement)
    return found


def _either_way(problem: Problem, placement: Placement) -> Iterator[Placement]:
    """Return a placement and, where devices hold its order, the same with mere priorities."""
    yield placement
    if placement.queue == "order":
        yield problem.placement(placement.index, placement.priority)


def _near(problem: Problem, objective: Objective, seed: int, meter: Meter) -> tuple[Placement, ...]:
    """Best placements by near objectives: of what is asked for, and of what is demanded."""
    wanted = [NEAR.get(objective.quantity, "")]
    wanted += [condition.objective.quantity for condition in objective.conditions]
    names = dict.fromkeys(name for name in wanted if name in ("makespan", "throughput"))
    found = []
    for name in names:
        part = meter.part(SHARE)
        if part is not None and OBJECTIVES[name].refuses(problem) is None:
            result = PLACERS["anneal"].place(problem, OBJECTIVES[name], seed=seed, budget=part)
            meter.spend(part.evaluations or 0)
            found.append(result.placement)
    return tuple(found)
