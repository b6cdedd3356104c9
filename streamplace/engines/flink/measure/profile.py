"""Profiling: rates, CPU, threads and placement of the tasks of a running job, with doubts."""

import time
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from streamplace.engines.flink.cpu.task_cpu import ClusterInterval, RunningSubtask, TaskCpu
from streamplace.engines.flink.cpu.threads import (
    COMPILERS,
    cores_by_kind,
    java_itself,
    java_threads,
    processes_of,
    python_workers,
    share_of_others,
    spent_between,
)
from streamplace.engines.flink.measure.fit import Observation, Observed, constant_cores
from streamplace.engines.flink.measure.job_windows import JobWindows, LoadWindow, ThreadTimes
from streamplace.engines.flink.measure.measurement import Shares, key_shares
from streamplace.engines.flink.measure.present import Present, present_of
from streamplace.engines.flink.measure.sampling import Activity, sent_by
from streamplace.engines.flink.measure.sources import SourceFlow, SubtaskFlow, flow_of, together
from streamplace.engines.flink.measure.streams import (
    NETWORK,
    SendingCost,
    counted_for,
    sending_cost,
)
from streamplace.engines.flink.rest.answers import Job
from streamplace.engines.flink.rest.client import FINISHED, FlinkError, NoAnswer, Rest
from streamplace.engines.flink.rest.plan import Edge, FlinkTask, plan_with_loops, sources_of
from streamplace.engines.flink.rest.settings import BufferSettings
from streamplace.engines.flink.rest.tasks import seconds_running
from streamplace.model.messages import listed, quoted, shown
from streamplace.model.units import digits

NEGLIGIBLE = 0.02
"""Compilers are ignored below this part of the CPU limit of TaskManagers.

In a job with a low load they continue for minutes, partly with code that serves the profiler.
"""
MUCH = 0.2
"""Least part of the CPU of operators in threads that name no task that is a doubt."""
UNMEASURED_PYTHON = (
    "ipt of Python operators: without the CPU of their Python processes; to measure it, run the "
    "job with python.execution-mode: thread"
)
"""Doubt about operators that Python processes run."""


@dataclass(frozen=True, slots=True)
class JobProfile:
    """Measurements of a job."""

    name: str
    tasks: Sequence[FlinkTask]
    edges: Sequence[Edge]
    activity: Mapping[str, Activity]
    cpu: Mapping[str, TaskCpu]  # core seconds per second of each task, by id
    # Tuples/s that each task processes: those that it reads, or generates if it is a source.
    tuples: Mapping[str, float]
    doubts: list[str] = field(default_factory=list)  # sentences on missing measurements
    present: Present | None = None  # its placement, and the CPU usage of its TaskManagers
    managers: Mapping[str, Activity] = field(default_factory=dict)  # metrics of its TaskManagers
    # Windows in which the job was measured, including this profile; empty if it is the only one.
    windows: Sequence[LoadWindow] = ()
    drift: float = 0.0  # relative change of its CPU per tuple that may follow; 0 if it is steady
    # Shares of the subtasks in the tuples of operators where they are uneven.
    shares: Shares = field(default_factory=dict)
    # Network buffers of the cluster.
    buffers: BufferSettings = field(default_factory=BufferSettings)
    # Rate and CPU of the subtasks of each task whose threads were all measured, by its id.
    subtasks: Mapping[str, Sequence[Observation]] = field(default_factory=dict)
    # The same by operator, of layouts that were measured before.
    earlier: Observed = field(default_factory=dict)
    # Subtasks of the sources that report their lag, by task.
    lags: Mapping[str, Sequence[SubtaskFlow]] = field(default_factory=dict)
    # Times of the threads of each task, by id; empty if they do not tell what operators wait for.
    times: Mapping[str, ThreadTimes] = field(default_factory=dict)

    @property
    def observed(self) -> dict[str, list[Observation]]:
        """Operator → rates and CPU of its subtasks, in the windows of all layouts.

        Windows of a job that is not steady do not tell parts of its CPU apart, because tuples
        become cheaper while rates grow. The last one stands for them.
        """
        windows = [one.subtasks for one in self.windows] if not self.drift else []
        operators = {
            task.name: [
                *self.earlier.get(task.name, ()),
                *(one for seen in windows or [self.subtasks] for one in seen.get(task.id, ())),
            ]
            for task in self.tasks
        }
        network = () if self.present is None else self.present.network
        return {**operators, NETWORK: [*self.earlier.get(NETWORK, ()), *network]}

    @property
    def sending(self) -> SendingCost | None:
        """Cost of remote tuples in all layouts; None if none of them was measured."""
        return sending_cost(self.observed[NETWORK])

    @property
    def constant(self) -> dict[str, float]:
        """Core seconds per second of each task, by id, that do not depend on the rate."""
        observed = self.observed
        counts = {task: seen.records_out for task, seen in self.activity.items()}
        sent = counted_for(self.tasks, self.edges, counts)
        return {
            task.id: constant_cores(
                self.cpu[task.id].cores,
                self.tuples[task.id],
                sent.get(task.id, 0.0),
                observed.get(task.name, ()),
                task.parallelism,
            )
            for task in self.tasks
        }

    @property
    def sources(self) -> list[FlinkTask]:
        """Tasks without input from others."""
        return sources_of(self.tasks, self.edges)

    @property
    def copied_to(self) -> frozenset[str]:
        """Operators of which every subtask gets each tuple of a broadcast stream."""
        receivers = {edge.target for edge in self.edges if edge.is_broadcast}
        return frozenset(task.name for task in self.tasks if task.id in receivers)

    @property
    def flow(self) -> SourceFlow:
        """What its sources did."""
        return together(map(self._flow, self.sources))

    def _flow(self, source: FlinkTask) -> SourceFlow:
        if source.has_ended:
            return SourceFlow(0.0, keeps_up=True, name=source.name)
        usage = {} if self.present is None else self.present.usage
        devices = set() if self.present is None else {*self.present.devices.get(source.name, ())}
        return flow_of(
            source.name,
            source.operators[0],
            self.activity[source.id],
            source.parallelism,
            rate=self.tuples[source.id],
            full=sorted(one for one in devices & usage.keys() if usage[one].is_full),
            sees_cpu=self.present is None or devices <= usage.keys(),
            subtasks=self.lags.get(source.id, ()),
        )

    @property
    def is_limited(self) -> bool:
        """Whether more may arrive for a source than it emits, as far as can be measured."""
        return self.flow.is_limited

    @property
    def held_back(self) -> frozenset[str]:
        """Sources for which more may arrive than they emit."""
        return frozenset(name for name, one in self.flow.sources.items() if one.is_limited)

    @property
    def used(self) -> dict[str, float]:
        """TaskManager on this machine → cores that it uses."""
        usage = {} if self.present is None else self.present.usage
        return {device: sum(one.kinds.values()) for device, one in usage.items()}

    @property
    def java(self) -> float | None:
        """Cores that Java itself uses in each TaskManager; None if that is not measured."""
        known = self.present is not None and self.present.usage
        return self.present.java if known and self.present is not None else None

    def as_window(self) -> LoadWindow:
        """Return the rates and CPU of this profile as those of one window."""
        compilers = None
        if self.present is not None and self.present.usage:
            kinds = [usage.kinds for usage in self.present.usage.values()]
            whole = sum(sum(one.values()) for one in kinds)
            cores = sum(one.get(COMPILERS, 0.0) for one in kinds)
            limit = sum(usage.share.limit for usage in self.present.usage.values())
            compilers = cores / whole if cores > NEGLIGIBLE * limit else 0.0
        seconds = max((one.seconds for one in self.activity.values()), default=0.0)
        own = {task: one.cores for task, one in self.cpu.items()}
        return LoadWindow(seconds, dict(self.tuples), own, compilers, self.subtasks)

    def check_sources(self) -> None:
        """Raise FlinkError if the rate of a source is unknown, or no source sends."""
        for source in self.sources:
            counts = {sent_by(source.operators[0]), "numRecordsOut"}
            if not counts & self.activity[source.id].rates.keys():
                raise FlinkError(
                    f"Flink does not report how many tuples source {quoted(source.name)} sends, so "
                    "the job cannot be measured; check the metrics of its connector"
                )
        silent = [source.name for source in self.sources if not self.tuples[source.id]]
        if len(silent) == len(self.sources):
            raise FlinkError(
                f"source {listed(silent)} sent nothing; profile while data flows, or watch for "
                "longer (seconds in --settings)"
            )


def profile(rest: Rest, job: str, seconds: float) -> JobProfile:
    """Measure a running job for about ``seconds``.

    CPU time is that of the tasks' threads if their TaskManagers run on this machine, or run the
    agent. Otherwise it is derived from the CPU of TaskManager processes and from Flink's busy time,
    which overestimates cheap operators; the doubts then say so.
    """
    windows = JobWindows(rest, job)
    windows.add(seconds)
    return profile_of(windows)


def profile_of(windows: JobWindows, number: int = 1) -> JobProfile:
    """Profile of a job from the last ``number`` of its windows together."""
    seen, tasks = windows.last(number), windows.tasks
    cpu = windows.cpu(seen)
    own_subtasks = [one for one in seen.interval.subtasks if one.job == windows.job]
    doubts = [
        *uncounted(tasks, windows.edges, seen.activity),
        *unreported(tasks, seen.activity, own_subtasks),
        *doubts_of_cpu(tasks, cpu),
    ]
    tuples = _processed_tuples(windows, seen.activity, doubts)
    doubts.extend([*doubts_of_names(tasks), *doubts_of_jobs(windows.job, seen.interval)])
    lags = windows.lags(seen, tuples)
    times: Mapping[str, ThreadTimes] = {}
    if python_workers(windows.processes[one] for one in windows.devices & windows.processes.keys()):
        doubts.append(UNMEASURED_PYTHON)  # the threads of tasks wait for their processes
    else:
        times = windows.thread_times(seen)
    present = present_of(
        windows.job,
        tasks,
        windows.edges,
        seen.interval,
        seen.activity,
        windows.processes,
    )
    if present is not None:
        doubts.extend(doubts_of_threads({d: one.kinds for d, one in present.usage.items()}))
    return JobProfile(
        windows.name,
        tasks,
        windows.edges,
        seen.activity,
        cpu,
        tuples,
        doubts,
        present,
        seen.managers,
        shares=key_shares(
            tasks,
            windows.edges,
            own_subtasks,
            {source: [one.arrived for one in own] for source, own in lags.items()},
        ),
        buffers=windows.buffers,
        subtasks=windows.subtask_loads(seen, tuples),
        lags=lags,
        times=times,
    )


def _processed_tuples(
    windows: JobWindows, activity: Mapping[str, Activity], doubts: list[str]
) -> dict[str, float]:
    """Tuples/s that each task processes: those that it reads, or generates if it is a source.

    What is not known of them is added to the doubts.
    """
    document = windows.rest.job(windows.job)
    _refuse_ended(document, windows.tasks, windows.generated)
    running = seconds_running(document)
    answer = {task.id: 0.0 for task in windows.tasks if task.has_ended}
    if answer:
        names = listed([task.name for task in windows.tasks if task.has_ended])
        doubts.append(f"rate and ipt of {names}: counted as 0, because all input was read before")
    for task in windows.tasks:
        if task.has_ended:
            continue
        generated, seen = windows.generated.get(task.id), activity[task.id]
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


def uncounted(
    tasks: Sequence[FlinkTask], edges: Sequence[Edge], activity: Mapping[str, Activity]
) -> Iterator[str]:
    """Doubts about counts that Flink does not report."""
    fed, sending = {edge.target for edge in edges}, {edge.source for edge in edges}
    for task in tasks:
        needed = ["numRecordsIn", "numBytesIn"] if task.id in fed else []
        needed += ["numRecordsOut"] if task.id in sending else []
        if missing := [name for name in needed if name not in activity[task.id].rates]:
            yield f"{task.name}: Flink does not report its {' and '.join(missing)}"


def unreported(
    tasks: Sequence[FlinkTask],
    activity: Mapping[str, Activity],
    subtasks: Iterable[RunningSubtask],
) -> Iterator[str]:
    """Doubts about tasks of which Flink tells the metrics of some subtasks only.

    ``subtasks``: those of the job; Flink may have dropped the metrics of those that have ended.
    """
    ended = Counter(one.vertex for one in subtasks if one.has_ended)
    for task in tasks:
        number, expected = activity[task.id].reporting, task.parallelism - ended[task.id]
        if 0 < number < expected:
            yield (
                f"rate and ipt of {task.name}: wrong, because Flink tells the metrics of only "
                f"{number} of {expected} subtasks; check whether the JobManager reaches "
                "metrics.internal.query-service.port of all TaskManagers"
            )


def doubts_of_cpu(tasks: Sequence[FlinkTask], cpu: Mapping[str, TaskCpu]) -> Iterator[str]:
    """Doubts about CPU that was not measured by thread."""
    return (f"ipt of {task.name}: {cpu[task.id].source}" for task in tasks if cpu[task.id].source)


def doubts_of_threads(kinds: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Doubt about CPU of threads that name no task, if it is much.

    ``kinds``: TaskManager → cores of its threads, by kind of work.
    """
    if (share := share_of_others(kinds)) >= MUCH:
        yield (
            f"ipt of all operators: {share:.0%} of the CPU is of threads that name no task, such "
            "as those of clients and state backends, and is divided in proportion to what the "
            "tasks take"
        )


def doubts_of_names(tasks: Sequence[FlinkTask]) -> Iterator[str]:
    """Doubt about operators of SQL that share a name in several tasks."""
    if unsure := [name for task in tasks for name in task.unsure]:
        yield (
            f"{listed(unsure)}: which of the same name is which cannot be told, so a placement may "
            "swap them"
        )


def doubts_of_jobs(job: str, interval: ClusterInterval) -> Iterator[str]:
    """Doubts about the CPU of other jobs while one was measured."""
    for other in sorted(interval.unread):
        yield (
            f"ipt of all operators: job {shown(other)} could not be read, so CPU of it may be "
            "counted for this job"
        )
    far = {one.job for one in interval.subtasks if one.device not in interval.loads} - {job}
    for other in sorted(far):
        yield (
            f"CPU of job {shown(other)} beside this one: counted as 0, because threads of its "
            "TaskManagers cannot be read here"
        )


def background(
    rest: Rest, job: str | None, seconds: float
) -> tuple[float | None, SendingCost | None]:
    """Cores that Java itself uses in each TaskManager, and the cost of remote tuples of a job.

    Either is None if it cannot be measured: the threads must be readable on this machine, and for
    the cost, tuples must cross between TaskManagers, hardly any of other jobs.

    ``job``: A job that must be running; None for the only one that runs, or to measure Java alone.
    """
    if not (processes := processes_of(rest)):
        return None, None
    running = [one for one, state in rest.jobs().items() if state == "RUNNING"]
    if job is not None or len(running) == 1:
        try:
            seen = profile(rest, job or running[0], seconds)
        except NoAnswer:
            raise
        except FlinkError:
            if job is not None:
                raise
        else:
            return seen.java, seen.sending
    first = {device: java_threads(pid) for device, pid in processes.items()}
    if not any(first.values()):
        return None, None
    time.sleep(seconds)
    second = {device: java_threads(pid) for device, pid in processes.items()}
    kinds = {
        device: cores_by_kind(spent_between(first[device], second[device]))
        for device in first
        if first[device] and second[device]
    }
    return java_itself(kinds), None


def cores_taken(rest: Rest, jobs: Iterable[str], seconds: float) -> dict[str, float]:
    """Device → core seconds per second of the tasks of running jobs.

    Each job takes about ``seconds``.
    """
    taken: dict[str, float] = {}
    for job in dict.fromkeys(jobs):
        windows = JobWindows(rest, job, plan=plan_with_loops(rest, job))
        windows.add(seconds)
        for device, cores in windows.cores_by_device(windows.last()).items():
            taken[device] = taken.get(device, 0.0) + cores
    return taken
