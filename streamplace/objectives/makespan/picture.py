"""Marks of the critical chain in a drawing."""

import numpy as np

from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.report import quantity
from streamplace.objectives.makespan.options import PassOptions
from streamplace.objectives.makespan.timeline import pass_schedule
from streamplace.objectives.picture import Picture


def picture(problem: Problem, placement: Placement, options: PassOptions) -> Picture:
    """Mark the operators and the streams on the critical chain."""
    schedule = pass_schedule(problem, placement, options)
    operators = np.zeros(problem.n_operators, np.bool_)
    streams = np.zeros(problem.graph.n_streams, np.bool_)
    operators[schedule.chain.operator] = True
    streams[schedule.chain.stream[schedule.chain.stream >= 0]] = True
    return Picture(
        title=quantity(schedule.makespan, "s"),
        subtitle="critical chain in red",
        operators=operators,
        streams=streams,
        devices=tuple(f"busy {quantity(busy, 's')}" for busy in schedule.device_busy.tolist()),
    )
