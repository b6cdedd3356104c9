"""Uneven shares of the subtasks of an operator in its tuples, from counts.

Flink sends every tuple of a keyed stream to the subtask that owns its key, so popular keys make
some subtasks busier than others in any placement. So do partitioners of the program, and a number
of partitions that is no multiple of the number of a source's subtasks. The input of a source that
reports its lag includes the lag.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from streamplace.flink.cpu.charging import RunningSubtask
from streamplace.flink.rest.plan import Edge, FlinkTask
from streamplace.model.arrays import Floats
from streamplace.model.key_groups import subtask_parts

MIN_TUPLES = 1000.0
"""Minimum number of tuples of an operator whose shares are compared."""
MIN_SKEW = 0.05
"""Minimum difference between a subtask's share and its expected share, relative to the latter."""
MIN_SKEW_ERRORS = 4.0
"""Minimum difference in standard deviations of the number of tuples."""
MIN_IDLE_SHARE = 0.2
"""Minimum idle share of the time of a subtask of a source that emits all tuples that arrive."""
Shares = Mapping[str, Sequence[float]]
"""Operator → share of its tuples that each of its subtasks reads, if uneven."""


def key_shares(
    tasks: Sequence[FlinkTask],
    edges: Sequence[Edge],
    subtasks: Mapping[str, Sequence[RunningSubtask]],
    arrived: Mapping[str, Sequence[float]] = MappingProxyType({}),
) -> dict[str, tuple[float, ...]]:
    """Shares of the subtasks of operators whose shares are clearly uneven.

    The expected shares are the shares of the key groups if all inputs are keyed, else equal.
    Operators with an input that Flink distributes evenly are left out, because counts do not
    separate the inputs. So are sources whose input is unknown and that have a subtask which emits
    less than others and may be held back, by back-pressure or by a slow device.

    ``subtasks``: task → its subtasks, in order, with the number of tuples that each read and sent.
    ``arrived``: source → tuples that have arrived for each of its subtasks, if known.
    """
    uneven = {}
    for task in tasks:
        rows = subtasks.get(task.id, ())
        inputs = [edge for edge in edges if edge.target == task.id]
        divided = [edge for edge in inputs if not edge.is_broadcast]
        is_mixed = any(edge.partitioning != "hash" and not edge.is_uneven for edge in divided)
        if task.parallelism < 2 or len(rows) != task.parallelism or is_mixed:
            continue
        read = np.array([subtask.read for subtask in rows], np.float64)
        if not inputs and not read.sum() > 0:  # most versions of Flink do not count it
            read = np.array([subtask.wrote for subtask in rows], np.float64)
        is_known = bool(inputs) or task.id in arrived
        read = np.array(arrived.get(task.id, read), np.float64)
        is_keyed = bool(inputs) and not any(edge.is_uneven for edge in inputs)
        groups = task.max_parallelism if is_keyed else 0
        surplus = _surplus(read, 1 / subtask_parts([groups], [task.parallelism]))
        slow = [subtask for subtask, excess in zip(rows, surplus, strict=True) if excess < 0]
        if surplus.any() and (is_known or all(map(_emits_all, slow))):
            uneven[task.name] = tuple((read / read.sum()).tolist())
    return uneven


def _surplus(read: Floats, parts: Floats) -> Floats:
    """Tuples by which each subtask clearly exceeds or misses its expected share; otherwise 0."""
    if not read.sum() >= MIN_TUPLES:  # also if it is NaN
        return np.zeros(len(read))
    expected = read.sum() * parts
    limits = np.maximum(MIN_SKEW * expected, MIN_SKEW_ERRORS * np.sqrt(expected))
    return np.where(np.abs(read - expected) > limits, read - expected, 0.0)


def _emits_all(source: RunningSubtask) -> bool:
    """Whether a subtask of a source emits all arriving tuples: it has idle time, or has ended."""
    total = source.idle + source.busy + source.blocked
    return source.has_ended or (source.idle > 0 and source.idle >= MIN_IDLE_SHARE * total)
