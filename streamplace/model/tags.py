"""Tags that operators require, and the devices that offer them."""

from typing import NamedTuple

import numpy as np

from streamplace.errors import ProblemError
from streamplace.model.arrays import Bools, Longs
from streamplace.model.cluster import Cluster
from streamplace.model.graph import StreamGraph
from streamplace.model.messages import listed, quoted


class RequiredTags(NamedTuple):
    """K different sets of tags, and the T operators that require one of them."""

    sets: tuple[frozenset[str], ...]  # [K]
    operator: Longs  # [T]
    kind: Longs  # [T] set of each operator

    def offers(self, graph: StreamGraph, cluster: Cluster) -> Bools:
        """Whether each device has the tags that each of the operators requires, [T, D]."""
        offered = [cluster.offering(tags) for tags in self.sets]
        for k, devices in enumerate(offered):
            if not np.count_nonzero(devices):
                name = graph.operators.name[self.operator[np.argmax(self.kind == k)]]
                raise ProblemError(
                    f"operator {quoted(name)} requires {listed(sorted(self.sets[k]))}, "
                    "which no device offers; add the tag to a device"
                )
        return np.array(offered)[self.kind]


def required_tags(graph: StreamGraph) -> RequiredTags:
    """Tags that the operators of a graph require, compiled once and cached."""
    return graph.cached("required tags", _required_tags)


def _required_tags(graph: StreamGraph) -> RequiredTags:
    number: dict[frozenset[str], int] = {}
    tagged = [(v, tags) for v, tags in enumerate(graph.operators.requires) if tags]
    kind = [number.setdefault(tags, len(number)) for _, tags in tagged]
    rows = np.array([v for v, _ in tagged], np.int64)
    return RequiredTags(tuple(number), rows, np.array(kind, np.int64))
