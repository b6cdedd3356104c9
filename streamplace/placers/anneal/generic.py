"""Objectives without a search of their own: start from the best by related ones, and climb."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.registry import OBJECTIVES, Objective
from streamplace.placers.anneal.climb import BATCH, climb
from streamplace.placers.anneal.min_devices import least_devices, min_devices, rate_to_sustain
from streamplace.placers.meter import Meter
from streamplace.placers.registry import PLACERS, Budget, Found

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
