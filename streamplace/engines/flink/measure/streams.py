"""What streams carry, in tuples/s and bytes per tuple, and what a tuple costs that leaves a thread.

The CPU of the threads of a TaskManager that send and receive is fitted like that of operators
(`measure.fit`), over all TaskManagers and layouts that were measured, by

    cores = fixed + per byte · (bytes/s + BYTES_OF_A_TUPLE · tuples/s)

of what it exchanges with others. The fixed part is that of buffers which Flink sends every 100 ms,
however little is in them, of credits and wake-ups. It is reserved on all TaskManagers; the other is
the ``overhead`` of remote tuples.

Threads that wait for a CPU send many buffers at a time, each for less. So TaskManagers without CPU
left are left out, unless all that exchange tuples are such.

Between threads of one TaskManager, one writes the tuples and another reads them: at each end, a
tuple costs `LOCAL_PER_BYTE` for each of its bytes, and for as many more as `BYTES_OF_A_TUPLE` says.
A chain saves both.

Messages are buffers that Flink sends once per buffer timeout. `streamplace.model.buffers` has the
formula. What a message costs operators cannot be fitted from metrics, because ``numBuffersOut``
does not count buffers that are sent before they are full, so it is assumed. The CPU of an operator
contains its messages at the measured rate and parallelism; the attributes say how many, so that
they are not charged twice.
"""

import heapq
import logging
import math
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from streamplace.engines.flink.measure.fit import Observation, Prior, task_cost
from streamplace.engines.flink.measure.sampling import Activity
from streamplace.engines.flink.rest.plan import Edge, FlinkTask, pointwise_pairs
from streamplace.engines.flink.rest.settings import BufferSettings
from streamplace.model.arrays import Floats
from streamplace.model.buffers import (
    BUFFER_TIMEOUT,
    MESSAGE_IPT,
    MESSAGES_OF,
)
from streamplace.model.graph import StreamGraph

Pair = tuple[str, str]
WRITER, COMMITTER = ": Writer", ": Committer"
"""Ends of the names that Flink gives the two operators of a two-phase sink."""
GLOBAL_COMMITTER = ": Global Committer"
"""End of the name of one that some sinks have behind these."""
LEAST_REST = 0.1
"""Minimum remainder of a sum, relative to it, that is reliable; errors dominate smaller ones."""
LEAST_BUFFERS = 10
"""Minimum number of buffers that must pass for a good estimate of their bytes."""
LEAST_PASSED = 0.5
"""Minimum part of the sent tuples that arrive while a queue between the tasks fills."""
ALIKE = 0.1
"""Maximum difference between the parts of the tuples and of the bytes that a queue holds back."""


class StreamAmounts(NamedTuple):
    """Amount of each stream by its number, and the streams whose amount is uncertain."""

    amounts: dict[int, float]
    # Streams that could not be separated; their common amount was divided among them.
    mixed: set[int]
    small: set[int]  # streams whose amount is the small difference of large ones
    from_sent: set[int]  # streams whose amount was derived from the output of their source


class _Sum(NamedTuple):
    """Sum of the amounts of the streams at one end of a task."""

    streams: list[int]
    total: float

    def rest(self, amounts: Mapping[int, float]) -> float:
        """Remaining amount for streams that are not known yet."""
        return max(0.0, self.total - sum(amounts.get(e, 0.0) for e in self.streams))


@dataclass(frozen=True, slots=True)
class CarriedTuples:
    """Tuples and payloads of streams, by the number of the stream."""

    tuples: Mapping[int, float]  # tuples/s
    # Tuples/s that the source counts, for streams that are its only output and whose received rate
    # differs only because queues drain or fill: see `_queued`.
    sent: Mapping[int, float]
    payloads: dict[int, float]  # bytes per tuple of each stream that carries tuples
    doubts: Sequence[str]  # sentences on missing measurements


def carried_by_streams(
    tasks: Sequence[FlinkTask],
    edges: Sequence[Edge],
    activity: Mapping[str, Activity],
    buffer_bytes: float = BufferSettings().size,
) -> CarriedTuples:
    """Tuples and payloads of all streams, from the metrics of their tasks.

    The input that a task counts is authoritative; the output of other tasks only divides it among
    the streams. Some tasks count tuples that they do not send: the writer of a two-phase sink
    counts the records that it writes elsewhere, and sends its committer one message per checkpoint.
    So does a task with a chained sink, beside the tuples that it sends on.

    ``buffer_bytes``: size of a network buffer.
    """
    sent = _sent(tasks, edges, activity)
    tuples = _as_received(edges, activity, _tuples(edges, activity, sent))
    sizes = shares(
        _pairs(edges),
        _rates(activity, "numBytesIn"),
        _rates(activity, "numBytesOut"),  # counts output to several tasks once for each
        tuples.amounts,
    )
    blur = _blur(tasks, edges, activity, buffer_bytes)
    few = (e for e in sizes.from_sent if sizes.amounts[e] < blur[edges[e].source])
    reasons = dict.fromkeys(few, "few bytes passed; profile for longer")
    reasons |= _reasons(sizes, "a mean")
    reasons |= {e: "no tuple passed" for e, amount in tuples.amounts.items() if not amount}
    labels = _labels(tasks, edges)
    doubts = [
        f"{what} of {labels[e]}: {why[e]}"
        for what, why in (("selectivity", _reasons(tuples, "guessed")), ("payload", reasons))
        for e in sorted(why)
    ]
    payloads = {e: sizes.amounts[e] / amount for e, amount in tuples.amounts.items() if amount}
    queued = {e: rate for e, rate in sent.items() if _queued(edges[e], activity, tuples.amounts[e])}
    return CarriedTuples(tuples.amounts, queued, payloads, doubts)


def _tuples(
    edges: Sequence[Edge], activity: Mapping[str, Activity], sent: Mapping[int, float]
) -> StreamAmounts:
    """Tuples/s of each stream.

    The output of a task with several streams is not used, because a tuple that is sent to all of
    them counts once.
    """
    written = _rates(activity, "numRecordsOut")
    weights = {e: written.get(edge.source, 0.0) * edge.copies for e, edge in enumerate(edges)}
    alone = {edges[e].source: tuples for e, tuples in sent.items()}
    return shares(_pairs(edges), _rates(activity, "numRecordsIn"), alone, weights)


def _as_received(
    edges: Sequence[Edge], activity: Mapping[str, Activity], tuples: StreamAmounts
) -> StreamAmounts:
    """Scale the amounts of sent tuples so that they add up to the input of each target.

    Queues hold back at most half; if less is missing, amounts stay as they were counted.
    """
    amounts = dict(tuples.amounts)
    for task, read in _rates(activity, "numRecordsIn").items():
        inputs = [e for e, edge in enumerate(edges) if edge.target == task]
        total = sum(amounts[e] for e in inputs)
        if total > 0 and not LEAST_PASSED <= read / total <= 1 / LEAST_PASSED:
            amounts.update({e: amounts[e] * read / total for e in inputs})
            if len(inputs) > 1:
                tuples.mixed.update(inputs)
    return tuples._replace(amounts=amounts)


def _queued(edge: Edge, activity: Mapping[str, Activity], received: float) -> bool:
    """Whether a queue explains that fewer or more tuples are received than were sent.

    It does if the same part of the bytes is missing as of the tuples.
    """
    source, target = activity[edge.source].rates, activity[edge.target].rates
    if "numRecordsIn" not in target:
        return True
    sent = source["numRecordsOut"] * edge.copies
    sizes = source.get("numBytesOut", 0.0), target.get("numBytesIn", 0.0)
    if not sent or not min(sizes):
        return False
    passed, bytes_passed = received / sent, sizes[1] / sizes[0]
    if not LEAST_PASSED <= passed <= 1 / LEAST_PASSED:
        return False
    return abs(passed - 1) <= ALIKE or abs(passed - bytes_passed) <= ALIKE * bytes_passed


def _sent(
    tasks: Sequence[FlinkTask], edges: Sequence[Edge], activity: Mapping[str, Activity]
) -> dict[int, float]:
    """Tuples/s that the source of each stream counts for it, where it counts nothing else.

    What a chained sink writes counts only if the target does not count what it reads.
    """
    written = _rates(activity, "numRecordsOut")
    read = _rates(activity, "numRecordsIn")
    outputs = Counter(edge.source for edge in edges)
    others = {task.id for task in tasks if writes_elsewhere(task, tasks)}
    return {
        e: written[edge.source] * edge.copies
        for e, edge in enumerate(edges)
        if outputs[edge.source] == 1
        and edge.source in written
        and not (edge.source in others and edge.target in read)
    }


def _blur(
    tasks: Sequence[FlinkTask],
    edges: Sequence[Edge],
    activity: Mapping[str, Activity],
    buffer_bytes: float,
) -> dict[str, float]:
    """Task → bytes/s that it must have sent for a reliable measurement.

    Flink counts them by whole buffers, one for each receiving subtask.
    """
    parallelism = {task.id: task.parallelism for task in tasks}
    channels: Counter[str] = Counter()
    for edge in edges:
        receivers = 1 if edge.partitioning == "forward" else parallelism[edge.target]
        channels[edge.source] += parallelism[edge.source] * receivers
    return {
        task: LEAST_BUFFERS * buffer_bytes * math.sqrt(n) / (activity[task].seconds or 1)
        for task, n in channels.items()
    }


def _reasons(amounts: StreamAmounts, mixed: str) -> dict[int, str]:
    """Reasons why the amounts of streams are not measured."""
    reasons = dict.fromkeys(amounts.small, "the small difference of large numbers")
    return reasons | dict.fromkeys(amounts.mixed, f"{mixed}, several inputs mix")


def _rates(activity: Mapping[str, Activity], metric: str) -> dict[str, float]:
    """Task → value of a metric, for the tasks that have it."""
    return {task: seen.rates[metric] for task, seen in activity.items() if metric in seen.rates}


def _pairs(edges: Sequence[Edge]) -> list[tuple[str, str]]:
    return [(edge.source, edge.target) for edge in edges]


def _labels(tasks: Sequence[FlinkTask], edges: Sequence[Edge]) -> list[str]:
    name_of = {task.id: task.name for task in tasks}
    return [f"{name_of[edge.source]}→{name_of[edge.target]}" for edge in edges]


def shares(
    streams: Sequence[Pair],
    received: Mapping[str, float],
    sent: Mapping[str, float],
    weights: Mapping[int, float],
) -> StreamAmounts:
    """Amount of each stream, from sums over the inputs of tasks and over the outputs of tasks.

    A stream that is alone at one of its ends carries the sum there, and the last unknown stream of
    a sum carries its remainder. Streams that are still unknown share the remainder of their
    target's sum by weight, or evenly if none has one.

    ``received``, ``sent``: sums by task, without tasks whose sum is unknown.
    ``weights``: weight of each stream, for streams that share a remainder.

    >>> streams = [("src", "a"), ("src", "b"), ("a", "sink"), ("b", "sink")]
    >>> shares(streams, {"a": 9.0, "b": 8.0, "sink": 20.0}, {"a": 4.0}, {}).amounts
    {0: 9.0, 1: 8.0, 2: 4.0, 3: 16.0}
    """
    targets, senders = _sums(streams, received, end=1), _sums(streams, sent, end=0)
    answer = StreamAmounts({}, set(), set(), set())
    _solve(streams, targets, senders, answer)
    for task, numbers in _numbers(streams, end=1).items():
        left = [e for e in numbers if e not in answer.amounts]
        rest = _Sum(numbers, received.get(task, 0.0)).rest(answer.amounts)
        parts = [weights.get(e, 0.0) for e in left]
        parts = parts if any(parts) else [1.0] * len(left)
        answer.amounts.update(
            {e: rest * part / sum(parts) for e, part in zip(left, parts, strict=True)}
        )
        answer.mixed.update(left)
    return answer._replace(amounts=dict(sorted(answer.amounts.items())))


def _solve(
    streams: Sequence[Pair],
    targets: Mapping[str, _Sum],
    senders: Mapping[str, _Sum],
    answer: StreamAmounts,
) -> None:
    """Determine every stream that is alone at an end, or the last unknown one there, repeatedly.

    Streams that are alone come first, because a remainder has the errors of the others; then
    inputs, because Flink counts output by whole buffers.
    """
    sums = [*targets.values(), *senders.values()]
    ends: list[list[int]] = [[] for _ in streams]
    for i, one in enumerate(sums):
        for e in one.streams:
            ends[e].append(i)
    unknown = [len(one.streams) for one in sums]
    todo = [(1, i) for i, n in enumerate(unknown) if n == 1]  # a list in order is a heap
    while todo:
        at = heapq.heappop(todo)[1]
        one = sums[at]
        for e in [e for e in one.streams if e not in answer.amounts]:
            answer.amounts[e] = one.rest(answer.amounts)
            if len(one.streams) > 1 and answer.amounts[e] < LEAST_REST * one.total:
                answer.small.add(e)
            if at >= len(targets):
                answer.from_sent.add(e)
            for i in ends[e]:
                unknown[i] -= 1
                if unknown[i] == 1:
                    heapq.heappush(todo, (len(sums[i].streams), i))


def _sums(streams: Sequence[Pair], totals: Mapping[str, float], *, end: int) -> dict[str, _Sum]:
    numbers = _numbers(streams, end=end)
    return {task: _Sum(e, totals[task]) for task, e in numbers.items() if task in totals}


def _numbers(streams: Sequence[Pair], *, end: int) -> dict[str, list[int]]:
    """Numbers of the streams at each task."""
    numbers: dict[str, list[int]] = {}
    for e, stream in enumerate(streams):
        numbers.setdefault(stream[end], []).append(e)
    return numbers


def counted_for(
    tasks: Sequence[FlinkTask], edges: Sequence[Edge], counts: Mapping[str, float]
) -> dict[str, float]:
    """Task → tuples/s that its senders count for it alone, for tasks of which this is known.

    A sender with several outputs counts all of them together, and one with a chained sink what that
    writes, so their counts say nothing of a rare side output. The committer of a two-phase sink is
    known by its name; other senders must have one output, and no sink without committer.

    ``counts``: tuples/s that each task counts as sent.
    """
    by_id = {task.id: task for task in tasks}
    outputs = Counter(edge.source for edge in edges)
    answer: dict[str, float] = {}
    for task in tasks:
        inputs = [edge for edge in edges if edge.target == task.id]
        if task.operators[0].endswith((COMMITTER, GLOBAL_COMMITTER)) or all(
            outputs[edge.source] == 1 and not writes_elsewhere(by_id[edge.source], tasks)
            for edge in inputs
        ):
            answer[task.id] = sum(counts.get(edge.source, 0.0) * edge.copies for edge in inputs)
    return answer


def writes_elsewhere(sender: FlinkTask, tasks: Sequence[FlinkTask]) -> bool:
    """Whether a task contains a sink that sends nothing to a committer in another task."""
    others = {name for task in tasks if task.id != sender.id for name in task.operators}
    sinks = (name.removesuffix(WRITER) for name in sender.operators if name.endswith(WRITER))
    return any(sink + COMMITTER not in others for sink in sinks)


LOG = logging.getLogger(__name__)
BYTES_OF_A_TUPLE = 6.4
"""Bytes that cost as much as handing on a tuple, from benchmarks/calibration.py."""
FIXED = Prior(0.012, 0.6)
"""Cores of a TaskManager that exchanges tuples, at any rate; of five jobs on four TaskManagers."""
PER_BYTE = Prior(3e-9, 0.7)
"""Core seconds per byte at each end, of the same (docs/assets/calibration.jsonl)."""
LOCAL_PER_BYTE = 1.4e-9
"""Core seconds per byte at each end of a stream on one TaskManager, of the same."""
MESSAGE_COST = "message cost"
"""Attribute with the origin of the cost of messages."""
ASSUMED_SECONDS = 115e-6
"""Core seconds per message of both ends and the network; middle of what benchmarks/buffers.py gave.
"""
NETWORK = ""
"""Key of the threads that send and receive among the observed operators, whose names have letters.
"""


class RemoteFlow(NamedTuple):
    """Tuples and bytes per second that a TaskManager exchanges with others."""

    tuples: float
    traffic: float

    @property
    def weight(self) -> float:
        """Bytes per second, with those that stand for tuples."""
        return self.traffic + BYTES_OF_A_TUPLE * self.tuples


class SendingCost(NamedTuple):
    """Core seconds per remote tuple at each end, and in addition per byte."""

    per_tuple: float
    per_byte: float
    is_assumed: bool = False
    fixed: float = 0.0  # cores of each TaskManager at any rate

    def slower(self, factor: float) -> "SendingCost":
        """Return the costs on cores that are slower by this factor."""
        return self._replace(per_tuple=factor * self.per_tuple, per_byte=factor * self.per_byte)

    def rounded(self) -> "SendingCost":
        """Return the costs rounded to three digits."""
        per_tuple, per_byte = float(f"{self.per_tuple:.3g}"), float(f"{self.per_byte:.3g}")
        return self._replace(per_tuple=per_tuple, per_byte=per_byte)


ASSUMED = SendingCost(5.8e-9 * BYTES_OF_A_TUPLE, 5.8e-9, is_assumed=True)
"""On a full core, from benchmarks/calibration.py; for clusters without remote tuples.

It contains what is fixed, because layouts may differ in what crosses.
"""


def network_loads(
    network: Mapping[str, float], flows: Mapping[str, RemoteFlow], full: Container[str] = ()
) -> list[Observation]:
    """Bytes per second and cores of the TaskManagers that exchange tuples with others.

    ``network``: TaskManager → cores of its threads that send and receive.
    ``full``: TaskManagers without CPU left.
    """
    sending = {device: flow for device, flow in flows.items() if flow.tuples > 0}
    fitted = {device: flow for device, flow in sending.items() if device not in full} or sending
    return [Observation(flow.weight, network.get(one, 0.0)) for one, flow in fitted.items()]


def sending_cost(loads: Iterable[Observation]) -> SendingCost | None:
    """Fit the CPU of network threads; None if no tuple goes to another TaskManager.

    >>> found = sending_cost([Observation(1e5, 0.0102), Observation(9e6, 0.028)])
    >>> round(found.fixed, 3), round(1e9 * found.per_byte, 1)
    (0.01, 2.0)
    """
    rows = list(loads)
    if not rows:
        return None
    found = task_cost(rows, FIXED, PER_BYTE)
    LOG.debug(
        "network: %.4g cores of each TaskManager at any rate, %.3g ns per byte, of %s",
        *(found.fixed, 1e9 * found.per_tuple, rows),
    )
    per_byte = found.per_tuple
    return SendingCost(BYTES_OF_A_TUPLE * per_byte, per_byte, fixed=found.fixed)


def remote_flows(
    tasks: Sequence[FlinkTask],
    edges: Sequence[Edge],
    seen: Mapping[str, Activity],
    devices: Mapping[str, Sequence[str]],
) -> dict[str, RemoteFlow]:
    """TaskManager → tuples and bytes of a job that it exchanges with others.

    ``devices``: task → TaskManager of each of its subtasks, in order.
    """
    tuples: dict[str, float] = defaultdict(float)
    traffic: dict[str, float] = defaultdict(float)
    carried = carried_by_streams(tasks, edges, seen)
    for e, edge in enumerate(edges):
        amount, size = carried.tuples[e], carried.payloads.get(e, 0.0)
        for device, part in _crossing(edge, devices).items():
            tuples[device] += amount * part
            traffic[device] += amount * part * size
    return {device: RemoteFlow(tuples[device], traffic[device]) for device in tuples}


def _crossing(edge: Edge, devices: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """Device → share of a stream's tuples that it exchanges with other devices."""
    senders, receivers = devices[edge.source], devices[edge.target]
    if not edge.is_pointwise:
        return remote_shares(Counter(senders), Counter(receivers))
    pairs = pointwise_pairs(len(senders), len(receivers))
    outputs = Counter(i for i, _ in pairs)
    shares: dict[str, float] = defaultdict(float)
    for i, j in pairs:
        if senders[i] != receivers[j]:
            for device in (senders[i], receivers[j]):
                shares[device] += 1 / (len(senders) * outputs[i])
    return shares


def remote_shares(senders: Mapping[str, int], receivers: Mapping[str, int]) -> dict[str, float]:
    """Device → share of a stream's tuples that it exchanges with other devices.

    Every sender distributes its tuples evenly over all receivers, as in a stream that is not
    pointwise.

    >>> remote_shares({"a": 1}, {"a": 1, "b": 3})
    {'a': 0.75, 'b': 0.75}
    """
    sent, taken = sum(senders.values()), sum(receivers.values())
    shares = {}
    for device in dict.fromkeys([*senders, *receivers]):
        here, there = senders.get(device, 0) / sent, receivers.get(device, 0) / taken
        shares[device] = here * (1.0 - there) + there * (1.0 - here)
    return shares


def with_message_cost(
    graph: StreamGraph, mips: float, timeout: float | None = BufferSettings().timeout
) -> StreamGraph:
    """Add the assumed cost of messages to a measured graph, and their number in its CPU.

    Without a buffer timeout only full buffers are sent, whose number does not depend on the number
    of subtasks, so the graph stays as it is.

    If the constant load of an operator was separated, its CPU per tuple contains no messages,
    because their number hardly depends on the rate.

    ``timeout``: buffer timeout in seconds; 0 if every tuple is sent at once, None if there is none.

    >>> from streamplace.model import Operator, Stream
    >>> ends = [Operator("a", ipt=1e6, rate=40, parallelism=2), Operator("b", ipt=1e6)]
    >>> graph = StreamGraph.of("pair", ends, [Stream("a", "b", partitioning="rebalance")])
    >>> measured = with_message_cost(graph, 1000.0)
    >>> round(measured.attributes["messages per tuple of b"], 6)
    0.333333
    >>> measured.charged_constant.tolist()
    [0.0, 0.0]
    """
    if timeout is None:
        return graph
    facts: dict[str, str | float] = {
        MESSAGE_COST: (
            f"assumed to be {1e6 * ASSUMED_SECONDS:g} µs of a core per buffer that is sent from "
            f"one subtask to another, with a buffer timeout of {1e3 * timeout:g} ms"
        ),
        MESSAGE_IPT: ASSUMED_SECONDS * mips * 1e6,
        BUFFER_TIMEOUT: timeout,
    }
    costly = replace(graph, attributes={**graph.attributes, **facts})
    loads, operators = costly.message_loads, graph.operators
    if loads is None:
        return graph
    messages, rate = loads.messages(operators.parallelism), graph.input_rate
    contains = (rate > 0) & (messages > 0) & (graph.charged_ipt > 0)
    facts |= {
        MESSAGES_OF + operators.name[v]: float(messages[v] / rate[v])
        for v in np.flatnonzero(contains).tolist()
    }
    return replace(graph, attributes={**graph.attributes, **facts})


def with_local_cost(graph: StreamGraph, payloads: Sequence[float], mips: float) -> StreamGraph:
    """Return the graph with the costs as ``ipt`` of streams, deducted from that of operators.

    The sum of both is unchanged for every operator, per tuple and for both ends. Where an
    operator would have less than none, the costs of its streams are reduced.

    ``payloads``: bytes per tuple of every stream.
    """
    sizes = np.array(payloads, np.float64) + BYTES_OF_A_TUPLE
    each = 2 * LOCAL_PER_BYTE * sizes * mips * 1e6
    before = graph.operators.ipt
    parts = _charged(graph, each)
    ratio = np.divide(before, parts, out=np.ones_like(parts), where=parts > before)
    each = each * np.minimum(ratio[graph.streams.source], ratio[graph.streams.target])
    left = np.maximum(before - _charged(graph, each), 0.0)
    return _with_ipt(graph, left, each)


def _charged(graph: StreamGraph, each: Floats) -> Floats:
    """Cost per tuple of the streams of each operator, without its own work."""
    return _with_ipt(graph, np.zeros_like(graph.operators.ipt), each).charged_ipt


def _with_ipt(graph: StreamGraph, work: Floats, each: Floats) -> StreamGraph:
    operators = replace(graph.operators, ipt=work)
    return replace(
        graph, operators=operators, streams=replace(graph.streams, operators=operators, ipt=each)
    )
