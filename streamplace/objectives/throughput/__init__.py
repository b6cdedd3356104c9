"""Relative throughput: the share of the sources' rate that the placed graph sustains."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from streamplace.model.arrays import Floats, Ints
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.explanation import Explanation
from streamplace.objectives.registry import OBJECTIVES, Objective, objective
from streamplace.objectives.throughput.loads import picture


def _explain(problem: Problem, placement: Placement) -> Explanation:
    from streamplace.objectives.throughput.explain import explain

    return explain(problem, placement)


def _variant(texts: Mapping[str, str]) -> Objective:
    """Return the throughput of placements on which operators cost more than expected."""
    from streamplace.objectives.throughput.robust import Protection, explain_robust, robust

    protection = Protection.of(texts)
    return replace(
        OBJECTIVES["throughput"],
        evaluate=partial(robust, protection=protection),
        explain=partial(explain_robust, protection=protection),
        guide="throughput",
    )


@objective(
    "throughput",
    sense="max",
    explain=_explain,
    picture=picture,
    limit=1.0,
    variant=_variant,
    kind="rate",
    quick=True,
)
def throughput(problem: Problem, placements: Ints) -> Floats:
    """Relative throughput in the steady state, 0 to 1 (max–min fair between sources)."""
    from streamsim import throughput as steady_throughput

    return steady_throughput(problem.instance, placements)
