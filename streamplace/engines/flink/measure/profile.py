"""Profiling: rates, CPU, threads and placement of the tasks of a running job, with doubts.

A subtask that sleeps, waits for an answer or a disk, or has as many asynchronous requests under way
as it may have, reads no further tuples meanwhile: Flink counts it as busy, and its thread takes no
CPU. Per second, the threads of a task wait

    waiting = busy - CPU - run delay

seconds for something other than CPU. If that is most of what is left of the busy time without the
run delay, the operator is limited by waiting, and a subtask reads at most

    max_rate = tuples/s / (busy - run delay)

whatever CPU it has, because it is busy for one second per second at most. All quantities are sums
over the subtasks. A thread that is woken by input is idle for Flink until it gets a core, so a part
of the run delay may not belong to the busy time. Waiting is then longer, and the limit lower, than
computed: what is found is certain.
"""

import math
import time
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from streamplace.engines.flink.cpu.limits import CpuShare, cpu_shares
from streamplace.engines.flink.cpu.threads import (
    COMPILERS,
    GARBAGE,
    MEASURED,
    SOURCES_OF_CPU,
    UNKNOWN,
    RunningSubtask,
    TaskCpu,
    cores_beside,
    cores_by_kind,
    java_itself,
    java_threads,
    kind_of,
    processes_of,
    python_workers,
    share_of_others,
    spent_between,
)
from streamplace.engines.flink.cpu.threads import NETWORK as NETWORK_THREADS
from streamplace.engines.flink.measure.fit import Observation, Observed, constant_cores
from streamplace.engines.flink.measure.measurement import Shares, key_shares
from streamplace.engines.flink.measure.sampling import Activity, JobInterval, JobWindows, sent_by
from streamplace.engines.flink.measure.sources import SourceFlow, SubtaskFlow, flow_of, together
from streamplace.engines.flink.measure.streams import (
    COMMITTERS,
    NETWORK,
    SendingCost,
    network_loads,
    remote_flows,
    sending_cost,
)
from streamplace.engines.flink.rest.answers import Job
from streamplace.engines.flink.rest.client import FINISHED, FlinkError, NoAnswer, Rest
from streamplace.engines.flink.rest.plan import Edge, FlinkTask, plan_with_loops, sources_of
from streamplace.engines.flink.rest.settings import USUAL_BUFFER_TIMEOUT
from streamplace.model.messages import listed, quoted, shown
from streamplace.model.units import digits

NEGLIGIBLE = 0.02
"""Compilers are ignored below this part of the CPU limit of TaskManagers.

In a job with a low load they continue for minutes, partly with code that serves the profiler.
"""
MUCH = 0.2
"""Least part of the CPU in threads that name no task, or that collect garbage, that is a doubt."""
UNMEASURED_PYTHON = (
    "ipt of Python operators: without the CPU of their Python processes; to measure it, run the "
    "job with python.execution-mode: thread"
)
"""Doubt about operators that Python processes run."""
MOST_OF_OTHERS = 0.1
"""Maximum of remote tuples of other jobs, relative to those of a job, to measure what they cost.

The threads that send and receive serve all jobs, so the CPU for the others would be charged to it.
"""
LEAST_PART = 0.5
"""Minimum part of waiting in the busy time without run delay.

Below it, the CPU alone predicts the limit of a subtask within a factor of two.
"""
LEAST_WAITING = 0.1
"""Minimum of waiting in seconds per second and subtask.

Less may be due to locks and page faults, or to counters and threads that are read at different
times.
"""


class Usage(NamedTuple):
    """CPU that a TaskManager has, and its CPU usage during the measurement."""

    share: CpuShare  # its part of the CPU of the machine
    kinds: Mapping[str, float]  # cores by kind of thread


class Present(NamedTuple):
    """The measured layout."""

    devices: Mapping[str, Sequence[str]]  # operator → TaskManagers of its subtasks, in order
    # Usage by TaskManager; those whose threads cannot be read on this machine are missing.
    usage: Mapping[str, Usage]
    java: float  # cores that Java itself uses in each TaskManager
    # Bytes per second and cores of threads that send and receive, of the TaskManagers that exchange
    # tuples; empty if that is unknown, or if many are of other jobs.
    network: Sequence[Observation] = ()
    # TaskManager → cores of the subtasks of other jobs.
    beside: Mapping[str, float] = MappingProxyType({})


class LoadWindow(NamedTuple):
    """Rates and CPU of the tasks of a job in one window of time, by their ids."""

    seconds: float
    tuples: Mapping[str, float]  # tuples/s that each task processed
    cores: Mapping[str, float]  # core seconds per second of each task
    # Part of the CPU of the TaskManagers on this machine that compilers used; None if there are no
    # such TaskManagers.
    compilers: float | None = None
    # Rate and CPU of the subtasks of each task whose threads were all measured.
    subtasks: Mapping[str, Sequence[Observation]] = MappingProxyType({})


class WaitingLimit(NamedTuple):
    """Limit of an operator that waits for something other than CPU."""

    rate: float  # tuples/s that a subtask reads at most
    part: float  # part of its busy time in which it waits

    def __str__(self) -> str:
        return (
            f"it waits {100 * self.part:.0f} % of its busy time for something other than CPU: a "
            f"subtask reads at most {digits(self.rate, 3)} tuples/s"
        )


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
    # Windows in which the job was measured, including this profile; empty if it is the only one.
    windows: Sequence[LoadWindow] = ()
    drift: float = 0.0  # relative change of its CPU per tuple that may follow; 0 if it is steady
    # Shares of the subtasks in the tuples of operators where they are uneven.
    shares: Shares = field(default_factory=dict)
    # Seconds after which a buffer is sent that is not full; None if only full ones are.
    buffer_timeout: float | None = USUAL_BUFFER_TIMEOUT
    # Rate and CPU of the subtasks of each task whose threads were all measured, by its id.
    subtasks: Mapping[str, Sequence[Observation]] = field(default_factory=dict)
    # The same by operator, of layouts that were measured before.
    earlier: Observed = field(default_factory=dict)
    # Subtasks of the sources that report their lag, by task.
    lags: Mapping[str, Sequence[SubtaskFlow]] = field(default_factory=dict)
    # Tasks that are limited by waiting, as far as is known.
    waiting: Mapping[str, WaitingLimit] = field(default_factory=dict)

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
        """Core seconds per second of each task, by id, that do not depend on the rate.

        All CPU of a committer is, which reads a message or so per checkpoint.
        """
        observed = self.observed
        return {
            task.id: self.cpu[task.id].cores
            if task.operators[0].endswith(COMMITTERS)
            else constant_cores(
                self.cpu[task.id].cores,
                self.tuples[task.id],
                observed[task.name],
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
            full=sorted(one for one in devices & usage.keys() if usage[one].share.is_full),
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
        return self.present.java if self.present is not None and self.present.usage else None

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

    CPU time is that of the tasks' threads if their TaskManagers run on this machine. Otherwise it
    is derived from the CPU of TaskManager processes and from Flink's busy time, which overestimates
    cheap operators; the doubts then say so.
    """
    windows = JobWindows(rest, job)
    windows.add(seconds)
    return profile_of(windows)


def profile_of(windows: JobWindows, number: int = 1) -> JobProfile:
    """Profile of a job from the last ``number`` of its windows together."""
    seen, tasks, edges = windows.last(number), windows.tasks, windows.edges
    own = [one for one, _ in seen.subtasks]
    cpu = {task.id: _task_cpu(seen, task) for task in tasks}
    doubts = [
        *_uncounted(tasks, edges, seen.activity),
        *_unreported(tasks, seen.activity, own),
        *(f"ipt of {task.name}: {cpu[task.id].source}" for task in tasks if cpu[task.id].source),
    ]
    _refuse_ended(windows.rest.job(windows.job), tasks, windows.generated)
    tuples = _processed_tuples(windows, seen.activity, doubts)
    doubts += [*_doubts_of_names(tasks), *_doubts_of_jobs(windows.job, seen)]
    lags = _subtask_flows(seen, tuples)
    waiting: Mapping[str, WaitingLimit] = {}
    if python_workers(windows.processes[one] for one in windows.devices & windows.processes.keys()):
        doubts.append(UNMEASURED_PYTHON)  # the threads of tasks wait for their processes
    else:
        waiting = waiting_limits(tasks, seen)
    present = present_of(windows.job, tasks, edges, seen, windows.processes)
    if present is not None:
        doubts += _doubts_of_threads(present.usage)
    arrived = {source: [one.arrived for one in flows] for source, flows in lags.items()}
    return JobProfile(
        windows.name,
        tasks,
        edges,
        seen.activity,
        cpu,
        tuples,
        doubts,
        present,
        shares=key_shares(tasks, edges, own, arrived),
        buffer_timeout=windows.buffer_timeout,
        subtasks=_observations(windows, seen, tuples),
        lags=lags,
        waiting=waiting,
    )


def _task_cpu(seen: JobInterval, task: FlinkTask) -> TaskCpu:
    """CPU of a task, from the worst of the sources of its subtasks."""
    own = [cpu for one, cpu in seen.subtasks if one.vertex == task.id and not task.has_ended]
    sources = [cpu.source for cpu in own]
    nothing = MEASURED if task.has_ended else UNKNOWN
    worst = max(sources, key=SOURCES_OF_CPU.index, default=nothing)
    return TaskCpu(sum((cpu.cores for cpu in own), 0.0), worst)


def _processed_tuples(
    windows: JobWindows, activity: Mapping[str, Activity], doubts: list[str]
) -> dict[str, float]:
    """Tuples/s that each task processes: those that it reads, or generates if it is a source.

    What is not known of them is added to the doubts.
    """
    if ended := [task.name for task in windows.tasks if task.has_ended]:
        doubts.append(
            f"rate and ipt of {listed(ended)}: counted as 0, because all input was read before"
        )
    answer = {}
    for task in windows.tasks:
        generated, seen = windows.generated.get(task.id), activity[task.id]
        if generated is None:
            answer[task.id] = seen.records_in
        elif list(map(sent_by, task.operators)).count(generated) == 1 and generated in seen.rates:
            answer[task.id] = seen.rates[generated]
        else:
            answer[task.id] = seen.records_out
            if len(task.operators) > 1 and not task.has_ended:
                doubts.append(
                    f"rate of {task.name}: that of the tuples that leave the chain, because Flink "
                    "does not report how many its first operator emits; rates that are given for "
                    "it, such as --rate, must be those, too"
                )
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


def _observations(
    windows: JobWindows, seen: JobInterval, tuples: Mapping[str, float]
) -> dict[str, list[Observation]]:
    """Rate and CPU of the subtasks of each task whose threads were all measured, by its id.

    ``tuples``: tuples/s that each task processed, which its subtasks share as they counted.
    """
    parts: dict[str, list[tuple[float, TaskCpu]]] = defaultdict(list)
    for one, cpu in seen.subtasks:
        parts[one.vertex].append((one.wrote if one.vertex in windows.generated else one.read, cpu))
    loads = {}
    for task, own in parts.items():
        counted = sum(count for count, _ in own)
        if all(cpu.source == MEASURED for _, cpu in own) and counted > 0:
            loads[task] = [
                Observation(tuples.get(task, 0.0) * count / counted, cpu.cores, cpu.wakes)
                for count, cpu in own
            ]
    return loads


def _subtask_flows(seen: JobInterval, tuples: Mapping[str, float]) -> dict[str, list[SubtaskFlow]]:
    """Subtasks of the sources that report their lag, by task.

    ``tuples``: tuples/s that each source emits, which its subtasks share as they counted.
    """
    answer = {}
    for source, rows in seen.lags.items():
        wrote = [
            one.wrote for one in sorted(one for one, _ in seen.subtasks) if one.vertex == source
        ]
        whole = sum(sent for sent, *_ in rows)
        if len(wrote) == len(rows) and sum(wrote) > 0 and whole > 0:  # NaN is not, either
            # what leaves the chain of a source may be less, or more, than what it has read
            rate = tuples[source] / sum(wrote)
            seconds = seen.activity[source].seconds
            answer[source] = [
                SubtaskFlow(rate * own, rate * seconds * sent + last, (first, last), seconds)
                for own, (sent, first, last) in zip(wrote, rows, strict=True)
            ]
    return answer


def waiting_limits(tasks: Sequence[FlinkTask], seen: JobInterval) -> dict[str, WaitingLimit]:
    """Limits of the tasks that read and are limited by waiting, as far as is known, by id.

    Garbage collection stops threads for no longer than the threads that collect run, or wait for a
    core.
    """
    pauses = {
        device: sum(one.cores + one.delay for one in own if kind_of(one.name) == GARBAGE)
        for device, own in seen.cluster.loads.items()
    }
    limits = {}
    for task in tasks:
        activity = seen.activity[task.id]
        own = [(one, cpu.thread) for one, cpu in seen.subtasks if one.vertex == task.id]
        threads = [thread for _, thread in own if thread is not None]
        if activity.busy is None or activity.records_in <= 0 or not 0 < len(own) == len(threads):
            continue
        able = activity.busy - sum(thread.delay for thread in threads)
        waiting = able - sum(thread.cores for thread in threads)
        paused = sum(pauses.get(one.device, math.nan) for one, _ in own)
        if waiting - paused >= max(LEAST_PART * able, LEAST_WAITING * task.parallelism):
            rate = float(f"{activity.records_in / able:.3g}")
            limits[task.id] = WaitingLimit(rate, waiting / activity.busy)
    return limits


def present_of(
    job: str,
    tasks: Sequence[FlinkTask],
    edges: Sequence[Edge],
    seen: JobInterval,
    processes: Mapping[str, int],
) -> Present | None:
    """Layout of a job, and CPU usage of its TaskManagers; None if the layout is unknown."""
    own = sorted(one for one in seen.cluster.subtasks if one.job == job)
    devices = {task.id: [one.device for one in own if one.vertex == task.id] for task in tasks}
    if any(len(devices[task.id]) != task.parallelism for task in tasks):
        return None
    kinds = {device: cores_by_kind(loads) for device, loads in seen.cluster.loads.items()}
    shares = cpu_shares(processes, {d: sum(one.values()) for d, one in kinds.items()})
    flows = remote_flows(tasks, edges, seen.activity, devices)
    crossing = sum(flow.tuples for flow in flows.values()) / 2  # each counts at both ends
    is_own = _read_by_others(job, seen) <= MOST_OF_OTHERS * crossing
    if not is_own or not flows.keys() <= kinds.keys():
        flows = {}  # the network threads serve all jobs
    network = {device: one.get(NETWORK_THREADS, 0.0) for device, one in kinds.items()}
    return Present(
        {task.name: devices[task.id] for task in tasks},
        {device: Usage(shares[device], one) for device, one in kinds.items()},
        java_itself(kinds.values()),
        network_loads(network, flows, {device for device in kinds if shares[device].is_full}),
        cores_beside(job, seen.cluster),
    )


def _read_by_others(job: str, seen: JobInterval) -> float:
    """Tuples/s that other jobs may exchange between TaskManagers at most; NaN if unknown."""
    own: dict[str, list[RunningSubtask]] = defaultdict(list)
    for one in seen.cluster.subtasks:
        if one.job != job:
            own[one.job].append(one)
    spread = [jobs for jobs in own.values() if len({one.device for one in jobs}) > 1]
    seconds = max((one.seconds for one in seen.activity.values()), default=0.0)
    return sum(one.read for jobs in spread for one in jobs) / (seconds or 1.0)


def _uncounted(
    tasks: Sequence[FlinkTask], edges: Sequence[Edge], activity: Mapping[str, Activity]
) -> Iterator[str]:
    """Doubts about counts that Flink does not report."""
    fed, sending = {edge.target for edge in edges}, {edge.source for edge in edges}
    for task in tasks:
        needed = ["numRecordsIn", "numBytesIn"] if task.id in fed else []
        needed += ["numRecordsOut"] if task.id in sending else []
        if missing := [name for name in needed if name not in activity[task.id].rates]:
            yield f"{task.name}: Flink does not report its {' and '.join(missing)}"


def _unreported(
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


def _doubts_of_threads(usage: Mapping[str, Usage]) -> Iterator[str]:
    """Doubts about CPU of threads that name no task, and of garbage collection, if it is much."""
    if (share := share_of_others([one.kinds for one in usage.values()])) >= MUCH:
        yield (
            f"ipt of all operators: {share:.0%} of the CPU is of threads that name no task, such "
            "as those of clients and state backends, and is divided in proportion to what the "
            "tasks take"
        )
    for device, one in usage.items():
        share = one.kinds.get(GARBAGE, 0.0) / max(sum(one.kinds.values()), 1e-9)
        if share >= MUCH:
            yield (
                f"ipt of all operators: garbage collection takes {share:.0%} of the CPU of "
                f"{quoted(device)}; give it more memory (taskmanager.memory.task.heap.size)"
            )


def _doubts_of_names(tasks: Sequence[FlinkTask]) -> Iterator[str]:
    """Doubt about operators of SQL that share a name in several tasks."""
    if unsure := [name for task in tasks for name in task.unsure]:
        yield (
            f"{listed(unsure)}: which of the same name is which cannot be told, so a placement may "
            "swap them"
        )


def _doubts_of_jobs(job: str, seen: JobInterval) -> Iterator[str]:
    """Doubts about the CPU of other jobs while one was measured."""
    far = {one.job for one in seen.cluster.subtasks if one.device not in seen.cluster.loads}
    for other in sorted(far - {job}):
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
        except FlinkError as error:
            if job is not None or isinstance(error, NoAnswer):
                raise
        else:
            return seen.java, seen.sending
    first = {device: java_threads(pid) for device, pid in processes.items()}
    if not any(first.values()):
        return None, None
    time.sleep(seconds)
    kinds = [
        cores_by_kind(spent_between(threads, again))
        for device, threads in first.items()
        if threads and (again := java_threads(processes[device]))
    ]
    return java_itself(kinds), None


def cores_taken(rest: Rest, jobs: Iterable[str], seconds: float) -> dict[str, float]:
    """Device → core seconds per second of the tasks of running jobs.

    Each job takes about ``seconds``.
    """
    taken: dict[str, float] = defaultdict(float)
    for job in dict.fromkeys(jobs):
        windows = JobWindows(rest, job, plan=plan_with_loops(rest, job))
        windows.add(seconds)
        for one, cpu in windows.last().subtasks:
            taken[one.device] += cpu.cores
    return dict(taken)
