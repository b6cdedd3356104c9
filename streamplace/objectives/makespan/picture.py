"""What a drawing marks for a makespan: the critical chain."""

import numpy as np

from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.picture import Picture
from streamplace.objectives.report import quantity


def picture(problem: Problem, placement: Placement) -> Picture:
    """Mark the operators and the streams on the critical chain."""
    from streamsim.passes import Rules, schedule

    rules = Rules() if placement.priority is None else Rules(queue="priority")
    seen = schedule(problem.one_pass, placement.index, rules, priorities=placement.priority)
    operators = np.zeros(problem.n_operators, np.bool_)
    streams = np.zeros(problem.graph.n_streams, np.bool_)
    operators[seen.chain.operator] = True
    streams[seen.chain.stream[seen.chain.stream >= 0]] = True
    return Picture(
        title=quantity(seen.makespan, "s"),
        subtitle="critical chain in red",
        operators=operators,
        streams=streams,
    )
