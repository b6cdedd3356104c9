"""An assumed network is not slower than what a job sends through it now.

A network that was neither measured nor given has a usual speed. If that could not carry what the
present layout of a job sends, it is wrong, and so would be every prediction that it limits.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from streamplace.engines.flink.measure.cluster import MeasuredCluster
from streamplace.engines.flink.measure.key_shares import Shares
from streamplace.engines.flink.measure.placed_subtasks import placed
from streamplace.model.graph import StreamGraph

CONTRADICTED = 1.05
"""Load above which a network must be faster; a real one may be full, and counts err a little."""
ROOM = 2.0
"""Speed of an assumed network then, as a multiple of what a card sends or receives."""


def fast_enough(
    measured: MeasuredCluster,
    graph: StreamGraph,
    layout: Mapping[str, Sequence[str]],
    shares: Shares,
) -> tuple[MeasuredCluster, str]:
    """Return the cluster with a network that carries what a job sends, and a note if it was raised.

    Cards are compared, because no pair of TaskManagers exchanges more than the card of either, and
    no assumed link is slower than an assumed card.

    Parameters
    ----------
    graph
        The job with its measured rates.
    layout
        Operator → TaskManagers of its subtasks.
    """
    from streamsim import resource_loads

    cluster = measured.cluster()
    if not {device for devices in layout.values() for device in devices} <= {*cluster.devices.name}:
        return measured, ""  # a TaskManager was lost meanwhile
    job = placed(graph, cluster, layout, shares)
    loads = resource_loads(job.problem.instance, job.placement)
    assumed = [one.card is not None and one.card.is_assumed for one in measured.devices]
    load = float(np.maximum(loads.egress, loads.ingress)[assumed].max(initial=0.0))
    if load <= CONTRADICTED:
        return measured, ""
    return measured.with_faster_network(ROOM * load)
