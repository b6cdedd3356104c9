"""Profiling: a running job as a stream graph with measured rates, payloads and CPU."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from streamplace.engines.flink.cpu.flight_recorder import why_unsampled
from streamplace.engines.flink.cpu.stack_samples import StackCounts
from streamplace.engines.flink.cpu.task_cpu import TaskCpu
from streamplace.engines.flink.cpu.threads import python_workers
from streamplace.engines.flink.measure.backlogs import BLOCKED, why_behind
from streamplace.engines.flink.measure.carried_tuples import CarriedTuples, carried_by_streams
from streamplace.engines.flink.measure.consistency import Present, consistency, present_of
from streamplace.engines.flink.measure.constant_loads import (
    LoadWindow,
    constant_cores,
    counted_for,
)
from streamplace.engines.flink.measure.job_watch import JobWatch, processed_tuples
from streamplace.engines.flink.measure.key_shares import Shares, even_splits, key_shares
from streamplace.engines.flink.measure.local_cost import (
    LocalCost,
    StreamLoad,
    local_cost,
    with_local_cost,
    work_in_chains,
)
from streamplace.engines.flink.measure.profile_quality import (
    UNMEASURED_PYTHON,
    doubts_of_cpu,
    doubts_of_jobs,
    doubts_of_names,
    doubts_of_sending,
    doubts_of_threads,
    refuse_frozen,
    spread_facts,
    uncounted,
    unreported,
)
from streamplace.engines.flink.measure.sampling import Activity, sent_by
from streamplace.engines.flink.measure.sending_cost import SendingCost, with_message_cost
from streamplace.engines.flink.measure.waiting import (
    ThreadTimes,
    doubts_of_waiting,
    waiting_limit,
)
from streamplace.engines.flink.measure.warm_windows import WARM, Drift
from streamplace.engines.flink.rest.buffer_settings import BufferSettings
from streamplace.engines.flink.rest.client import FlinkError, Rest
from streamplace.engines.flink.rest.plan import Edge, FlinkTask, reuses_objects, sources_of
from streamplace.model.graph import (
    CONSISTENCY,
    CONSISTENCY_ERROR,
    CPU_OF,
    CULPRIT,
    KEEPS_PARALLELISM,
    PROFILE_DRIFT,
    StreamGraph,
)
from streamplace.model.messages import listed, quoted
from streamplace.model.operators import Operator
from streamplace.model.streams import RESCALE, Stream

ALIKE = 0.02
"""Payloads with a smaller relative difference are equal."""
LEAST_RATE = 1e-9
"""Rate of silent sources, relative to that of all: sources of a graph need one above 0."""
COPIED = "each of its subtasks gets every tuple of a broadcast stream"
NOTABLE_CORES = 0.001
"""Loads that do not depend on the rate are mentioned from this number of cores on."""


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
    # Samples of the stacks of each task on this machine, by id.
    stacks: Mapping[str, StackCounts] = field(default_factory=dict)
    reuses_objects: bool = False  # whether chains pass tuples on without copying them
    # Windows in which the job was measured, including this profile; empty if it is the only one.
    windows: Sequence[LoadWindow] = ()
    unsampled: str = ""  # instruction that makes stacks available; empty if they are
    drift: Drift = WARM  # how much may still change, because the job was not warm
    # Shares of the subtasks in the tuples of operators where they are uneven.
    shares: Shares = field(default_factory=dict)
    # Network buffers of the cluster.
    buffers: BufferSettings = field(default_factory=BufferSettings)
    # Times of the threads of each task, by id; empty if they do not tell what operators wait for.
    times: Mapping[str, ThreadTimes] = field(default_factory=dict)

    @property
    def constant(self) -> dict[str, float]:
        """Core seconds per second of each task, by id, that do not depend on the rate.

        Windows of a job that is not warm do not tell them apart: tuples become cheaper there while
        rates grow.
        """
        windows = self.windows if self.drift == WARM else ()
        counts = {task: seen.records_out for task, seen in self.activity.items()}
        sent = counted_for(self.tasks, self.edges, counts)
        return {
            task.id: constant_cores(
                task.id,
                self.cpu[task.id].cores,
                self.tuples[task.id],
                sent.get(task.id, 0.0),
                windows,
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
    def is_limited(self) -> bool:
        """Whether a source is held back, as far as can be measured."""
        return bool(self.held_back)

    @property
    def held_back(self) -> frozenset[str]:
        """Sources that are held back: back-pressured, or behind as `why_behind` says."""
        return frozenset(
            task.name
            for task in self.sources
            if self.activity[task.id].back_pressured > BLOCKED * task.parallelism
            or self.why_behind(task) is not None
        )

    def why_behind(self, source: FlinkTask) -> str | None:
        """Why a source that is not back-pressured emits less than arrives; None if it does not."""
        return why_behind(source, self.activity[source.id], self.tuples[source.id], self.present)

    @property
    def used(self) -> dict[str, float]:
        """TaskManager on this machine → cores that it uses."""
        usage = {} if self.present is None else self.present.usage
        return {device: sum(one.kinds.values()) for device, one in usage.items()}

    def background(self, managers: int) -> tuple[float | None, SendingCost | None]:
        """Cores that Java itself uses in each TaskManager, and the cost of remote tuples.

        Either is None if it is not measured; the second also if the threads of one of the
        ``managers`` TaskManagers of the cluster cannot be read here.
        """
        if self.present is None or not self.present.usage:
            return None, None
        is_complete = len(self.present.usage) == managers
        return self.present.java, self.present.sending if is_complete else None

    def graph(self, mips: float) -> StreamGraph:
        """Stream graph with instructions for cores of ``mips``.

        Its attribute ``unmeasured`` contains the doubts.
        """
        refuse_frozen(self.name, self.tasks, self.activity)
        name_of = {task.id: task.name for task in self.tasks}
        carried = carried_by_streams(self.tasks, self.edges, self.activity, self.buffers.size)
        self.doubts.extend(carried.doubts)
        sizes = carried.payloads
        usual = {self.edges[e].source: size for e, size in reversed(carried.payloads.items())}
        self.check_sources()
        rates = {task.id: self._rate(task) for task in self.sources}
        least = LEAST_RATE * sum(rates.values())
        rates = {task: max(rate, least) for task, rate in rates.items()}
        constant = self.constant
        operators = [
            self._operator(task, usual.get(task.id, 0.0), rates.get(task.id), constant, mips)
            for task in self.tasks
        ]
        streams = [
            Stream(
                name_of[edge.source],
                name_of[edge.target],
                carried.sent.get(e, carried.tuples[e]) / (self.tuples[edge.source] or 1.0),
                _own_payload(sizes.get(e), usual.get(edge.source, 0.0)),
                RESCALE if edge.is_rescaled else edge.partitioning,
            )
            for e, edge in enumerate(self.edges)
        ]
        devices = {} if self.present is None else self.present.devices
        facts: dict[str, str | float] = {"mips": mips}
        facts |= spread_facts(self.tasks, self.sources, self.windows, devices)
        facts |= {
            f"{CPU_OF}{task.name}": self.cpu[task.id].source
            for task in self.tasks
            if self.cpu[task.id].source
        }
        facts |= {KEEPS_PARALLELISM + name: COPIED for name in sorted(self.copied_to)}
        facts |= work_in_chains(self.tasks, self.stacks)
        if self.drift.level > 0:
            facts[PROFILE_DRIFT] = float(f"{self.drift.level:.4g}")
        self.doubts[:] = dict.fromkeys(self.doubts)  # another graph of this profile has the same
        if self.doubts:
            facts["unmeasured"] = "; ".join(self.doubts)
        graph = StreamGraph.of(self.name, operators, streams, facts)
        if self.edges:
            graph = with_local_cost(graph, self._local_cost(carried), mips)
            graph = with_message_cost(graph, mips, self.buffers.timeout)
        return self._checked(graph)

    def _local_cost(self, carried: CarriedTuples) -> LocalCost:
        loads = [
            StreamLoad(tuples, carried.payloads.get(e, 0.0)) for e, tuples in carried.tuples.items()
        ]
        cores = {task: one.cores for task, one in self.cpu.items()}
        return local_cost(
            self.edges,
            loads,
            cores,
            self.stacks,
            reuses_objects=self.reuses_objects,
            unsampled=self.unsampled,
        )

    def _checked(self, graph: StreamGraph) -> StreamGraph:
        """Add attributes with the consistency of the graph and the measured placement."""
        if self.present is None:
            return graph
        tuples = {task.name: self.tuples[task.id] for task in self.tasks}
        agreement = consistency(
            graph, self.present, tuples, is_blocked=self.is_limited, shares=self.shares
        )
        if agreement is None:
            text = "unchecked, for the threads of not all TaskManagers of the job can be read here"
            return replace(graph, attributes={**graph.attributes, CONSISTENCY: text})
        facts: dict[str, str | float] = {CONSISTENCY: str(agreement)}
        if agreement.is_saturated or agreement.error <= 0:
            facts |= {CONSISTENCY_ERROR: agreement.error, CULPRIT: agreement.culprit}
        return replace(graph, attributes={**graph.attributes, **facts})

    def _operator(
        self,
        task: FlinkTask,
        payload: float,
        rate: float | None,
        constant: Mapping[str, float],
        mips: float,
    ) -> Operator:
        tuples, fixed = self.tuples[task.id], constant[task.id]
        if not tuples and rate is None and not task.has_ended:
            self.doubts.append(f"ipt of {task.name}: it received no tuples")
        if fixed >= NOTABLE_CORES:
            self.doubts.append(
                f"{task.name}: {fixed:.2g} of its {self.cpu[task.id].cores:.2g} cores are counted "
                "per second, not per tuple, because it works per checkpoint or per time"
            )
        ipt = (self.cpu[task.id].cores - fixed) / tuples * mips * 1e6 if tuples else 0.0
        return Operator(
            task.name,
            ipt,
            payload,
            rate or 0.0,
            task.parallelism,
            about=task.about,
            max_parallelism=task.max_parallelism if rate is None else even_splits(task),
            slot_sharing_group=task.slot_sharing_group,
            constant=fixed * mips,
            max_rate=0.0 if rate is not None else self._max_rate(task, fixed),
        )

    def _max_rate(self, task: FlinkTask, fixed: float) -> float:
        """Tuples/s that a subtask of a task with inputs reads at most; 0 if nothing limits it.

        An operator that takes all its CPU per second, such as a committer, waits per second, too.

        ``fixed``: cores that do not depend on the rate.
        """
        times = self.times.get(task.id)
        if times is None or fixed >= self.cpu[task.id].cores:
            return 0.0
        limit = waiting_limit(task, self.activity[task.id], times)
        if limit is None:
            return 0.0
        self.doubts.append(f"max_rate of {task.name}: {limit}")
        return limit.rate

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
                "longer with --seconds"
            )

    def _rate(self, source: FlinkTask) -> float:
        blocked = self.activity[source.id].back_pressured / source.parallelism
        if source.has_ended:
            return 0.0
        if not self.tuples[source.id]:
            self.doubts.append(
                f"rate of {source.name}: it has sent nothing, so its rate counts as 0 and its CPU "
                "as constant"
            )
        elif blocked > BLOCKED:
            self.doubts.append(
                f"rate of {source.name}: back-pressured {100 * blocked:.0f} % of the time, so its "
                "actual rate is higher; set it with --rate when placing"
            )
        elif (why := self.why_behind(source)) is not None:
            self.doubts.append(
                f"rate of {source.name}: {why}, so its actual rate may be higher; set it with "
                "--rate when placing"
            )
        return self.tuples[source.id]


def profile(rest: Rest, job: str, seconds: float) -> JobProfile:
    """Measure a running job for about ``seconds``.

    CPU time is that of the tasks' threads if their TaskManagers run on this machine, or run the
    agent. Otherwise it is derived from the CPU of TaskManager processes and from Flink's busy time,
    which overestimates cheap operators; the doubts then say so.
    """
    watch = JobWatch(rest, job)
    watch.watch(seconds)
    return profile_of(watch)


def profile_of(watch: JobWatch, windows: int = 1) -> JobProfile:
    """Profile of a job from the last ``windows`` windows together."""
    seen, tasks = watch.last(windows), watch.tasks
    cpu = watch.cpu(seen)
    own_subtasks = [one for one in seen.interval.subtasks if one.job == watch.job]
    doubts = [
        *uncounted(tasks, watch.edges, seen.activity),
        *unreported(tasks, seen.activity, own_subtasks),
        *doubts_of_cpu(tasks, cpu),
    ]
    tuples = processed_tuples(watch, seen.activity, doubts)
    doubts.extend([*doubts_of_names(tasks), *doubts_of_jobs(seen.interval.unread)])
    times: Mapping[str, ThreadTimes] = {}
    if python_workers(watch.processes[one] for one in watch.devices & watch.processes.keys()):
        doubts.append(UNMEASURED_PYTHON)  # the threads of tasks wait for their processes
    else:
        times = watch.thread_times(seen)
        fed = {edge.target for edge in watch.edges}
        receivers = [task for task in tasks if task.id in fed]
        doubts.extend(doubts_of_waiting(receivers, seen.activity, cpu, times))
    present = present_of(
        watch.job,
        tasks,
        watch.edges,
        seen.interval,
        seen.activity,
        watch.processes,
        seen.throttled,
    )
    if present is not None:
        doubts.extend(doubts_of_threads({d: one.kinds for d, one in present.usage.items()}))
        doubts.extend(doubts_of_sending(present.sending))
    return JobProfile(
        watch.name,
        tasks,
        watch.edges,
        seen.activity,
        cpu,
        tuples,
        doubts,
        present,
        seen.managers,
        seen.stacks,
        bool(seen.stacks) and reuses_objects(watch.rest, watch.job),
        unsampled=why_unsampled(watch.processes),
        shares=key_shares(tasks, watch.edges, own_subtasks),
        buffers=watch.buffers,
        times=times,
    )


def _own_payload(size: float | None, usual: float) -> float | None:
    """Payload of a stream; None if it is that of its source, or unknown."""
    if size is None or abs(size - usual) <= ALIKE * max(size, usual):
        return None
    return size
