"""Spread of a profile: its numbers of windows, subtasks and processes, and how windows vary.

These facts are attributes of the graph. They say that it was measured, and how well.
"""

from collections.abc import Mapping, Sequence
from statistics import mean, stdev

from streamplace.engines.flink.constant_loads import LoadWindow
from streamplace.engines.flink.plan import FlinkTask
from streamplace.model.graph import (
    PROFILE_PROCESSES,
    PROFILE_SPREAD,
    PROFILE_SUBTASKS,
    PROFILE_WINDOWS,
)


def spread_facts(
    tasks: Sequence[FlinkTask],
    sources: Sequence[FlinkTask],
    windows: Sequence[LoadWindow],
    devices: Mapping[str, Sequence[str]],
) -> dict[str, str | float]:
    """Attributes of a measured graph.

    Parameters
    ----------
    windows
        Windows in which the job was measured; empty if there was only one.
    devices
        Operator → TaskManagers of its subtasks.
    """
    facts: dict[str, str | float] = {
        PROFILE_WINDOWS: max(1, len(windows)),
        PROFILE_SUBTASKS: sum(task.parallelism for task in tasks),
        PROFILE_PROCESSES: len({device for own in devices.values() for device in own}),
    }
    costs = []
    for window in windows:
        tuples = sum(window.tuples.get(task.id, 0.0) for task in sources)
        if tuples > 0:
            costs.append(sum(window.cores.values()) / tuples)
    if len(costs) > 1 and mean(costs) > 0:
        facts[PROFILE_SPREAD] = float(f"{stdev(costs) / mean(costs):.4g}")
    return facts
