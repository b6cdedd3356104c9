"""Messages between subtasks: buffers that are sent before they are full, and their CPU.

An engine such as Flink sends the buffer of a channel once per buffer timeout, unless it is empty.
With c channels between the subtasks of two operators, r tuples/s on each of them
and a timeout of T seconds, that is

    messages/s = c · r / (1 + r · T).

A message takes a number of instructions, half of them of the sending and half of the receiving
operator, and equal parts of all their subtasks, on one device as between two. With p sending and q
receiving subtasks c is p · q, p for a forward and max(p, q) for a rescaled stream. Streams in a
chain have no channels.

The CPU of a measured operator contains the messages of its measured rate and parallelism. An
operator is therefore charged for the larger of the messages that it sends and receives and those
that this CPU contains: more subtasks cost more, and fewer get no credit. The charge never falls
where the rate or a parallelism grows, and is never below that of the CPU per tuple alone.

Attributes of the graph hold the figures, because they scale with its ``ipt``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from streamplace.errors import GraphError
from streamplace.model.arrays import ROUNDING, Bools, Floats, Ints
from streamplace.model.message_text import quoted
from streamplace.model.operators import Operators
from streamplace.model.streams import CHAINED, RESCALE, Streams
from streamplace.model.units import MAX_VALUE

if TYPE_CHECKING:
    from streamsim.flow import Flow

MESSAGE_IPT = "message ipt"
"""Attribute of a graph: instructions per message, of both ends together."""
BUFFER_TIMEOUT = "buffer timeout"
"""Attribute of a graph: seconds after which a buffer is sent although it is not full."""
MESSAGES_OF = "messages per tuple of "
"""Prefix of attributes: messages per tuple that an operator's measured ``ipt`` contains."""


@dataclass(frozen=True, slots=True, eq=False)
class MessageLoads:
    """CPU of the messages of a graph of N operators and M streams, at any parallelism."""

    ipt: float  # instructions per message, of both ends together
    timeout: float  # seconds
    source: Ints  # [M]
    target: Ints  # [M]
    tuples: Floats  # [M] per second
    forward: Bools  # [M] whether a stream joins subtask i to subtask i
    plain: Bools  # [M] whether it does so if the parallelisms are equal
    rescaled: Bools  # [M] whether it joins neighbours, and so subtasks i if these are equal
    chained: Bools  # [M] whether it has no channels
    contained: Floats  # [N] instructions per second for messages in the operators' own work

    @classmethod
    def of(
        cls,
        attributes: Mapping[str, object],
        operators: Operators,
        streams: Streams,
        flow: "Flow",
        ipt: Floats,
    ) -> "MessageLoads | None":
        """Messages of a graph at its rate; None if its attributes do not say what one costs.

        ``ipt`` are the instructions per tuple that operators are charged for, [N].
        """
        cost = message_cost(attributes)
        if cost is None or not len(streams):
            return None
        kind = np.array(streams.partitioning, dtype="U9")[flow.stream_index]
        keyed = operators.max_parallelism[flow.target] > 0
        per_tuple = [_amount(attributes, MESSAGES_OF + name) for name in operators.name]
        # The constant load may contain messages, too, beyond the work for tuples.
        work = np.where(operators.constant > 0, np.inf, flow.input_rate * ipt)
        contained = 0.5 * cost[0] * np.array(per_tuple) * flow.input_rate
        return cls(
            *cost,
            source=flow.source,
            target=flow.target,
            tuples=flow.tuples,
            forward=(kind == "forward") | (kind == CHAINED),
            plain=(kind == "") & ~keyed,
            rescaled=kind == RESCALE,
            chained=kind == CHAINED,
            contained=np.minimum(contained, work),
        )

    def channels(self, parallelism: Ints) -> Floats:
        """Channels between the subtasks of the operators of each stream, [M]; 0 in a chain."""
        p = parallelism.astype(np.float64)
        sender, receiver = p[self.source], p[self.target]
        straight = self.forward | (self.plain & (sender == receiver))
        channels = np.where(straight, sender, sender * receiver)
        channels = np.where(self.rescaled, np.maximum(sender, receiver), channels)
        return np.where(self.chained, 0.0, channels)

    def messages(self, parallelism: Ints, times: float = 1.0) -> Floats:
        """Messages/s that each operator sends and receives, at a multiple of the rate, [N]."""
        channels, tuples = self.channels(parallelism), times * self.tuples
        on_each = np.divide(tuples, channels, out=np.zeros_like(tuples), where=channels > 0)
        sent = np.where(self.chained, 0.0, tuples / (1 + on_each * self.timeout))
        n = len(parallelism)
        both = np.bincount(self.source, sent, n) + np.bincount(self.target, sent, n)
        return np.asarray(both, np.float64)

    def more(self, parallelism: Ints, times: float = 1.0) -> Floats:
        """Instructions per second for messages that the ``ipt`` does not contain, [N]."""
        needed = 0.5 * self.ipt * self.messages(parallelism, times)
        missing = needed - times * self.contained
        return np.where(missing > ROUNDING * needed, missing, 0.0)


def message_cost(attributes: Mapping[str, object]) -> tuple[float, float] | None:
    """Instructions per message and buffer timeout of a graph; None if messages cost nothing.

    >>> message_cost({"message ipt": 2.5e5, "buffer timeout": 0.1})
    (250000.0, 0.1)
    """
    ipt = _amount(attributes, MESSAGE_IPT)
    if not ipt:
        return None
    if BUFFER_TIMEOUT not in attributes:
        raise GraphError(
            f"the graph has the attribute {quoted(MESSAGE_IPT)} without {quoted(BUFFER_TIMEOUT)}; "
            "give the seconds after which a buffer is sent"
        )
    return ipt, _amount(attributes, BUFFER_TIMEOUT)


def is_of_messages(attribute: str) -> bool:
    """Whether an attribute of a graph describes messages."""
    return attribute in (MESSAGE_IPT, BUFFER_TIMEOUT) or attribute.startswith(MESSAGES_OF)


def check_messages(attributes: Mapping[str, object]) -> None:
    """Raise GraphError if attributes of messages are no amounts, or one is missing."""
    message_cost(attributes)
    for name in attributes:
        if name.startswith(MESSAGES_OF):
            _amount(attributes, name)


def _amount(attributes: Mapping[str, object], name: str) -> float:
    value = attributes.get(name, 0.0)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MAX_VALUE:
        return float(value)
    raise GraphError(
        f"attribute {quoted(name)} is {quoted(value)}; it must be a number from 0 to {MAX_VALUE:g}"
    )
