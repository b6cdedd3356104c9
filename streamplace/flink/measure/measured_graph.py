"""A profile as a stream graph: operators, streams, and facts on how well they were measured."""

import math
from dataclasses import replace
from statistics import mean, stdev
from typing import NamedTuple

from streamplace.flink.constants import MIN_BUSY
from streamplace.flink.cpu.charging import COMPILERS
from streamplace.flink.cpu.limits import reserved_cores
from streamplace.flink.measure.cluster import FRAMING, capacity, slowness
from streamplace.flink.measure.key_shares import Shares
from streamplace.flink.measure.profile import PER_THREAD, JobProfile, Present, costs_of
from streamplace.flink.measure.source_lag import MIN_RATE
from streamplace.flink.measure.streams import (
    SendingCost,
    carried_by_streams,
    with_message_cost,
)
from streamplace.flink.rest.plan import FlinkTask
from streamplace.io.clusters import cluster_from_tables
from streamplace.model import Cluster, Operator, Stream, StreamGraph
from streamplace.model.defaults import FLINK_HEADROOM
from streamplace.model.graph import (
    CONSISTENCY,
    CONSISTENCY_ERROR,
    CPU_ERROR,
    CPU_OF,
    CPU_ORIGIN,
    KEEPS_PARALLELISM,
    PROFILE_DRIFT,
    PROFILE_SPREAD,
    PROFILE_WINDOWS,
)
from streamplace.model.streams import RESCALE
from streamplace.model.units import MAX_VALUE, UNLIMITED_BPS, digits

MIN_PAYLOAD_DIFFERENCE = 0.02
"""Minimum relative difference of payloads that differ."""
BROADCAST = "each of its subtasks gets every tuple of a broadcast stream"
MAX_COPIES = 0.01
"""Maximum ignored share of broadcast tuples, such as rules, in the input of an operator."""


def measured_graph(profile: JobProfile, mips: float) -> StreamGraph:
    """Return the stream graph of a job, with instructions for cores of ``mips``.

    Its attribute ``unmeasured`` contains the doubts of the profile, to which this function adds
    doubts about rates and streams.
    """
    name_of = {task.id: task.name for task in profile.tasks}
    carried, sizes, doubts = carried_by_streams(profile.tasks, profile.edges, profile.activity)
    profile.doubts.extend(doubts)
    # the payload of an operator is that of its first stream
    payloads = {profile.edges[e].source: size for e, size in reversed(sizes.items())}
    profile.check_sources()
    rates = {task.id: _source_rate(profile, task) for task in profile.sources}
    min_rate = MIN_RATE * sum(rates.values())
    constant = profile.constant
    operators = [
        _operator(
            profile,
            task,
            payloads.get(task.id, 0.0),
            max(rates[task.id], min_rate) if task.id in rates else None,
            constant[task.id],
            mips,
        )
        for task in profile.tasks
    ]
    streams = [
        Stream(
            name_of[edge.source],
            name_of[edge.target],
            carried[e] / (profile.tuples[edge.source] or 1.0),
            _stream_payload(sizes.get(e), payloads.get(edge.source, 0.0)),
            RESCALE if edge.is_rescaled else edge.partitioning,
        )
        for e, edge in enumerate(profile.edges)
    ]
    facts: dict[str, str | float] = {"mips": mips, PROFILE_WINDOWS: max(1, len(profile.windows))}
    costs = costs_of(profile.windows)
    if len(costs) > 1 and mean(costs) > 0:
        facts[PROFILE_SPREAD] = float(f"{stdev(costs) / mean(costs):.4g}")
    facts[CPU_ORIGIN] = str(profile.origin)
    if profile.origin.error:
        facts[CPU_ERROR] = float(f"{profile.origin.error:.4g}")
    facts |= {
        f"{CPU_OF}{task.name}": profile.cpu[task.id].source
        for task in profile.tasks
        if profile.cpu[task.id].source not in PER_THREAD
    }
    facts |= {
        KEEPS_PARALLELISM + name_of[edge.target]: BROADCAST
        for e, edge in enumerate(profile.edges)
        if edge.is_broadcast and carried[e] > MAX_COPIES * profile.tuples[edge.target]
    }
    if profile.drift > 0:
        facts[PROFILE_DRIFT] = float(f"{min(profile.drift, MAX_VALUE):.4g}")
    profile.doubts[:] = dict.fromkeys(profile.doubts)  # an earlier graph has added the same ones
    if profile.doubts:
        facts["unmeasured"] = "; ".join(profile.doubts)
    graph = StreamGraph.of(profile.name, operators, streams, facts)
    if profile.edges:
        graph = with_message_cost(graph, mips, profile.buffer_timeout)
    return _with_consistency(profile, graph)


def _source_rate(profile: JobProfile, source: FlinkTask) -> float:
    """Tuples/s that a source emits; adds a doubt if more may arrive for it."""
    if source.has_ended:
        return 0.0
    if not profile.tuples[source.id]:
        profile.doubts.append(
            f"rate of {source.name}: it has sent nothing, so its rate counts as 0 and its CPU "
            "as constant"
        )
    elif (flow := profile.flow.sources[source.name]).offered is None:
        profile.doubts.append(
            f"rate of {source.name}: {flow.why}, so its actual rate may be higher; set it with "
            "--rate when placing"
        )
    return profile.tuples[source.id]


def _operator(
    profile: JobProfile,
    task: FlinkTask,
    payload: float,
    rate: float | None,
    fixed: float,
    mips: float,
) -> Operator:
    """Operator of a task.

    ``rate``: rate of a source; None for tasks with inputs.
    ``fixed``: cores that do not depend on the rate.
    """
    tuples, cores = profile.tuples[task.id], profile.cpu[task.id].cores
    limit = profile.waiting.get(task.id)
    if rate is not None or fixed >= cores:
        limit = None  # the waiting of a committer does not depend on the rate, as its CPU does not
    if limit is not None:
        profile.doubts.append(
            f"max_rate of {task.name}: it waits {100 * limit.part:.0f} % of its busy time for "
            f"something other than CPU: a subtask reads at most {digits(limit.rate, 3)} tuples/s"
        )
    return Operator(
        task.name,
        max(cores - fixed, 0.0) / tuples * mips * 1e6 if tuples else 0.0,
        payload,
        rate or 0.0,
        task.parallelism,
        about=task.about,
        max_parallelism=task.max_parallelism if rate is None else _splits(profile, task),
        slot_sharing_group=task.slot_sharing_group,
        constant=fixed * mips,
        max_rate=0.0 if limit is None else limit.rate,
        cores=_cores_of_subtask(profile, task),
    )


def _cores_of_subtask(profile: JobProfile, task: FlinkTask) -> float:
    """Cores that a subtask uses when its busiest thread runs all the time.

    Threads that fetch, send or collect garbage run beside it. A nearly idle thread does not show
    how much.
    """
    cpu = profile.cpu[task.id]
    if not cpu.busiest >= MIN_BUSY * task.parallelism:
        return 1.0
    return max(1.0, round(cpu.cores / cpu.busiest, 2))


def _splits(profile: JobProfile, source: FlinkTask) -> int:
    """Number of splits of a source; further subtasks would have no work.

    Flink reports it for Kafka only. If a subtask has had no input, further ones would have none.
    Otherwise, the maximum parallelism is rounded down to equal numbers of splits per subtask, since
    Flink does not divide splits by key groups; `key_shares` finds unequal shares.
    """
    flow = profile.flow.sources[source.name]
    if flow.partitions:
        return max(flow.partitions, source.parallelism)
    if any(subtask.arrived <= 0 for subtask in flow.subtasks):
        return source.parallelism
    return source.max_parallelism - source.max_parallelism % source.parallelism


def _stream_payload(size: float | None, payload: float) -> float | None:
    """Payload of a stream; None if it is unknown, or equal to the payload of its source."""
    if size is None or abs(size - payload) <= MIN_PAYLOAD_DIFFERENCE * max(size, payload):
        return None
    return size


class Agreement(NamedTuple):
    """Predicted and measured rate of one layout, in tuples/s of the sources."""

    predicted: float
    measured: float
    is_saturated: bool  # whether the layout may not carry more

    @property
    def error(self) -> float:
        """Predicted over measured, less 1."""
        return min(self.predicted / self.measured - 1, MAX_VALUE)

    @property
    def contradicts(self) -> bool:
        """Whether the measured rate bounds the error: it does not if the layout may carry more."""
        return self.is_saturated or self.error <= 0

    def __str__(self) -> str:
        if not self.contradicts:
            return (
                f"the job was not saturated: {self.measured:,.0f} tuples/s were measured while "
                f"CPU was free, and the model predicts at most {self.predicted:,.0f} for the "
                "present placement; measure at a higher rate to check the model"
            )
        free = "" if self.is_saturated else " while CPU was free"
        return (
            f"for the present placement the model predicts {self.predicted:,.0f} tuples/s, and "
            f"{self.measured:,.0f} were measured{free} ({self.error:+.0%})"
        )


def _with_consistency(profile: JobProfile, graph: StreamGraph) -> StreamGraph:
    """Add attributes that compare the predicted and the measured rate of the present placement."""
    flow = profile.flow
    agreed = agreement(
        graph,
        profile.present,
        profile.sending,
        is_limited=flow.is_limited,
        sustained=flow.sustained,
        shares=profile.shares,
    )
    if agreed is None:
        text = "unchecked, because threads of some TaskManagers of the job cannot be read here"
        return replace(graph, attributes={**graph.attributes, CONSISTENCY: text})
    facts: dict[str, str | float] = {CONSISTENCY: str(agreed)}
    if agreed.contradicts:
        facts[CONSISTENCY_ERROR] = agreed.error
    return replace(graph, attributes={**graph.attributes, **facts})


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

    Return None if the threads of a TaskManager of the job cannot be read, or if it uses no CPU.

    ``sending``: cost of remote tuples; None if there are none.
    ``sustained``: measured rate at which no subtask falls behind, which is the predicted one; None
    if it is the rate of the sources.
    """
    needed = {device for devices in present.devices.values() for device in devices}
    if not needed <= present.usage.keys() or not graph.source_rate:
        return None
    cluster = _cluster(present, sending, float(graph.attributes["mips"]))
    carried = capacity(graph, cluster, present.devices, shares) * graph.source_rate
    if math.isinf(carried):
        return None
    is_full = any(present.usage[device].share.is_full for device in needed)
    return Agreement(carried, sustained or graph.source_rate, is_limited or is_full)


def _cluster(present: Present, sending: SendingCost | None, mips: float) -> Cluster:
    """Measured devices; the CPU of Java, its compilers and other jobs is reserved."""
    cost = sending or SendingCost(0.0, 0.0)
    devices = []
    for name, usage in present.usage.items():
        cores, share = usage.share.whole_cores
        used = (present.java or 0.0) + usage.kinds.get(COMPILERS, 0.0)
        used += present.beside.get(name, 0.0) + cost.fixed
        reserved = reserved_cores(used, usage.share.limit) * mips
        devices.append({"name": name, "mips": share * mips, "cores": cores, "reserved": reserved})
    cost = cost.slower(slowness(usage.share for usage in present.usage.values()))
    return cluster_from_tables(
        {
            "bandwidth": UNLIMITED_BPS,  # unknown, so only CPU is checked
            "framing": FRAMING,
            "headroom": FLINK_HEADROOM,
            "overhead": cost.per_tuple,
            "overhead_per_byte": cost.per_byte,
            "devices": devices,
        }
    )
