"""What a drawing marks for a makespan: the critical chain."""

import numpy as np

from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.makespan.explain import seen_by
from streamplace.objectives.makespan.way import Way
from streamplace.objectives.picture import Picture
from streamplace.objectives.report import quantity


def picture(problem: Problem, placement: Placement, way: Way) -> Picture:
    """Mark the operators and the streams on the critical chain."""
    seen = seen_by(problem, placement, way)
    operators = np.zeros(problem.n_operators, np.bool_)
    streams = np.zeros(problem.graph.n_streams, np.bool_)
    operators[seen.chain.operator] = True
    streams[seen.chain.stream[seen.chain.stream >= 0]] = True
    return Picture(
        title=quantity(seen.makespan, "s"),
        subtitle="critical chain in red",
        operators=operators,
        streams=streams,
        devices=tuple(f"busy {quantity(busy, 's')}" for busy in seen.device_busy.tolist()),
    )
