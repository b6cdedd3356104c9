"""Relocation: the cost of moving a running graph to a placement.

An operator that moves sends its state over the link from its old device and starts on the new
one; operators move one after the other. This time is divided by the passes until the next move,
and added to the duration of a pass.
"""

from dataclasses import replace

import numpy as np

from streamplace.errors import SettingError
from streamplace.model.arrays import Floats, Ints
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.relocation import Relocation
from streamplace.objectives.explanation import Explanation
from streamplace.objectives.registry import Objective


def relocating(objective: Objective, relocation: Relocation) -> Objective:
    """Return the objective plus the seconds per pass of moving to a placement.

    Examples
    --------
    >>> from streamplace.objectives.registry import named_objective
    >>> relocating(named_objective("makespan"), Relocation({"a": "d0"}, 100)).name
    'makespan after a move every 100 passes'
    """
    if objective.unit != "s":
        raise SettingError(
            f"{objective.name} is not measured in seconds, so the time of moves cannot be added to "
            "it; use makespan, latency or cost"
        )

    def evaluate(
        problem: Problem,
        placements: Ints,
        priorities: Floats | None = None,
        queue: str = "priority",
    ) -> Floats:
        batch = np.atleast_2d(placements)
        seconds = relocation.seconds(problem)[np.arange(problem.n_operators), batch].sum(axis=1)
        values = objective.values(problem, batch, priorities, queue)
        return np.asarray(values + seconds / relocation.passes)

    def explain(problem: Problem, placement: Placement) -> Explanation:
        from streamplace.objectives.relocation.explain import explain

        return explain(problem, placement, objective, relocation)

    return replace(
        objective,
        name=f"{objective.name} after a move every {relocation.passes:g} passes",
        evaluate=evaluate,
        explain=explain,
        refuses=lambda problem: relocation.fault(problem) or objective.refuses(problem),
        base=objective,
        relocation=relocation,
    )
