"""Makespan: how long one pass through the placed graph takes."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from streamplace.model.columns import Floats, Ints
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.makespan.way import Way
from streamplace.objectives.picture import Picture
from streamplace.objectives.registry import OBJECTIVES, Explanation, Objective, Values, objective

USUAL = Way()


def _bound(problem: Problem) -> float:
    from streamplace.objectives.makespan.bound import least_makespan

    return least_makespan(problem)


def _explain(problem: Problem, placement: Placement, way: Way = USUAL) -> Explanation:
    from streamplace.objectives.makespan.explain import explain

    return explain(problem, placement, way)


def _picture(problem: Problem, placement: Placement, way: Way = USUAL) -> Picture:
    from streamplace.objectives.makespan.picture import picture

    return picture(problem, placement, way)


def _variant(options: Mapping[str, str]) -> Objective:
    """The makespan by other rules."""
    way = Way.of(options)
    return replace(
        OBJECTIVES["makespan"],
        evaluate=partial(_makespans, way=way),
        ordered=way.heeds_priorities,
        explain=partial(_explain, way=way),
        picture=partial(_picture, way=way),
    )


@objective(
    "makespan",
    sense="min",
    unit="s",
    bound=_bound,
    explain=_explain,
    picture=_picture,
    variant=_variant,
)
def makespan(problem: Problem, placements: Ints, priorities: Floats | None = None) -> Values:
    """Seconds of one pass, where an operator runs once all of its inputs are there."""
    return _makespans(problem, placements, priorities)


def _makespans(
    problem: Problem, placements: Ints, priorities: Floats | None = None, way: Way = USUAL
) -> Values:
    from streamsim.passes import makespans

    rules = way.rules(ordered=priorities is not None)
    order = priorities if way.heeds_priorities else None
    return makespans(problem.one_pass, np.atleast_2d(placements), rules, priorities=order)
