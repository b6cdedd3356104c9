"""The nouns: stream graphs, clusters, placements and problems."""

from streamplace.model.cluster import Cluster
from streamplace.model.constraints import Constraints
from streamplace.model.devices import Device, Devices
from streamplace.model.graph import StreamGraph
from streamplace.model.operators import Operator, Operators, Window
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.streams import Stream, Streams

__all__ = [
    "Cluster",
    "Constraints",
    "Device",
    "Devices",
    "Operator",
    "Operators",
    "Placement",
    "Problem",
    "Stream",
    "StreamGraph",
    "Streams",
    "Window",
]
