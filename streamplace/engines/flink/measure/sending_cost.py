"""Cost of tuples between TaskManagers, per tuple and per byte, and of messages.

The CPU of the threads that send and receive is fitted, over all TaskManagers, by

    cores = per tuple · tuples/s + per byte · bytes/s     (of what each sends and receives)

If all tuples have about the same size, the two parts cannot be separated. Then a tuple is assumed
to cost as much as `BYTES_OF_A_TUPLE` of its bytes.

Threads that wait for a CPU send many buffers at a time, each for less. So TaskManagers without CPU
left are left out, unless all that exchange tuples are such.

Messages are buffers that Flink sends once per buffer timeout, however little is in them.
`streamplace.model.buffers` has the formula. What a message costs cannot be fitted from metrics,
because ``numBuffersOut`` does not count buffers that are sent before they are full, so it is
assumed. The CPU of an operator contains its messages at the measured rate and parallelism; the
attributes say how many, so that they are not charged twice.
"""

from collections import Counter, defaultdict
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from streamplace.engines.flink.measure.carried_tuples import carried_by_streams
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

BYTES_OF_A_TUPLE = 6.4
LEAST_SHARE, ENOUGH = 0.01, 10_000.0
"""Least tuples/s that must cross: this share of all tuples/s of streams, or so many.

The threads that send and receive also work while hardly a tuple crosses: for heartbeats,
checkpoints, and buffers that are sent once per timeout. If few tuples cross, this would be the cost
of each of them; a layout in which the job's other tuples cross, too, would be charged for it many
times. From 10,000 tuples/s on, it is less than what they cost, however many stay.
"""
DIFFERENT = 2.0
"""Minimum ratio of mean tuple sizes for separating the two parts."""
MESSAGE_COST = "message cost"
"""Attribute with the origin of the cost of messages."""
ASSUMED_SECONDS = 115e-6
"""Core seconds per message of both ends and the network; middle of what benchmarks/buffers.py gave.
"""


class RemoteFlow(NamedTuple):
    """Tuples and bytes per second that a TaskManager exchanges with others."""

    tuples: float
    traffic: float

    def plus(self, other: "RemoteFlow") -> "RemoteFlow":
        """Sum of the flows of two jobs."""
        return RemoteFlow(self.tuples + other.tuples, self.traffic + other.traffic)


class SendingCost(NamedTuple):
    """Core seconds per remote tuple at each end, and in addition per byte."""

    per_tuple: float
    per_byte: float
    # Whether the two parts were measured separately; else their ratio is assumed.
    is_split: bool = True
    is_assumed: bool = False  # whether both parts are assumed
    # Whether they were measured where no CPU was left, so that they may be too low elsewhere.
    is_of_full: bool = False

    def slower(self, factor: float) -> "SendingCost":
        """Return the costs on cores that are slower by this factor."""
        return self._replace(per_tuple=factor * self.per_tuple, per_byte=factor * self.per_byte)

    def rounded(self) -> "SendingCost":
        """Return the costs rounded to three digits."""
        per_tuple, per_byte = float(f"{self.per_tuple:.3g}"), float(f"{self.per_byte:.3g}")
        return self._replace(per_tuple=per_tuple, per_byte=per_byte)


ASSUMED = SendingCost(5.8e-9 * BYTES_OF_A_TUPLE, 5.8e-9, is_split=False, is_assumed=True)
"""On a full core, from benchmarks/calibration.py; for clusters without remote tuples."""


def sending_cost(
    network: Mapping[str, float], flows: Mapping[str, RemoteFlow], full: Container[str] = ()
) -> SendingCost | None:
    """Fit the CPU of network threads; None if no tuple goes to another TaskManager.

    ``network``: TaskManager → cores of its threads that send and receive.
    ``full``: TaskManagers without CPU left.

    >>> flows = {"a": RemoteFlow(1000, 1e5), "b": RemoteFlow(1000, 1e6)}
    >>> fitted = sending_cost({"a": 0.0012, "b": 0.003}, flows)
    >>> round(1e6 * fitted.per_tuple, 3), round(1e9 * fitted.per_byte, 3)
    (1.0, 2.0)
    """
    sending = {device: flow for device, flow in flows.items() if flow.tuples > 0}
    if not sending:
        return None
    fitted = {device: flow for device, flow in sending.items() if device not in full} or sending
    found = _cost([(*flow, network.get(device, 0.0)) for device, flow in fitted.items()])
    return found._replace(is_of_full=all(device in full for device in fitted))


def _cost(rows: Sequence[tuple[float, float, float]]) -> SendingCost:
    """Fit the cost to the tuples/s, bytes/s and cores of TaskManagers."""
    tuples, traffic, cores = np.array(rows, np.float64).T
    sizes = traffic / tuples
    if sizes.min() > 0 and sizes.max() >= DIFFERENT * sizes.min():
        return SendingCost(*_fitted(np.stack([tuples, traffic], axis=1), cores))
    weights = BYTES_OF_A_TUPLE * tuples + traffic
    per_byte = float(cores.sum() / weights.sum())
    return SendingCost(BYTES_OF_A_TUPLE * per_byte, per_byte, is_split=False)


def _fitted(amounts: Floats, cores: Floats) -> tuple[float, float]:
    """Least squares with two non-negative coefficients."""
    both = np.linalg.lstsq(amounts, cores, rcond=None)[0]
    if (both >= 0).all():
        return float(both[0]), float(both[1])
    alone = (amounts * cores[:, None]).sum(axis=0) / (amounts**2).sum(axis=0)
    rest = ((cores[:, None] - amounts * alone) ** 2).sum(axis=0)
    return (float(alone[0]), 0.0) if rest[0] <= rest[1] else (0.0, float(alone[1]))


def remote_flows(
    tasks: Sequence[FlinkTask],
    edges: Sequence[Edge],
    seen: Mapping[str, Activity],
    devices: Mapping[str, Sequence[str]],
) -> dict[str, RemoteFlow]:
    """TaskManager → tuples and bytes of a job that it exchanges with others.

    Empty if too few tuples cross to measure their cost: see `LEAST_SHARE`.

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
    crossing = sum(tuples.values()) / 2  # each counts at both ends
    if crossing < min(LEAST_SHARE * sum(carried.tuples.values()), ENOUGH):
        return {}
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
