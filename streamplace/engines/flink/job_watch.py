"""Watching a running job window by window, without gaps; any of its windows are seen as one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

from streamplace.engines.flink.cpu import processes_of
from streamplace.engines.flink.flight_recorder import sampled_stacks
from streamplace.engines.flink.limits import Throttling, throttling
from streamplace.engines.flink.plan import JobPlan, read_plan, sources_of
from streamplace.engines.flink.rest import Rest
from streamplace.engines.flink.sampling import Activity, Sampler, pending_of, sent_by
from streamplace.engines.flink.stack_samples import StackCounts
from streamplace.engines.flink.task_cpu import (
    PROCESS_CPU,
    ClusterInterval,
    ClusterSnapshot,
    between,
    snapshot,
    stacks_by_task,
)

StacksByTask = Mapping[str, StackCounts]


class _Mark(NamedTuple):
    """What was seen between two windows: threads, and what quotas have done so far."""

    cluster: ClusterSnapshot
    held: Mapping[str, Throttling]


@dataclass(frozen=True, slots=True)
class Observation:
    """What was seen of a job between two moments.

    Attributes
    ----------
    activity
        What each task did.
    managers
        What was asked about its TaskManagers.
    interval
        What the threads of the TaskManagers on this machine did.
    throttled
        TaskManager on this machine → part of the periods of its quota in which it was held back.
    stacks
        Samples of the stacks of each task, by id; of tasks on this machine alone.
    """

    activity: Mapping[str, Activity]
    managers: Mapping[str, Activity]
    interval: ClusterInterval
    throttled: Mapping[str, float]
    stacks: StacksByTask


class JobWatch:
    """A running job that is watched.

    Parameters
    ----------
    of_managers
        Metrics that are wanted of all TaskManagers of the job.
    plan
        Its plan, where it was read already.
    """

    def __init__(
        self,
        rest: Rest,
        job: str,
        of_managers: Sequence[str] = (),
        plan: JobPlan | None = None,
    ) -> None:
        self.rest, self.job = rest, job
        self.name, self.tasks, self.edges = plan or read_plan(rest, job)
        sources = sources_of(self.tasks, self.edges)
        self.generated = {task.id: sent_by(task.operators[0]) for task in sources}
        """Source → metric that counts what it lets into the job, be it fused to others."""
        self.processes = processes_of(rest)
        """TaskManager of the cluster on this machine → its process."""
        self._marks = [self._mark(None)]
        self._sampled = self.processes
        self._stacks: list[StacksByTask] = []
        subtasks = self._marks[0].cluster.subtasks
        self.devices = {one.device for one in subtasks if one.job == job}
        """TaskManagers that it runs on."""
        self._sampler = Sampler(
            rest,
            job,
            [task.id for task in self.tasks],
            {task.id: (self.generated[task.id], pending_of(task.operators[0])) for task in sources},
            {
                device: (PROCESS_CPU, *of_managers)
                for device in self.devices - {""}
                if of_managers or device not in self.processes
            },
        )

    @property
    def windows(self) -> int:
        """Number of windows in which it was watched."""
        return len(self._stacks)

    def watch(self, seconds: float) -> None:
        """Watch for one more window, of at least ``seconds``.

        Raises
        ------
        FlinkError
            When the job does not run, or does not any more.
        """
        with sampled_stacks(self._sampled) as stop:
            self._sampler.watch(seconds)
            self._marks.append(self._mark(self._marks[-1].cluster))
            interval = self._interval(self.windows, self.windows + 1)
            stacks = stop()
        self._stacks.append(stacks_by_task(interval, self.job, stacks))
        self._sampled = {one: pid for one, pid in self._sampled.items() if one in stacks}

    def last(self, number: int = 1) -> Observation:
        """What was seen in so many of the last windows together."""
        end = self.windows
        start = end - number
        activity, managers = self._sampler.between(start, end)
        before, after = self._marks[start].held, self._marks[end].held
        return Observation(
            activity,
            managers,
            self._interval(start, end),
            {device: held.share_until(after[device]) for device, held in before.items()},
            reduce(_plus, self._stacks[start:end]),
        )

    def _mark(self, before: ClusterSnapshot | None) -> _Mark:
        held = {device: throttling(process) for device, process in self.processes.items()}
        return _Mark(snapshot(self.rest, self.job, self.processes, before), held)

    def _interval(self, start: int, end: int) -> ClusterInterval:
        first, second = self._marks[start].cluster, self._marks[end].cluster
        return between(first, second, self.processes, self.generated)


def _plus(first: StacksByTask, second: StacksByTask) -> StacksByTask:
    """Samples of both."""
    none = StackCounts()
    tasks = dict.fromkeys([*first, *second])
    return {task: first.get(task, none).plus(second.get(task, none)) for task in tasks}
