"""Uneven shares of the subtasks of an operator in its tuples, by counts.

Flink sends every tuple of a keyed stream to the subtask that owns its key, so popular keys make
some subtasks busier than others in any placement. So do partitioners of the program, and a number
of partitions that is no multiple of a source's subtasks. The input of a source that reports its lag
includes the lag.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from streamplace.flink.cpu.charging import RunningSubtask
from streamplace.flink.rest.plan import Edge, FlinkTask
from streamplace.model.arrays import Floats
from streamplace.model.key_groups import subtask_parts

MIN_TUPLES = 1000.0
"""Minimum number of tuples of an operator with known shares."""
SKEWED = 0.05
"""Minimum difference between a subtask's share and the expected one, relative to it."""
SHARE_ERRORS = 4.0
"""Minimum difference in standard deviations of the number of tuples."""
WAITS = 0.2
"""Minimum part of the time that a subtask of a source waits if it emits all that arrives."""
Shares = Mapping[str, Sequence[float]]
"""Operator → share of its tuples that each of its subtasks reads, if uneven."""


def key_shares(
    tasks: Sequence[FlinkTask],
    edges: Sequence[Edge],
    subtasks: Mapping[str, Sequence[RunningSubtask]],
    arrived: Mapping[str, Sequence[float]] = MappingProxyType({}),
) -> dict[str, tuple[float, ...]]:
    """Shares of the subtasks of every operator where they are clearly uneven.

    The expected shares are those of the key groups if all inputs are keyed, else equal. Operators
    with inputs that Flink distributes evenly are left out, because their counts mix both. So are
    sources with a subtask that emits less than others and may be held back, by back-pressure or by
    a slow device, unless the input of their subtasks is known.

    ``subtasks``: task → its subtasks, in order, with the number of tuples that each read and sent.
    ``arrived``: source → tuples that have arrived for each of its subtasks, where that is known.
    """
    answer = {}
    for task in tasks:
        own = subtasks.get(task.id, ())
        inputs = [edge for edge in edges if edge.target == task.id]
        divided = [edge for edge in inputs if not edge.is_broadcast]  # others go to every subtask
        is_dealt = any(edge.partitioning != "hash" and not edge.is_uneven for edge in divided)
        if task.parallelism < 2 or len(own) != task.parallelism or is_dealt:
            continue
        read = np.array([subtask.read for subtask in own], np.float64)
        if not inputs and not read.sum() > 0:  # most versions of Flink do not count it
            read = np.array([subtask.wrote for subtask in own], np.float64)
        is_known = bool(inputs) or task.id in arrived
        read = np.array(arrived.get(task.id, read), np.float64)
        is_keyed = bool(inputs) and not any(edge.is_uneven for edge in inputs)
        groups = task.max_parallelism if is_keyed else 0
        surplus = _surplus(read, 1 / subtask_parts([groups], [task.parallelism]))
        slow = [subtask for subtask, more in zip(own, surplus, strict=True) if more < 0]
        if surplus.any() and (is_known or all(map(_waits, slow))):
            answer[task.name] = tuple((read / read.sum()).tolist())
    return answer


def _surplus(read: Floats, parts: Floats) -> Floats:
    """Tuples by which each subtask clearly exceeds or misses its expected share; otherwise 0."""
    if not read.sum() >= MIN_TUPLES:  # NaN is not, either
        return np.zeros(len(read))
    expected = read.sum() * parts
    limits = np.maximum(SKEWED * expected, SHARE_ERRORS * np.sqrt(expected))
    return np.where(np.abs(read - expected) > limits, read - expected, 0.0)


def _waits(source: RunningSubtask) -> bool:
    """Whether a subtask of a source is idle for part of its time, or has ended."""
    if source.has_ended:
        return True
    return source.idle > 0 and source.idle >= WAITS * (source.idle + source.busy + source.blocked)
