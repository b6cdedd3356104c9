"""Makespan: the duration of one pass through the placed graph."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from streamplace.model.arrays import Floats, Ints
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.explanation import Explanation, PassTimeline
from streamplace.objectives.makespan.options import USUAL, PassOptions
from streamplace.objectives.makespan.timeline import least_makespan, pass_schedule, picture
from streamplace.objectives.registry import OBJECTIVES, Objective, objective


def _explain(problem: Problem, placement: Placement, options: PassOptions = USUAL) -> Explanation:
    from streamplace.objectives.makespan.explain import explain

    return explain(problem, placement, options)


def _timeline(problem: Problem, placement: Placement, options: PassOptions = USUAL) -> PassTimeline:
    queue = options.rules_of(placement)[0].queue
    return PassTimeline(pass_schedule(problem, placement, options), queue)


def _measures(problem: Problem, value: float) -> dict[str, float]:
    from streamplace.objectives.makespan.explain import length_ratio

    ratio = length_ratio(problem, value)
    return {} if ratio is None else {"slr": ratio}


def _variant(texts: Mapping[str, str]) -> Objective:
    options = PassOptions.of(texts)
    return replace(
        OBJECTIVES["makespan"],
        evaluate=partial(_makespans, options=options),
        ordered=options.heeds_priorities,
        explain=partial(_explain, options=options),
        picture=partial(picture, options=options),
        timeline=partial(_timeline, options=options),
    )


@objective(
    "makespan",
    sense="min",
    unit="s",
    bound=least_makespan,
    explain=_explain,
    picture=picture,
    timeline=_timeline,
    measures=_measures,
    variant=_variant,
    kind="pass",
    guide="makespan",
)
def makespan(
    problem: Problem,
    placements: Ints,
    priorities: Floats | None = None,
    queue: str = "priority",
) -> Floats:
    """Seconds of one pass, in which an operator runs once all of its inputs have arrived."""
    return _makespans(problem, placements, priorities, queue)


def _makespans(
    problem: Problem,
    placements: Ints,
    priorities: Floats | None = None,
    queue: str = "priority",
    options: PassOptions = USUAL,
) -> Floats:
    from streamsim.passes import makespans

    rules = options.rules("" if priorities is None else queue)
    order = priorities if options.heeds_priorities else None
    return makespans(problem.one_pass, np.atleast_2d(placements), rules, priorities=order)
