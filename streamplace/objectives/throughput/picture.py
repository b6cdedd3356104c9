"""Marks of the bottleneck in a drawing, if it limits the sources."""

from typing import TYPE_CHECKING

import numpy as np

from streamplace.model.arrays import Bools
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.report import percent
from streamplace.objectives.picture import Picture
from streamplace.objectives.throughput.loads import RESOURCES

if TYPE_CHECKING:
    from streamsim.steady import Bottleneck

FULL = 1 + 1e-9


def picture(problem: Problem, placement: Placement) -> Picture:
    """Mark the users of the bottleneck if it is overloaded."""
    from streamsim import bottleneck, resource_loads, throughput

    loads = resource_loads(problem.instance, placement.index)
    fullest = bottleneck(loads)
    limits = fullest.load > FULL
    operators, streams = _users(problem, placement, fullest)
    devices = placement.devices
    peer = f"→{devices[fullest.peer]}" if fullest.peer >= 0 else ""
    resource = RESOURCES[fullest.kind].format(devices[fullest.device] + peer)
    return Picture(
        title=percent(float(throughput(problem.instance, placement.index[None, :])[0])),
        subtitle=f"{'limit' if limits else 'fullest'}: {resource} at {percent(fullest.use)}",
        operators=operators & limits,
        streams=streams & limits,
        devices=tuple(f"CPU {100 * load:.0f} %" for load in loads.devices),
    )


def _users(problem: Problem, placement: Placement, resource: "Bottleneck") -> tuple[Bools, Bools]:
    """Operators and streams that use a resource."""
    place, streams = placement.index, problem.graph.streams
    a, b = place[streams.source], place[streams.target]
    none = np.zeros(len(place), np.bool_), np.zeros(len(a), np.bool_)
    here = place == resource.device
    if resource.kind == "device":
        return here, none[1]
    if resource.kind == "core":
        instance = problem.instance
        core = instance.core_pressure[:, instance.device_type[resource.device]]
        return here & (core >= resource.load * (1 - 1e-9)), none[1]
    ends = {
        "link": (a == resource.device) & (b == resource.peer),
        "egress": a == resource.device,
        "ingress": b == resource.device,
    }
    return none[0], ends[resource.kind] & (a != b)
