"""A profile as a stream graph: operators, streams, and facts on how well they were measured."""

from collections.abc import Mapping
from dataclasses import replace
from statistics import mean, stdev

from streamplace.engines.flink.measure.job_windows import waiting_limit
from streamplace.engines.flink.measure.measurement import even_splits
from streamplace.engines.flink.measure.present import agreement
from streamplace.engines.flink.measure.profile import JobProfile
from streamplace.engines.flink.measure.sources import LEAST_RATE
from streamplace.engines.flink.measure.streams import (
    carried_by_streams,
    with_local_cost,
    with_message_cost,
)
from streamplace.engines.flink.rest.client import FlinkError
from streamplace.engines.flink.rest.plan import FlinkTask
from streamplace.model.graph import (
    CONSISTENCY,
    CONSISTENCY_ERROR,
    CPU_OF,
    KEEPS_PARALLELISM,
    PROFILE_DRIFT,
    PROFILE_PROCESSES,
    PROFILE_SPREAD,
    PROFILE_SUBTASKS,
    PROFILE_WINDOWS,
    StreamGraph,
)
from streamplace.model.messages import quoted
from streamplace.model.operators import Operator
from streamplace.model.streams import RESCALE, Stream
from streamplace.model.units import LARGEST

ALIKE = 0.02
"""Payloads with a smaller relative difference are equal."""
COPIED = "each of its subtasks gets every tuple of a broadcast stream"


def measured_graph(seen: JobProfile, mips: float) -> StreamGraph:
    """Return the stream graph of a job, with instructions for cores of ``mips``.

    Its attribute ``unmeasured`` contains the doubts of the profile. Those that arise here are added
    to them.
    """
    _refuse_frozen(seen)
    name_of = {task.id: task.name for task in seen.tasks}
    carried = carried_by_streams(seen.tasks, seen.edges, seen.activity, seen.buffers.size)
    seen.doubts.extend(carried.doubts)
    sizes = carried.payloads
    usual = {seen.edges[e].source: size for e, size in reversed(carried.payloads.items())}
    seen.check_sources()
    rates = {task.id: _source_rate(seen, task) for task in seen.sources}
    least = LEAST_RATE * sum(rates.values())
    rates = {task: max(rate, least) for task, rate in rates.items()}
    constant = seen.constant
    operators = [
        _operator(seen, task, usual.get(task.id, 0.0), rates.get(task.id), constant[task.id], mips)
        for task in seen.tasks
    ]
    streams = [
        Stream(
            name_of[edge.source],
            name_of[edge.target],
            carried.sent.get(e, carried.tuples[e]) / (seen.tuples[edge.source] or 1.0),
            _own_payload(sizes.get(e), usual.get(edge.source, 0.0)),
            RESCALE if edge.is_rescaled else edge.partitioning,
        )
        for e, edge in enumerate(seen.edges)
    ]
    facts: dict[str, str | float] = {"mips": mips, **_spread_facts(seen)}
    facts |= {
        f"{CPU_OF}{task.name}": seen.cpu[task.id].source
        for task in seen.tasks
        if seen.cpu[task.id].source
    }
    facts |= {KEEPS_PARALLELISM + name: COPIED for name in sorted(seen.copied_to)}
    if seen.drift > 0:
        facts[PROFILE_DRIFT] = float(f"{min(seen.drift, LARGEST):.4g}")
    seen.doubts[:] = dict.fromkeys(seen.doubts)  # another graph of this profile has the same
    if seen.doubts:
        facts["unmeasured"] = "; ".join(seen.doubts)
    graph = StreamGraph.of(seen.name, operators, streams, facts)
    if seen.edges:
        graph = with_local_cost(graph, [sizes.get(e, 0.0) for e in range(len(seen.edges))], mips)
        graph = with_message_cost(graph, mips, seen.buffers.timeout)
    return _checked(seen, graph)


def _refuse_frozen(seen: JobProfile) -> None:
    """Raise FlinkError if Flink has fetched no metrics of a job while it was measured.

    Those that it has told then are older, and say nothing of now.
    """
    running = [seen.activity[task.id] for task in seen.tasks if not task.has_ended]
    if any(one.seconds > 0 for one in running) or all(one.is_silent for one in running):
        return
    raise FlinkError(
        f"Flink has not updated the metrics of job {quoted(seen.name)} while it was measured: it "
        "fetches them once per metrics.fetcher.update-interval, and after the loss of a "
        "TaskManager none for up to web.timeout; wait, or watch for longer (seconds in --settings)"
    )


def _source_rate(seen: JobProfile, source: FlinkTask) -> float:
    """Tuples/s that a source emits; doubts say where more may arrive for it."""
    if source.has_ended:
        return 0.0
    if not seen.tuples[source.id]:
        seen.doubts.append(
            f"rate of {source.name}: it has sent nothing, so its rate counts as 0 and its CPU "
            "as constant"
        )
    elif (flow := seen.flow.sources[source.name]).offered is None:
        seen.doubts.append(
            f"rate of {source.name}: {flow.why}, so its actual rate may be higher; set it with "
            "--rate when placing"
        )
    return seen.tuples[source.id]


def _operator(
    seen: JobProfile,
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
    tuples, cores = seen.tuples[task.id], seen.cpu[task.id].cores
    if not tuples and rate is None and not task.has_ended:
        seen.doubts.append(f"ipt of {task.name}: it received no tuples")
    ipt = (cores - fixed) / tuples * mips * 1e6 if tuples else 0.0
    return Operator(
        task.name,
        ipt,
        payload,
        rate or 0.0,
        task.parallelism,
        about=task.about,
        max_parallelism=task.max_parallelism if rate is None else _splits(seen, task),
        slot_sharing_group=task.slot_sharing_group,
        constant=fixed * mips,
        max_rate=0.0 if rate is not None else _max_rate(seen, task, fixed),
    )


def _splits(seen: JobProfile, source: FlinkTask) -> int:
    """Number of subtasks of a source that can have work; 0 if any number can.

    Where a subtask has no partition, more of them would have none, either.
    """
    flow = seen.flow.sources[source.name]
    if flow.partitions:
        return max(flow.partitions, source.parallelism)
    if any(one.arrived <= 0 for one in flow.subtasks):
        return source.parallelism
    return even_splits(source)


def _max_rate(seen: JobProfile, task: FlinkTask, fixed: float) -> float:
    """Tuples/s that a subtask of a task with inputs reads at most; 0 if nothing limits it.

    An operator that takes all its CPU per second, such as a committer, waits per second, too.

    ``fixed``: cores that do not depend on the rate.
    """
    times = seen.times.get(task.id)
    if times is None or fixed >= seen.cpu[task.id].cores:
        return 0.0
    limit = waiting_limit(task, seen.activity[task.id], times)
    if limit is None:
        return 0.0
    seen.doubts.append(f"max_rate of {task.name}: {limit}")
    return limit.rate


def _own_payload(size: float | None, usual: float) -> float | None:
    """Payload of a stream; None if it is that of its source, or unknown."""
    if size is None or abs(size - usual) <= ALIKE * max(size, usual):
        return None
    return size


def _spread_facts(seen: JobProfile) -> Mapping[str, float]:
    """Attributes on the windows, subtasks and processes that were measured.

    They say that a graph was measured, and how well.
    """
    devices = {} if seen.present is None else seen.present.devices
    facts: dict[str, float] = {
        PROFILE_WINDOWS: max(1, len(seen.windows)),
        PROFILE_SUBTASKS: sum(task.parallelism for task in seen.tasks),
        PROFILE_PROCESSES: len({device for own in devices.values() for device in own}),
    }
    costs = []
    for window in seen.windows:
        tuples = sum(window.tuples.get(task.id, 0.0) for task in seen.sources)
        if tuples > 0:
            costs.append(sum(window.cores.values()) / tuples)
    if len(costs) > 1 and mean(costs) > 0:
        facts[PROFILE_SPREAD] = float(f"{stdev(costs) / mean(costs):.4g}")
    return facts


def _checked(seen: JobProfile, graph: StreamGraph) -> StreamGraph:
    """Add attributes with the consistency of the graph and the measured placement."""
    if seen.present is None:
        return graph
    flow = seen.flow
    found = agreement(
        graph,
        seen.present,
        seen.sending,
        is_limited=flow.is_limited,
        sustained=flow.sustained,
        shares=seen.shares,
    )
    if found is None:
        text = "unchecked, for the threads of not all TaskManagers of the job can be read here"
        return replace(graph, attributes={**graph.attributes, CONSISTENCY: text})
    facts: dict[str, str | float] = {CONSISTENCY: str(found)}
    if found.contradicts:
        facts[CONSISTENCY_ERROR] = found.error
    return replace(graph, attributes={**graph.attributes, **facts})
