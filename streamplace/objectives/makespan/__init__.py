"""Makespan: the duration of one pass through the placed graph."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from streamplace.model.arrays import Floats, Ints
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.explanation import Explanation
from streamplace.objectives.makespan.options import USUAL, PassOptions
from streamplace.objectives.makespan.timeline import least_makespan, picture
from streamplace.objectives.registry import OBJECTIVES, Objective, objective

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _explain(problem: Problem, placement: Placement, options: PassOptions = USUAL) -> Explanation:
    from streamplace.objectives.makespan.explain import explain

    return explain(problem, placement, options)


def _chart(
    problem: Problem, placement: Placement, figure: "Figure", options: PassOptions = USUAL
) -> str:
    from streamplace.objectives.makespan.gantt import gantt

    return gantt(problem, placement, options, figure)


def _trace(problem: Problem, placement: Placement, options: PassOptions = USUAL) -> dict[str, Any]:
    from streamplace.objectives.makespan.lanes import trace

    return trace(problem, placement, options)


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
        chart=partial(_chart, options=options),
        trace=partial(_trace, options=options),
    )


@objective(
    "makespan",
    sense="min",
    unit="s",
    bound=least_makespan,
    explain=_explain,
    picture=picture,
    chart=_chart,
    trace=_trace,
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
