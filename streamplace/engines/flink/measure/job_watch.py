"""Measure a running job in adjacent windows of time, which can be combined."""

from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

from streamplace.engines.flink.cpu.flight_recorder import (
    RECORDER_THREAD,
    sampled_stacks,
    why_unsampled,
)
from streamplace.engines.flink.cpu.limits import Throttling, throttling
from streamplace.engines.flink.cpu.stack_samples import StackCounts
from streamplace.engines.flink.cpu.task_cpu import (
    PROCESS_CPU,
    ClusterInterval,
    ClusterSnapshot,
    TaskCpu,
    between,
    cpu_by_subtask,
    snapshot,
    stacks_by_task,
    task_cpu,
)
from streamplace.engines.flink.cpu.threads import processes_of
from streamplace.engines.flink.measure.sampling import (
    IDLE,
    Activity,
    Sampler,
    pending_of,
    restarted,
    sent_by,
)
from streamplace.engines.flink.measure.waiting import ThreadTimes, thread_times
from streamplace.engines.flink.rest.answer_shapes import Job
from streamplace.engines.flink.rest.buffer_settings import buffer_settings
from streamplace.engines.flink.rest.client import FINISHED, FlinkError, Rest
from streamplace.engines.flink.rest.plan import FlinkTask, JobPlan, read_plan, sources_of
from streamplace.model.messages import listed, quoted
from streamplace.model.units import digits

StacksByTask = Mapping[str, StackCounts]


class _Mark(NamedTuple):
    """State between two windows: threads of the cluster, and counts of throttled periods."""

    cluster: ClusterSnapshot
    held: Mapping[str, Throttling]


@dataclass(frozen=True, slots=True)
class Observation:
    """Measurements of a job in an interval of time."""

    activity: Mapping[str, Activity]  # metrics of each task
    managers: Mapping[str, Activity]  # metrics of its TaskManagers
    interval: ClusterInterval  # CPU of the threads of the TaskManagers on this machine
    # TaskManager on this machine → part of the periods of its quota in which it was throttled.
    throttled: Mapping[str, float]
    stacks: StacksByTask  # samples of the stacks of each task on this machine, by id


class JobWatch:
    """Measures a running job, window by window.

    Tasks that have ended before are not watched: they count as idle.

    ``of_managers``: metrics to read of all TaskManagers of the job.
    ``plan``: its plan, if it was already read.
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
        """Source → metric that counts its output, even if it is fused to other operators."""
        self.processes = processes_of(rest)
        """TaskManager of the cluster on this machine → process."""
        self.buffers = buffer_settings(rest)
        """Network buffers of the cluster."""
        self._marks = [self._mark(None)]
        self._sampled = self.processes
        self._stacks: list[StacksByTask] = []
        running = {task.id for task in self.tasks if not task.has_ended}
        subtasks = self._marks[0].cluster.subtasks
        own = (one for one in subtasks if one.job == job and one.vertex in running)
        self.devices = {one.device for one in own if one.device and not one.has_ended}
        """TaskManagers on which tasks of the job run."""
        self._sampler = Sampler(
            rest,
            job,
            [task.id for task in self.tasks if task.id in running],
            {task.id: (self.generated[task.id], pending_of(task.operators[0])) for task in sources},
            {
                device: (PROCESS_CPU, *of_managers)
                for device in self.devices
                if of_managers or not self._marks[0].cluster.threads.get(device)
            },
        )

    @property
    def windows(self) -> int:
        """Number of completed windows."""
        return len(self._stacks)

    @property
    def starts_recorder(self) -> bool:
        """Whether sampling starts the recorder of a process, where Java then discards its code."""
        threads = self._marks[0].cluster.threads
        fresh = {
            device: process
            for device, process in self.processes.items()
            if all(thread.name != RECORDER_THREAD for thread in threads.get(device, ()))
        }
        return bool(fresh) and not why_unsampled(fresh)

    def watch(self, seconds: float, *, is_sampled: bool = True) -> None:
        """Measure one more window of at least ``seconds``, and sample stacks meanwhile."""
        with sampled_stacks(self._sampled if is_sampled else {}) as stop:
            self._sampler.watch(seconds)
            self._marks.append(self._mark(self._marks[-1].cluster))
            self._check_same_subtasks()
            interval = self._interval(self.windows, self.windows + 1)
            stacks = stop()
        self._stacks.append(stacks_by_task(interval, self.job, stacks))
        if is_sampled:
            self._sampled = {one: pid for one, pid in self._sampled.items() if one in stacks}

    def last(self, number: int = 1) -> Observation:
        """Measurements of the last ``number`` windows together."""
        end = self.windows
        start = end - number
        activity, managers = self._sampler.between(start, end)
        before, after = self._marks[start].held, self._marks[end].held
        return Observation(
            {task.id: IDLE if task.has_ended else activity[task.id] for task in self.tasks},
            managers,
            self._interval(start, end),
            {device: held.share_until(after[device]) for device, held in before.items()},
            reduce(_plus, self._stacks[start:end]),
        )

    def cpu(self, seen: Observation) -> dict[str, TaskCpu]:
        """CPU of every task, by id."""
        ended = {task.id: TaskCpu(0.0) for task in self.tasks if task.has_ended}
        return task_cpu(self.job, seen.interval, seen.activity, _processes(seen)) | ended

    def thread_times(self, seen: Observation) -> dict[str, ThreadTimes]:
        """Times of the threads of every task, by id."""
        subtasks = cpu_by_subtask(self.job, seen.interval, seen.activity, {})
        return thread_times(subtasks, seen.interval.loads)

    def cores_by_device(self, seen: Observation) -> dict[str, float]:
        """TaskManager → core seconds per second of the subtasks of the job."""
        subtasks = cpu_by_subtask(self.job, seen.interval, seen.activity, _processes(seen))
        taken: dict[str, float] = defaultdict(float)
        for one, cpu in subtasks:
            taken[one.device] += cpu.cores
        return dict(taken)

    def _check_same_subtasks(self) -> None:
        """Raise FlinkError if a subtask began again, whose counters may hide it by growing fast."""
        before, after = (
            {one.key: one.thread for one in mark.cluster.subtasks if one.job == self.job}
            for mark in self._marks[-2:]
        )
        if before != after:
            self.rest.running_job(self.job)
            raise restarted(self.job)

    def _mark(self, before: ClusterSnapshot | None) -> _Mark:
        held = {device: throttling(process) for device, process in self.processes.items()}
        return _Mark(snapshot(self.rest, self.job, self.processes, before), held)

    def _interval(self, start: int, end: int) -> ClusterInterval:
        first, second = self._marks[start].cluster, self._marks[end].cluster
        return between(first, second, self.processes, self.generated)


def seconds_running(document: Job) -> float:
    """Seconds since a job began to run, or ran again after a restart.

    >>> seconds_running({"name": "", "state": "RUNNING", "vertices": [], "duration": 5000})
    5.0
    """
    began, now = document.get("timestamps", {}).get("RUNNING", 0), document.get("now", 0)
    if 0 < began <= now:
        return (now - began) / 1000
    return document.get("duration", 0) / 1000


def _processes(seen: Observation) -> dict[str, float]:
    """TaskManager → cores of its process, where Flink reports them."""
    return {
        device: own.rates[PROCESS_CPU] * 1e-9
        for device, own in seen.managers.items()
        if PROCESS_CPU in own.rates
    }


def _plus(first: StacksByTask, second: StacksByTask) -> StacksByTask:
    """Sum of the samples of both."""
    none = StackCounts()
    tasks = dict.fromkeys([*first, *second])
    return {task: first.get(task, none).plus(second.get(task, none)) for task in tasks}


def processed_tuples(
    watch: JobWatch, activity: Mapping[str, Activity], doubts: list[str]
) -> dict[str, float]:
    """Tuples/s that each task processes: those that it reads, or generates if it is a source.

    What is not known of them is added to the doubts.
    """
    document = watch.rest.job(watch.job)
    _refuse_ended(document, watch.tasks, watch.generated)
    running = seconds_running(document)
    answer = {task.id: 0.0 for task in watch.tasks if task.has_ended}
    if answer:
        names = listed([task.name for task in watch.tasks if task.has_ended])
        doubts.append(f"rate and ipt of {names}: counted as 0, because all input was read before")
    for task in watch.tasks:
        if task.has_ended:
            continue
        generated, seen = watch.generated.get(task.id), activity[task.id]
        answer[task.id] = _taken_in(doubts, task, generated, seen)
        answer[task.id] = answer[task.id] or _held_back(doubts, task, generated, seen, running)
    return answer


def _refuse_ended(document: Job, tasks: Sequence[FlinkTask], sources: Container[str]) -> None:
    """Raise FlinkError if a source has ended meanwhile, or all have.

    The measured rate of one that has ended meanwhile is no longer valid.
    """
    ended = {row["id"] for row in document["vertices"] if row.get("status") == FINISHED}
    own = [task for task in tasks if task.id in sources]
    meanwhile = [task for task in own if task.id in ended and not task.has_ended]
    if own and all(task.id in ended for task in own):
        raise FlinkError(
            f"source {quoted(own[0].name)} has ended; profile the job while all sources run"
        )
    if meanwhile:
        raise FlinkError(
            f"source {quoted(meanwhile[0].name)} has ended while the job was measured; measure it "
            "again"
        )


def _taken_in(doubts: list[str], task: FlinkTask, generated: str | None, seen: Activity) -> float:
    """Tuples/s that a task processes."""
    if generated is None:
        return seen.records_in
    if [sent_by(one) for one in task.operators].count(generated) == 1 and generated in seen.rates:
        return seen.rates[generated]
    if len(task.operators) > 1:
        doubts.append(
            f"rate of {task.name}: that of the tuples that leave the chain, because Flink does not "
            "report how many its first operator emits; rates that are given for it, such as "
            "--rate, must be those, too"
        )
    return seen.records_out


def _held_back(
    doubts: list[str], task: FlinkTask, generated: str | None, seen: Activity, running: float
) -> float:
    """Mean tuples/s since the last start, for a source that was silent during the measurement.

    Its counters begin at 0 whenever the job restarts.
    """
    sent = seen.totals.get(generated or "", seen.totals.get("numRecordsOut", 0.0))
    if generated is None or not sent or not running:
        return 0.0
    doubts.append(
        f"rate of {task.name}: it sent nothing during the measurement, because of watermark "
        f"alignment or missing input; {digits(sent / running, 3)} tuples/s is its mean since the "
        "job's last start, and its CPU is unknown; profile for longer"
    )
    return sent / running
