"""Consistency of a profile: the model's prediction for the measured placement against its rate."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from streamplace.engines.flink.cpu.helpers import (
    COMPILERS,
    GARBAGE,
    JAVA,
    NETWORK,
    OTHERS,
    cores_by_kind,
    java_itself,
)
from streamplace.engines.flink.cpu.limits import FULL, CpuShare, cpu_shares
from streamplace.engines.flink.cpu.task_cpu import ClusterInterval, RunningSubtask, cores_beside
from streamplace.engines.flink.measure.cluster import FRAMING, HEADROOM, MOST_RESERVED, slowness
from streamplace.engines.flink.measure.key_shares import Shares
from streamplace.engines.flink.measure.placed_subtasks import placed
from streamplace.engines.flink.measure.sampling import Activity
from streamplace.engines.flink.measure.sending_cost import SendingCost, remote_flows, sending_cost
from streamplace.engines.flink.rest.plan import Edge, FlinkTask
from streamplace.io.clusters import cluster_from_tables
from streamplace.model.cluster import Cluster
from streamplace.model.graph import StreamGraph
from streamplace.model.messages import quoted

WIDE = 1e12
"""Bandwidth in bps if it is unknown, so that only CPU is checked."""
ALIKE = 0.05
"""Rates with a smaller relative difference agree."""
LEAST_RATE = 60.0
"""Minimum input of an operator, in tuples/s, for a reliable rate."""
_NOT_OPERATORS = (NETWORK, GARBAGE, COMPILERS, JAVA, OTHERS)
MOST_ERROR = 1e6
"""Error if nothing was measured, and maximum of every error."""
MOST_OF_OTHERS = 0.1
"""Maximum of remote tuples of other jobs, relative to those of a job, to measure what they cost.

The threads that send and receive serve all jobs, so the CPU for the others would be charged to it.
"""
NOTABLE = 0.03
"""Minimum part of a TaskManager's CPU that is mentioned as a cause."""


class Usage(NamedTuple):
    """CPU that a TaskManager has, and its CPU usage during the measurement."""

    share: CpuShare  # its part of the CPU of the machine
    kinds: Mapping[str, float]  # cores by kind of thread
    throttled: float  # part of the periods of its quota in which it was throttled

    @property
    def available(self) -> float:
        """Cores that it has, together with those that share them."""
        return self.share.available

    @property
    def load(self) -> float:
        """Part of its CPU that was used, by all that share it."""
        used = sum(self.kinds.values()) if self.share.pool is None else self.share.used
        return used / self.available

    @property
    def is_full(self) -> bool:
        """Whether it had no CPU left."""
        return self.load >= FULL


class Present(NamedTuple):
    """The measured placement."""

    devices: Mapping[str, Sequence[str]]  # operator → TaskManagers of its subtasks, in order
    # Usage by TaskManager; those whose threads cannot be read on this machine are missing.
    usage: Mapping[str, Usage]
    java: float  # cores that Java itself uses in each TaskManager
    # Cost of remote tuples; None if there were none, too few to measure it, or many of other jobs.
    sending: SendingCost | None = None
    # TaskManager → cores of the subtasks of other jobs.
    beside: Mapping[str, float] = MappingProxyType({})


class Consistency(NamedTuple):
    """Predicted and measured rate of one placement, in tuples/s of the sources."""

    predicted: float
    measured: float
    # Whether the placement carried as much as it could; if not, it may carry more.
    is_saturated: bool
    causes: tuple[str, ...] = ()  # sentences on likely causes of the difference
    culprit: str = ""  # operator whose measured CPU is the likely cause of the difference

    @property
    def error(self) -> float:
        """Predicted over measured, less 1; at most `MOST_ERROR`."""
        if self.predicted >= (1 + MOST_ERROR) * self.measured:
            return MOST_ERROR
        return self.predicted / self.measured - 1

    @property
    def agrees(self) -> bool:
        """Whether the measured rate does not contradict the prediction."""
        return abs(self.error) <= ALIKE or (not self.is_saturated and self.error > 0)

    def __str__(self) -> str:
        if not self.is_saturated and self.error > ALIKE:
            return (
                f"the job was not saturated: {self.measured:,.0f} tuples/s were measured while "
                f"CPU was left, and the model predicts at most {self.predicted:,.0f} for the "
                "present placement; measure at a higher rate to check the model"
            )
        left = "" if self.is_saturated else " while there was CPU left"
        text = (
            f"for the present placement the model predicts {self.predicted:,.0f} tuples/s, and "
            f"{self.measured:,.0f} were measured{left} ({self.error:+.0%})"
        )
        return text if self.agrees or not self.causes else f"{text}: {'; '.join(self.causes)}"


def consistency(
    graph: StreamGraph,
    present: Present,
    tuples: Mapping[str, float],
    *,
    is_blocked: bool,
    shares: Shares | None = None,
) -> Consistency | None:
    """Compare the model's prediction for a placement with the measured rate.

    ``graph``: graph of the profile.
    ``tuples``: operator → tuples/s that it received, or generated.
    ``is_blocked``: whether a source was back-pressured.
    ``shares``: shares of the subtasks in the tuples of operators where they are uneven.

    It is None if the threads of a TaskManager of the job cannot be read here, or it uses no CPU.
    """
    from streamsim import bottleneck, resource_loads

    needed = {device for devices in present.devices.values() for device in devices}
    if not needed <= present.usage.keys() or not graph.source_rate:
        return None
    cluster = _cluster(present, float(graph.attributes["mips"]))
    job = placed(graph, cluster, present.devices, shares)
    load = bottleneck(resource_loads(job.problem.instance, job.placement)).load
    if not load:
        return None
    reached = _reached(graph, tuples)
    slowest, fastest = min(reached, default=1.0), max(reached, default=1.0)
    usage = {device: one for device, one in present.usage.items() if device in needed}
    return Consistency(
        graph.source_rate / load,
        graph.source_rate * slowest,
        is_blocked or any(one.is_full for one in usage.values()),
        (*_unsteady(slowest, fastest), *_causes(usage)),
        _culprit(graph, tuples),
    )


def _culprit(graph: StreamGraph, tuples: Mapping[str, float]) -> str:
    """Operator with the largest error of its modelled CPU, else the most expensive one.

    The model derives the input of every operator from the source rates by selectivities; the
    measured input may be larger or smaller. Small errors are ignored.
    """
    names, each = graph.operators.name, graph.charged_ipt
    constant = 1e6 * graph.operators.constant
    charged = each * graph.input_rate + constant
    taken = each * np.array([tuples[name] for name in names], np.float64) + constant
    wrong = np.abs(charged - taken)
    figures = wrong if wrong.max() > NOTABLE * taken.sum() else charged
    return names[int(figures.argmax())]


def _reached(graph: StreamGraph, tuples: Mapping[str, float]) -> list[float]:
    """Measured input of operators, divided by their steady-state input at the source rates."""
    expected = zip(graph.operators.name, graph.input_rate.tolist(), strict=True)
    return [tuples[name] / rate for name, rate in expected if rate >= LEAST_RATE]


def _cluster(present: Present, mips: float) -> Cluster:
    """Measured devices; the CPU of compilers and other jobs is reserved.

    Operators could not use it.
    """
    devices = []
    for name, usage in present.usage.items():
        cores, share = usage.share.whole_cores
        besides = present.java + usage.kinds.get(COMPILERS, 0.0) + present.beside.get(name, 0.0)
        reserved = min(besides, MOST_RESERVED * usage.share.limit) * mips
        devices.append({"name": name, "mips": share * mips, "cores": cores, "reserved": reserved})
    factor = slowness(one.share for one in present.usage.values())
    sending = (present.sending or SendingCost(0.0, 0.0)).slower(factor)
    return cluster_from_tables(
        {
            "bandwidth": WIDE,
            "framing": FRAMING,
            "headroom": HEADROOM,
            "overhead": sending.per_tuple,
            "overhead_per_byte": sending.per_byte,
            "devices": devices,
        }
    )


def _unsteady(slowest: float, fastest: float) -> list[str]:
    if fastest <= (1 + 2 * ALIKE) * slowest:
        return []
    if slowest <= 0:
        return ["an operator took in nothing of what was sent to it; watch for longer"]
    return [
        f"queues filled or drained, operators differ by {fastest / slowest - 1:.0%}; watch for "
        "longer"
    ]


def _causes(usage: Mapping[str, Usage]) -> list[str]:
    """Sentences on the fullest TaskManager, with the CPU that the model leaves out."""
    device, top = max(usage.items(), key=lambda pair: pair[1].load)
    sharers = "" if top.share.pool is None else " and the TaskManagers that share it"
    text = f"{quoted(device)}{sharers} took {top.load:.0%} of its CPU"
    parts = {kind: top.kinds.get(kind, 0.0) / top.available for kind in _NOT_OPERATORS}
    shares = [f"{kind} {part:.0%}" for kind, part in parts.items() if part >= NOTABLE]
    causes = [f"{text}, of which {', '.join(shares)}" if shares else text]
    if top.throttled >= NOTABLE:
        causes.append(f"its quota throttled it in {top.throttled:.0%} of its periods")
    if top.load < FULL:
        causes.append("so CPU is not the limit, or the load comes in bursts")
    return causes


def _read_by_others(
    job: str, subtasks: Sequence[RunningSubtask], activity: Mapping[str, Activity]
) -> float:
    """Tuples/s that other jobs may exchange between TaskManagers at most; NaN if unknown."""
    own: dict[str, list[RunningSubtask]] = defaultdict(list)
    for one in subtasks:
        if one.job != job:
            own[one.job].append(one)
    spread = [jobs for jobs in own.values() if len({one.device for one in jobs}) > 1]
    seconds = max((seen.seconds for seen in activity.values()), default=0.0)
    return sum(one.read for jobs in spread for one in jobs) / (seconds or 1.0)


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

    ``throttled``: TaskManager → part of the periods of its quota in which it was throttled.
    """
    own = sorted(one for one in interval.subtasks if one.job == job)
    devices = {task.id: [one.device for one in own if one.vertex == task.id] for task in tasks}
    if any(len(devices[task.id]) != task.parallelism for task in tasks):
        return None
    kinds = {device: cores_by_kind(loads) for device, loads in interval.loads.items()}
    shares = cpu_shares(processes, {d: sum(one.values()) for d, one in kinds.items()})
    usage = {d: Usage(shares[d], one, throttled[d]) for d, one in kinds.items()}
    flows = remote_flows(tasks, edges, activity, devices)
    crossing = sum(flow.tuples for flow in flows.values()) / 2  # each counts at both ends
    if not _read_by_others(job, interval.subtasks, activity) <= MOST_OF_OTHERS * crossing:
        flows = {}  # the network threads serve all jobs
    network = {device: one.get(NETWORK, 0.0) for device, one in kinds.items()}
    full = {device for device, one in usage.items() if one.is_full}
    return Present(
        {task.name: devices[task.id] for task in tasks},
        usage,
        java_itself(kinds),
        sending_cost(network, flows, full),
        cores_beside(job, interval),
    )
