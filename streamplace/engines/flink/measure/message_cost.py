"""Cost of messages: buffers that Flink sends once per buffer timeout, however little is in them.

`streamplace.model.buffers` has the formula. What a message costs cannot be fitted from metrics,
because ``numBuffersOut`` does not count buffers that are sent before they are full, so it is
assumed. The CPU of an operator contains its messages at the measured rate and parallelism; the
attributes say how many, so that they are not charged twice.
"""

from dataclasses import replace

import numpy as np

from streamplace.engines.flink.rest.buffer_settings import BufferSettings
from streamplace.model.buffers import (
    BUFFER_TIMEOUT,
    MESSAGE_IPT,
    MESSAGES_OF,
)
from streamplace.model.graph import StreamGraph

MESSAGE_COST = "message cost"
"""Attribute with the origin of the cost of messages."""
ASSUMED_SECONDS = 115e-6
"""Core seconds per message of both ends and the network; middle of what benchmarks/buffers.py gave.
"""


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
    contains = (rate > 0) & (messages > 0) & (operators.constant == 0)
    facts |= {
        MESSAGES_OF + operators.name[v]: float(messages[v] / rate[v])
        for v in np.flatnonzero(contains).tolist()
    }
    return replace(graph, attributes={**graph.attributes, **facts})
