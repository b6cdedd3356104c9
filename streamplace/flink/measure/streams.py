"""Tuples/s and bytes per tuple of streams, and the cost of sending a tuple to another thread.

The CPU of the sending and receiving threads of a TaskManager is fitted like the CPU of operators
(`measure.cost_fit`), over all measured TaskManagers and layouts, by

    cores = fixed + per byte · (bytes/s + BYTES_PER_TUPLE · tuples/s)

of the exchange with other TaskManagers. The fixed part is for buffers that Flink sends every 100 ms
even if they are nearly empty, for credits and for wake-ups. It is reserved on all TaskManagers; the
other part is the ``overhead`` of remote tuples.

Threads that wait for a CPU send many buffers at a time, each at a lower cost. So TaskManagers
without free CPU are ignored, unless no others exchange tuples.

Messages are buffers that Flink sends once per buffer timeout (`streamplace.model.buffers`). Their
cost for operators is assumed: it cannot be fitted from metrics, because ``numBuffersOut`` does not
count buffers that are sent before they are full. The CPU of an operator contains its messages at
the measured rate and parallelism; attributes of the graph have their number, so that they are not
charged twice.
"""

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from streamplace.flink.measure.cost_fit import Observation, Prior, task_cost
from streamplace.flink.measure.sampling import Activity
from streamplace.flink.pin.hook import WRITER
from streamplace.flink.rest.plan import Edge, FlinkTask
from streamplace.flink.rest.settings import DEFAULT_BUFFER_TIMEOUT
from streamplace.model import StreamGraph
from streamplace.model.buffers import BUFFER_TIMEOUT, MESSAGE_IPT, MESSAGES_OF
from streamplace.model.key_groups import joined_subtasks

COMMITTERS = (": Committer", ": Global Committer")
"""Suffixes of the names of committers of two-phase sinks; some sinks have both."""


def carried_by_streams(
    tasks: Sequence[FlinkTask], edges: Sequence[Edge], activity: Mapping[str, Activity]
) -> tuple[dict[int, float], dict[int, float], list[str]]:
    """Tuples/s of all streams, and bytes per tuple of those with tuples, by index; and doubts.

    The input that a task counts is authoritative; the output of other tasks only divides it among
    the streams. Output may include tuples that a task does not send: the writer of a two-phase sink
    counts the records that it writes to an external system, but sends its committer one message per
    checkpoint. So does a task with a chained sink, besides the tuples that it forwards. The output
    of a task with several streams is not used, because a tuple for all of them counts once.
    """
    streams = [(edge.source, edge.target) for edge in edges]
    read, written = _rates(activity, "numRecordsIn"), _rates(activity, "numRecordsOut")
    outputs = Counter(edge.source for edge in edges)
    weights = {e: written.get(edge.source, 0.0) * edge.copies for e, edge in enumerate(edges)}
    elsewhere = {task.id for task in tasks if _writes_elsewhere(task, tasks)}
    alone = {
        edge.source: weights[e]
        for e, edge in enumerate(edges)
        if outputs[edge.source] == 1
        and edge.source in written
        and not (edge.source in elsewhere and edge.target in read)
    }
    tuples, guessed = shares(streams, read, alone, weights)
    for task, total in read.items():
        inputs = [e for e, edge in enumerate(edges) if edge.target == task]
        counted = sum(tuples[e] for e in inputs)
        if counted > 0:
            tuples.update({e: tuples[e] * total / counted for e in inputs})
    sent = _rates(activity, "numBytesOut")  # counts output to several tasks once for each
    sizes, mixed = shares(streams, _rates(activity, "numBytesIn"), sent, tuples)
    name_of = {task.id: task.name for task in tasks}
    labels = [f"{name_of[source]}→{name_of[target]}" for source, target in streams]
    doubts = [f"selectivity of {labels[e]}: guessed, several inputs mix" for e in sorted(guessed)]
    doubts += [f"payload of {labels[e]}: a mean, several inputs mix" for e in sorted(mixed)]
    payloads = {e: sizes[e] / amount for e, amount in tuples.items() if amount}
    return tuples, payloads, doubts


def _rates(activity: Mapping[str, Activity], metric: str) -> dict[str, float]:
    """Task → value of a metric, for the tasks that have it."""
    return {task: row.rates[metric] for task, row in activity.items() if metric in row.rates}


def _writes_elsewhere(sender: FlinkTask, tasks: Sequence[FlinkTask]) -> bool:
    """Whether a task contains a sink that sends nothing to a committer in another task."""
    others = {name for task in tasks if task.id != sender.id for name in task.operators}
    sinks = (name.removesuffix(WRITER) for name in sender.operators if name.endswith(WRITER))
    return any(sink + COMMITTERS[0] not in others for sink in sinks)


def shares(
    streams: Sequence[tuple[str, str]],
    received: Mapping[str, float],
    sent: Mapping[str, float],
    weights: Mapping[int, float],
) -> tuple[dict[int, float], set[int]]:
    """Amount of each stream, from sums at the ends of tasks, and the streams that are guessed.

    A stream that is alone at one of its ends carries the sum there, and the last unknown stream of
    a sum carries its remainder. Streams that are still unknown share the remainder of their
    target's sum by weight, or evenly if all weights are 0.

    Sums of fewest streams come first, because a remainder has the errors of the other streams; then
    inputs, because Flink counts output by whole buffers.

    ``received``, ``sent``: known sums by task.
    ``weights``: weight of each stream, for streams that share a remainder.

    >>> streams = [("src", "a"), ("src", "b"), ("a", "sink"), ("b", "sink")]
    >>> shares(streams, {"a": 9.0, "b": 8.0, "sink": 20.0}, {"a": 4.0}, {})
    ({0: 9.0, 1: 8.0, 2: 4.0, 3: 16.0}, set())
    """
    inputs: dict[str, list[int]] = defaultdict(list)
    outputs: dict[str, list[int]] = defaultdict(list)
    for e, (source, target) in enumerate(streams):
        inputs[target].append(e)
        outputs[source].append(e)
    sums = [(numbers, received[task]) for task, numbers in inputs.items() if task in received]
    sums += [(numbers, sent[task]) for task, numbers in outputs.items() if task in sent]
    sums.sort(key=lambda pair: len(pair[0]))
    amounts: dict[int, float] = {}
    mixed = set[int]()

    def remainder(numbers: Sequence[int], total: float) -> float:
        return max(0.0, total - sum(amounts.get(e, 0.0) for e in numbers))

    while solvable := next((s for s in sums if sum(e not in amounts for e in s[0]) == 1), None):
        numbers, total = solvable
        (e,) = (e for e in numbers if e not in amounts)
        amounts[e] = remainder(numbers, total)
    for task, numbers in inputs.items():
        unknown = [e for e in numbers if e not in amounts]
        total = remainder(numbers, received.get(task, 0.0))
        parts = [weights.get(e, 0.0) for e in unknown]
        parts = parts if any(parts) else [1.0] * len(unknown)
        for e, part in zip(unknown, parts, strict=True):
            amounts[e] = total * part / sum(parts)
        mixed.update(unknown)
    return dict(sorted(amounts.items())), mixed


BYTES_PER_TUPLE = 6.4
"""Bytes that cost as much as the transfer of one tuple, from benchmarks/calibration.py."""
SENDING_FIXED = Prior(0.012, 0.6)
"""Fixed cores of a TaskManager that exchanges tuples, from five jobs on four TaskManagers."""
PER_BYTE = Prior(3e-9, 0.7)
"""Core seconds per byte at each end, from the same jobs (docs/assets/calibration.jsonl)."""
MESSAGE_SECONDS = 115e-6
"""Core seconds per message, of both ends and the network, assumed: the middle value of jobs of one
rate with different buffer timeouts."""
NETWORK_KEY = ""
"""Key of the network threads among the observed operators; names of operators are not empty."""


class RemoteFlow(NamedTuple):
    """Traffic of a TaskManager with others."""

    tuples: float  # tuples/s
    traffic: float  # bytes/s

    @property
    def weight(self) -> float:
        """Bytes per second, with `BYTES_PER_TUPLE` for each tuple."""
        return self.traffic + BYTES_PER_TUPLE * self.tuples


class SendingCost(NamedTuple):
    """Core seconds per remote tuple at each end, and in addition per byte."""

    per_tuple: float
    per_byte: float
    is_assumed: bool = False
    fixed: float = 0.0  # cores of each TaskManager

    def slower(self, factor: float) -> "SendingCost":
        """Return the costs on cores that are slower by this factor."""
        return self._replace(per_tuple=factor * self.per_tuple, per_byte=factor * self.per_byte)

    def rounded(self) -> "SendingCost":
        """Return the costs rounded to three digits."""
        per_tuple, per_byte = float(f"{self.per_tuple:.3g}"), float(f"{self.per_byte:.3g}")
        return self._replace(per_tuple=per_tuple, per_byte=per_byte)


ASSUMED = SendingCost(5.8e-9 * BYTES_PER_TUPLE, 5.8e-9, is_assumed=True)
"""Cost on a whole core, from benchmarks/calibration.py; for clusters without remote tuples.

It includes the fixed cost, because layouts may differ in their remote tuples.
"""


def network_loads(
    network: Mapping[str, float], flows: Mapping[str, RemoteFlow], full: Container[str] = ()
) -> list[Observation]:
    """Bytes per second and cores of the TaskManagers that exchange tuples with others.

    ``network``: TaskManager → cores of its network threads.
    ``full``: TaskManagers without free CPU.
    """
    sending = {device: flow for device, flow in flows.items() if flow.tuples > 0}
    fitted = {device: flow for device, flow in sending.items() if device not in full} or sending
    return [Observation(flow.weight, network.get(d, 0.0)) for d, flow in fitted.items()]


def sending_cost(loads: Iterable[Observation]) -> SendingCost | None:
    """Fit the CPU of network threads; None if no tuple goes to another TaskManager.

    >>> cost = sending_cost([Observation(1e5, 0.0102), Observation(9e6, 0.028)])
    >>> round(cost.fixed, 3), round(1e9 * cost.per_byte, 1)
    (0.01, 2.0)
    """
    rows = list(loads)
    if not rows:
        return None
    fixed, per_byte = task_cost(rows, SENDING_FIXED, PER_BYTE)
    return SendingCost(BYTES_PER_TUPLE * per_byte, per_byte, fixed=fixed)


def remote_flows(
    tasks: Sequence[FlinkTask],
    edges: Sequence[Edge],
    activity: Mapping[str, Activity],
    devices: Mapping[str, Sequence[str]],
) -> dict[str, RemoteFlow]:
    """TaskManager → traffic of a job with other TaskManagers.

    ``devices``: task → TaskManager of each of its subtasks, in order.
    """
    tuples: dict[str, float] = defaultdict(float)
    traffic: dict[str, float] = defaultdict(float)
    carried, payloads, _ = carried_by_streams(tasks, edges, activity)
    for e, edge in enumerate(edges):
        amount, size = carried[e], payloads.get(e, 0.0)
        for device, part in _crossing(edge, devices).items():
            tuples[device] += amount * part
            traffic[device] += amount * part * size
    return {device: RemoteFlow(tuples[device], traffic[device]) for device in tuples}


def _crossing(edge: Edge, devices: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """Device → share of a stream's tuples that it exchanges with other devices."""
    senders, receivers = devices[edge.source], devices[edge.target]
    if not edge.is_pointwise:
        return remote_shares(Counter(senders), Counter(receivers))
    pairs = np.arange(max(len(senders), len(receivers)))
    joined = joined_subtasks(pairs, np.array(len(senders)), np.array(len(receivers)))
    shares: dict[str, float] = defaultdict(float)
    for i, j, outputs in zip(*(column.tolist() for column in joined), strict=True):
        if senders[i] != receivers[j]:
            for device in (senders[i], receivers[j]):
                shares[device] += 1 / (len(senders) * outputs)
    return shares


def remote_shares(senders: Mapping[str, int], receivers: Mapping[str, int]) -> dict[str, float]:
    """Device → share of a stream's tuples that it exchanges with other devices.

    Every sender distributes its tuples evenly over all receivers, as in a stream that is not
    pointwise.

    >>> remote_shares({"a": 1}, {"a": 1, "b": 3})
    {'a': 0.75, 'b': 0.75}
    """
    sent, received = sum(senders.values()), sum(receivers.values())
    shares = {}
    for device in dict.fromkeys([*senders, *receivers]):
        here, there = senders.get(device, 0) / sent, receivers.get(device, 0) / received
        shares[device] = here * (1.0 - there) + there * (1.0 - here)
    return shares


def with_message_cost(
    graph: StreamGraph, mips: float, timeout: float | None = DEFAULT_BUFFER_TIMEOUT
) -> StreamGraph:
    """Add the assumed cost of messages to a measured graph, and their number in its CPU.

    Without a buffer timeout, Flink sends only full buffers. Their number does not depend on the
    number of subtasks, so the graph stays as it is.

    If the constant load of an operator was separated, its CPU per tuple includes no messages,
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
        MESSAGE_IPT: MESSAGE_SECONDS * mips * 1e6,
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
