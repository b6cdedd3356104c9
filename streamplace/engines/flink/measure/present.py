"""The placement of a job during its profile, and the CPU usage of its TaskManagers."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence

from streamplace.engines.flink.cpu.background import remote_flows
from streamplace.engines.flink.cpu.helpers import NETWORK, cores_by_kind, java_itself
from streamplace.engines.flink.cpu.limits import cpu_limit
from streamplace.engines.flink.cpu.task_cpu import ClusterInterval
from streamplace.engines.flink.measure.consistency import Present, Usage
from streamplace.engines.flink.measure.sampling import Activity
from streamplace.engines.flink.measure.sending_cost import sending_cost
from streamplace.engines.flink.rest.plan import Edge, FlinkTask


def present_of(
    job: str,
    tasks: Sequence[FlinkTask],
    edges: Sequence[Edge],
    interval: ClusterInterval,
    activity: Mapping[str, Activity],
    processes: Mapping[str, int],
    throttled: Mapping[str, float],
) -> Present | None:
    """Placement of a job, and CPU usage of its TaskManagers; None if the placement is unknown.

    Parameters
    ----------
    throttled
        TaskManager → part of the periods of its quota in which it was throttled.
    """
    own = sorted(one for one in interval.subtasks if one.job == job)
    devices = {task.id: [one.device for one in own if one.vertex == task.id] for task in tasks}
    if any(len(devices[task.id]) != task.parallelism for task in tasks):
        return None
    kinds = {device: cores_by_kind(loads) for device, loads in interval.loads.items()}
    usage = {
        device: Usage(
            cpu_limit(pid) or max(1.0, (os.cpu_count() or 1) // len(processes)),
            kinds[device],
            throttled[device],
        )
        for device, pid in processes.items()
    }
    flows = remote_flows(edges, activity, {v: Counter(where) for v, where in devices.items()})
    return Present(
        {task.name: devices[task.id] for task in tasks},
        usage,
        java_itself(kinds),
        sending_cost({d: one.get(NETWORK, 0.0) for d, one in kinds.items()}, flows),
    )
