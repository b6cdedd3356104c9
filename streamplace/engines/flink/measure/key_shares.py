"""Shares of an operator's tuples that each of its subtasks reads, where keys decide.

Flink sends every tuple of a keyed stream to the subtask that owns its key, so popular keys make
some subtasks busier than others, whatever the placement. The shares are counted by subtask. They
belong to the numbers of subtasks, and a placement that is pinned does not decide which of an
operator's subtasks runs where: `possible_orders` returns some of the ways.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from streamplace.engines.flink.cpu.task_cpu import RunningSubtask
from streamplace.engines.flink.rest.plan import Edge, FlinkTask
from streamplace.model.key_groups import subtask_parts

Shares = Mapping[str, Sequence[float]]
"""Operator → part of its tuples that each of its subtasks reads, for those with skewed keys."""
LEAST_TUPLES = 1000.0
"""Minimum number of tuples of an operator from which its shares are known."""
SKEWED = 0.05
"""Minimum difference between a subtask's share and that of its key groups, relative to it."""
CLEAR = 4.0
"""The same in standard deviations of a random number of tuples."""
ORDERS = 8
"""Number of sampled orders that represent all possible orders of a pinned placement."""


def key_shares(
    tasks: Sequence[FlinkTask], edges: Sequence[Edge], subtasks: Iterable[RunningSubtask]
) -> dict[str, tuple[float, ...]]:
    """Shares of the subtasks of every operator whose keys are clearly skewed.

    Operators with other inputs than keyed streams are left out, because their counts mix both.

    Parameters
    ----------
    subtasks
        Subtasks of the job with the number of tuples that each read.
    """
    counts: dict[str, dict[int, float]] = {}
    for one in subtasks:
        counts.setdefault(one.vertex, {})[one.number] = one.read
    answer = {}
    for task in tasks:
        kinds = {edge.partitioning for edge in edges if edge.target == task.id}
        read = [counts.get(task.id, {}).get(i, math.nan) for i in range(task.parallelism)]
        if kinds == {"hash"} and _is_skewed(task, read):
            whole = sum(read)
            answer[task.name] = tuple(number / whole for number in read)
    return answer


def _is_skewed(task: FlinkTask, read: Sequence[float]) -> bool:
    whole = sum(read)
    if task.parallelism < 2 or not whole >= LEAST_TUPLES:  # NaN is not, either
        return False
    expected = whole / subtask_parts([task.max_parallelism], [task.parallelism])
    limits = np.maximum(SKEWED * expected, CLEAR * np.sqrt(expected))
    return bool((np.abs(np.asarray(read) - expected) > limits).any())


def possible_orders(
    layout: Mapping[str, Sequence[str]], shares: Shares
) -> list[dict[str, list[str]]]:
    """Layouts that may result if a layout is pinned; only itself if it has no skewed keys.

    Subtasks with the same number share a slot where their operators have the same devices, and
    slots go to devices in any order.

    >>> orders = possible_orders({"sum": ["a", "b"], "out": ["a", "b"]}, {"sum": [0.9, 0.1]})
    >>> sorted(tuple(order["sum"]) for order in orders)
    [('a', 'b'), ('b', 'a')]
    >>> all(order["sum"] == order["out"] for order in orders)
    True
    """
    given = {name: list(devices) for name, devices in layout.items()}
    if not any(len(set(given.get(name, ()))) > 1 for name in shares):
        return [given]
    vectors = dict.fromkeys(tuple(devices) for devices in given.values())
    answer = [given]
    for seed in range(ORDERS):
        random = np.random.default_rng(seed)
        mixed = {vector: random.permutation(vector).tolist() for vector in vectors}
        order = {name: mixed[tuple(devices)] for name, devices in given.items()}
        if order not in answer:
            answer.append(order)
    return answer
