"""What a drawing marks for throughput: what runs or flows where something is overloaded."""

import numpy as np

from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.picture import Picture
from streamplace.objectives.report import percent

FULL = 1 + 1e-9
MOST_DEVICES = 8


def picture(problem: Problem, placement: Placement) -> Picture:
    """Mark streams on links, and operators on devices, that are over their capacity."""
    from streamsim import resource_loads, throughput

    place, streams = placement.index, problem.graph.streams
    loads = resource_loads(problem.instance, place)
    a, b = place[streams.source], place[streams.target]
    used = ", ".join(
        f"{placement.devices[d]} {100 * loads.devices[d]:.0f} %"
        for d in np.unique(place)[:MOST_DEVICES]
    )
    return Picture(
        title=percent(float(throughput(problem.instance, place[None, :])[0])),
        subtitle=used,
        operators=loads.devices[place] > FULL,
        streams=(a != b) & (loads.links[a, b] > FULL),
    )
