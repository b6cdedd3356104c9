"""The present layout of a measured job: its devices, their CPU, and the model's error there."""

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from streamplace.engines.flink.cpu.limits import FULL, CpuShare, cpu_shares
from streamplace.engines.flink.cpu.task_cpu import ClusterInterval, RunningSubtask, cores_beside
from streamplace.engines.flink.cpu.threads import COMPILERS, NETWORK, cores_by_kind, java_itself
from streamplace.engines.flink.measure.cluster import FRAMING, HEADROOM, MOST_RESERVED, slowness
from streamplace.engines.flink.measure.fit import Observation
from streamplace.engines.flink.measure.measurement import Shares, placed
from streamplace.engines.flink.measure.sampling import Activity
from streamplace.engines.flink.measure.streams import (
    SendingCost,
    network_loads,
    remote_flows,
)
from streamplace.engines.flink.rest.plan import Edge, FlinkTask
from streamplace.io.clusters import cluster_from_tables
from streamplace.model.cluster import Cluster
from streamplace.model.graph import StreamGraph

LOG = logging.getLogger(__name__)
WIDE = 1e12
"""Bandwidth in bps if it is unknown, so that only CPU is checked."""
ALIKE = 0.05
"""Rates with a smaller relative difference agree."""
MOST_ERROR = 1e6
"""Error if nothing was measured, and maximum of every error."""
MOST_OF_OTHERS = 0.1
"""Maximum of remote tuples of other jobs, relative to those of a job, to measure what they cost.

The threads that send and receive serve all jobs, so the CPU for the others would be charged to it.
"""


class Usage(NamedTuple):
    """CPU that a TaskManager has, and its CPU usage during the measurement."""

    share: CpuShare  # its part of the CPU of the machine
    kinds: Mapping[str, float]  # cores by kind of thread

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


class Agreement(NamedTuple):
    """Predicted and measured rate of one layout, in tuples/s of the sources."""

    predicted: float
    measured: float
    # Whether the layout carried as much as it could; if not, it may carry more.
    is_saturated: bool

    @property
    def error(self) -> float:
        """Predicted over measured, less 1; at most `MOST_ERROR`."""
        if self.predicted >= (1 + MOST_ERROR) * self.measured:
            return MOST_ERROR
        return self.predicted / self.measured - 1

    @property
    def contradicts(self) -> bool:
        """Whether the measured rate says something of the error: more may be carried if not."""
        return self.is_saturated or self.error <= 0

    def __str__(self) -> str:
        if not self.is_saturated and self.error > ALIKE:
            return (
                f"the job was not saturated: {self.measured:,.0f} tuples/s were measured while "
                f"CPU was left, and the model predicts at most {self.predicted:,.0f} for the "
                "present placement; measure at a higher rate to check the model"
            )
        left = "" if self.is_saturated else " while there was CPU left"
        return (
            f"for the present placement the model predicts {self.predicted:,.0f} tuples/s, and "
            f"{self.measured:,.0f} were measured{left} ({self.error:+.0%})"
        )


def agreement(
    graph: StreamGraph,
    present: Present,
    sending: SendingCost | None,
    *,
    is_limited: bool,
    sustained: float | None = None,
    shares: Shares | None = None,
) -> Agreement | None:
    """Compare the model's prediction for a layout with the measured rate.

    It is None if the threads of a TaskManager of the job cannot be read here, or it uses no CPU.

    Parameters
    ----------
    graph
        Graph of the profile.
    sending
        Cost of remote tuples; None if there are none.
    is_limited
        Whether a source was held back.
    sustained
        Rate that the sources were measured to sustain, if it is known apart from that which they
        emit: predictions are of the rate at which no subtask falls behind.
    shares
        Shares of the subtasks in the tuples of operators where they are uneven.
    """
    from streamsim import bottleneck, resource_loads

    needed = {device for devices in present.devices.values() for device in devices}
    if not needed <= present.usage.keys() or not graph.source_rate:
        return None
    cluster = _cluster(present, sending, float(graph.attributes["mips"]))
    job = placed(graph, cluster, present.devices, shares)
    load = bottleneck(resource_loads(job.problem.instance, job.placement)).load
    if not load:
        return None
    is_full = any(one.is_full for device, one in present.usage.items() if device in needed)
    found = Agreement(
        graph.source_rate / load, sustained or graph.source_rate, is_limited or is_full
    )
    loads = {device: round(one.load, 3) for device, one in present.usage.items()}
    LOG.debug("%s; loads of its TaskManagers: %s", found, loads)
    return found


def _cluster(present: Present, sending: SendingCost | None, mips: float) -> Cluster:
    """Measured devices; the CPU of Java, its compilers and other jobs is reserved.

    Operators could not use it.
    """
    cost = sending or SendingCost(0.0, 0.0)
    devices = []
    for name, usage in present.usage.items():
        cores, share = usage.share.whole_cores
        besides = present.java + usage.kinds.get(COMPILERS, 0.0) + present.beside.get(name, 0.0)
        reserved = min(besides + cost.fixed, MOST_RESERVED * usage.share.limit) * mips
        devices.append({"name": name, "mips": share * mips, "cores": cores, "reserved": reserved})
    cost = cost.slower(slowness(one.share for one in present.usage.values()))
    return cluster_from_tables(
        {
            "bandwidth": WIDE,
            "framing": FRAMING,
            "headroom": HEADROOM,
            "overhead": cost.per_tuple,
            "overhead_per_byte": cost.per_byte,
            "devices": devices,
        }
    )


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
) -> Present | None:
    """Layout of a job, and CPU usage of its TaskManagers; None if the layout is unknown."""
    own = sorted(one for one in interval.subtasks if one.job == job)
    devices = {task.id: [one.device for one in own if one.vertex == task.id] for task in tasks}
    if any(len(devices[task.id]) != task.parallelism for task in tasks):
        return None
    kinds = {device: cores_by_kind(loads) for device, loads in interval.loads.items()}
    shares = cpu_shares(processes, {d: sum(one.values()) for d, one in kinds.items()})
    usage = {d: Usage(shares[d], one) for d, one in kinds.items()}
    flows = remote_flows(tasks, edges, activity, devices)
    crossing = sum(flow.tuples for flow in flows.values()) / 2  # each counts at both ends
    is_own = _read_by_others(job, interval.subtasks, activity) <= MOST_OF_OTHERS * crossing
    if not is_own or not flows.keys() <= kinds.keys():
        flows = {}  # the network threads serve all jobs
    network = {device: one.get(NETWORK, 0.0) for device, one in kinds.items()}
    full = {device for device, one in usage.items() if one.is_full}
    return Present(
        {task.name: devices[task.id] for task in tasks},
        usage,
        java_itself(kinds),
        network_loads(network, flows, full),
        cores_beside(job, interval),
    )
