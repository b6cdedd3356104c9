"""Use of TaskManagers by a job, and the fullest resource."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from streamplace.flink.constants import MIN_CAUSE
from streamplace.flink.cpu.limits import FULL
from streamplace.flink.measure.profile import JobProfile
from streamplace.flink.prometheus.job_history import JobHistory
from streamplace.flink.prometheus.reading import JobMetrics
from streamplace.model.arrays import Floats
from streamplace.model.message_text import shown

CPU, MEMORY, STATE = "CPU", "memory", "state"


class JobUsage(NamedTuple):
    """Use of TaskManagers by a job at its peak, or while it was measured."""

    cores: float
    # Possible limit other than CPU → how full it is: operators by the share of the time for which
    # their busiest subtask is busy, the heap, and the interval of checkpoints.
    full: Mapping[str, float]
    throttled: float = 0.0  # largest share of periods in which a quota has stopped a TaskManager

    def limit(self, cores: float | None) -> tuple[str, float]:
        """The fullest resource on a number of cores, and how full it is.

        If the CPU is used up, it counts as the fullest, since threads that lack CPU are busy for
        longer.

        >>> usage = JobUsage(1.9, {"map": 1.0, "memory": 0.4})
        >>> usage.limit(8.0), usage.limit(2.0)
        (('map', 1.0), ('CPU', 0.95))
        """
        load = 0.0 if not cores else self.cores / cores
        if load >= FULL or self.throttled >= MIN_CAUSE:
            return CPU, load
        loads = {CPU: load, **self.full}
        fullest = max(loads, key=lambda name: loads[name])
        return fullest, loads[fullest]

    @classmethod
    def of_history(cls, history: JobHistory | JobMetrics) -> "JobUsage":
        """Use in the window with most CPU."""
        at = int(np.nanargmax(history.used))

        def largest(rows: Mapping[str, Floats]) -> float:
            return max((float(row[at]) for row in rows.values() if np.isfinite(row[at])), default=0)

        full = {shown(name, 40): largest({name: row}) for name, row in history.busy.items()}
        if (memory := history.memory) is not None:
            full[MEMORY] = memory.heap_needed / memory.heap_size
        if (checkpoints := history.checkpoints) is not None and checkpoints.interval:
            full[STATE] = checkpoints.longest / checkpoints.interval
        return cls(float(history.used[at]), full, largest(history.devices.throttled))

    @classmethod
    def of_profile(cls, profile: JobProfile) -> "JobUsage":
        """Use while a job was measured."""
        full = {}
        for task in profile.tasks:
            activity = profile.activity[task.id]
            mean = (activity.busy or 0.0) / max(1, task.parallelism)
            busy = [subtask.busy for subtask, _ in profile.subtasks.get(task.id, ())]
            shares = [ms / 1000 / activity.seconds for ms in busy if math.isfinite(ms)]
            full[shown(task.name, 40)] = max([mean, *shares])
        devices = {name for names in profile.present.devices.values() for name in names}
        cores = sum(cpu.cores for cpu in profile.cpu.values()) + len(devices) * (profile.java or 0)
        return cls(cores, full, max(profile.throttled.values(), default=0.0))
