"""A problem in tensors: features of its tasks (appendix D.1), and the data of its episodes.

As in the paper, the b-level path of a task is the longest one to an entry, the t-level path the
longest one to an exit; both count computing and sending, and begin with the task itself.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from streamplace.model.arrays import ROUNDING, Floats, Ints, Longs
from streamplace.model.devices import SLACK
from streamplace.model.problem import Problem
from streamplace.scheduling.tasks import mean_sendings, tasks_of

TASK_FEATURES = ("computing", "sending in", "sending out", "t-level", "b-level")


class TaskTensors(NamedTuple):
    """N tasks, E streams, D devices of up to C cores, U units of tasks that stay together.

    Rows are filled up with task N, unit U or device D, which do not exist.
    """

    features: Tensor  # [N, 5] `TASK_FEATURES`, each with mean 0 and deviation 1
    ends: Tensor  # [2, 2 E] sources and targets of the streams, forward and backward
    streams: Tensor  # [2 E, 2] mean seconds, with mean 0 and deviation 1; 1 forward, -1 backward
    before: Tensor  # [J, N + 1] task 2^j steps along the b-level path
    after: Tensor  # [J, N + 1] task 2^j steps along the t-level path
    to_exit: Tensor  # [N] seconds of the t-level path
    unit_s: Tensor  # [] mean seconds of a task that takes time, with its transfers
    work: Tensor  # [N, D] seconds, infinite where a task may not run
    outputs: Tensor  # [N, Q] the task itself, and the tasks that it sends to
    sent: Tensor  # [2, N, Q] bytes to each, and seconds that do not depend on the link
    links: Tensor  # [2, D, D] latency in seconds, and seconds per byte
    free: Tensor  # [D, C] when each core is free at first: at 0, or never if a device has fewer
    twins: Tensor  # [D, 2] each device, and the next one that is interchangeable with it
    unit: Tensor  # [N]
    rivals: Tensor  # [U, R] units that must not be on the same device
    allowed: Tensor  # [U, D] devices that a unit may run on, apart from memory and rivals
    memory: Tensor  # [U] bytes, [0] if memory has no limit
    room: Tensor  # [D] bytes, [0] if memory has no limit

    @classmethod
    def of(cls, problem: Problem) -> "TaskTensors":
        """Tensors of a problem on the CPU."""
        tasks, compiled, group = tasks_of(problem), problem.one_pass, problem.interchangeable
        n, n_units, into = tasks.n_tasks, len(tasks.member_start) - 1, tasks.in_streams
        # of all devices, whether a task may run there or not
        compute = compiled.work[:, compiled.devices["type"]].mean(axis=1)
        sending = mean_sendings(tasks)
        # Of equal paths, the first is that by the last task, along its first stream.
        last = into[np.argsort(-np.argsort(tasks.order)[tasks.target[into]], kind="stable")]
        pair = tasks.source[last], tasks.target[last]
        to_exit, after = longest_paths(*pair, compute, sending[last])
        to_entry, before = longest_paths(*pair[::-1], compute, sending[last])
        sent_in, sent_out = (np.bincount(ends, sending, n) for ends in (tasks.target, tasks.source))
        features = [standardised(x) for x in (compute, sent_in, sent_out, to_exit, to_entry)]
        forward, seconds = np.ones(len(sending)), np.tile(standardised(sending), 2)
        busy = [part.mean() for part in (compute[compute > 0], sending) if len(part)]
        itself, none = np.arange(n), np.zeros(n)
        source, target = (np.append(itself, ends) for ends in (tasks.source, tasks.target))
        order, start = source.argsort(kind="stable"), np.append(0, np.bincount(source).cumsum())
        size, fixed_s = (np.append(none, x)[order] for x in (tasks.size, tasks.fixed_s))
        later = np.triu(group == group[:, None], 1)
        next_twin = np.where(later.any(axis=1), later.argmax(axis=1), len(group))
        arrays: dict[str, NDArray[Any]] = {
            "features": np.stack(features, axis=1).astype(np.float32),
            "ends": np.array([[*source[n:], *target[n:]], [*target[n:], *source[n:]]], np.int64),
            "streams": np.stack([seconds, [*forward, *-forward]], axis=1).astype(np.float32),
            "before": leaps(before),
            "after": leaps(after),
            "to_exit": to_exit,
            "unit_s": np.array(sum(busy) or 1.0),
            "work": tasks.work,
            "outputs": table(start, target[order], n),
            "sent": np.stack([table(start, x, 0) for x in (size, fixed_s)]),
            "links": np.stack([tasks.latency, tasks.wire]),
            "free": table(tasks.core_start, np.zeros(tasks.core_start[-1]), np.inf),
            "twins": np.stack([np.arange(len(group)), next_twin], axis=1),
            "unit": tasks.unit.astype(np.int64),
            "rivals": table(tasks.rival_start, tasks.rivals.astype(np.int64), n_units),
            "allowed": tasks.work[tasks.members[tasks.member_start[:-1]]] < np.inf,
            "memory": tasks.memory,
            "room": tasks.room * (1 + SLACK),
        }
        return cls(**{name: torch.from_numpy(np.array(array)) for name, array in arrays.items()})

    def to(self, device: torch.device) -> "TaskTensors":
        """The same on a device."""
        return TaskTensors(*(part.to(device) for part in self))


def standardised(values: NDArray[Any]) -> Floats:
    """Values with mean 0 and deviation 1, zeros where all are alike.

    >>> standardised(np.array([1.0, 3.0])).tolist()
    [-1.0, 1.0]
    """
    spread = values.std() if len(values) else 0.0
    if spread <= ROUNDING * np.abs(values).max(initial=0.0):
        return np.zeros_like(values)
    return np.asarray((values - values.mean()) / spread)


def longest_paths(
    source: Ints, target: Ints, compute: Floats, sending: Floats
) -> tuple[Floats, Longs]:
    """Seconds [N] of the longest path along streams from every task, and its next task or N.

    >>> columns = longest_paths(*np.array([[0, 0], [1, 2]]), np.array([1.0, 2, 4]), np.zeros(2))
    >>> [column.tolist() for column in columns]
    [[5.0, 2.0, 4.0], [2, 3, 3]]
    """
    n, seconds = len(compute), compute
    for _ in range(n):  # each time of paths with one more stream
        through = compute[source] + sending + seconds[target]
        before, seconds = seconds, compute.copy()
        np.maximum.at(seconds, source, through)
        if (seconds == before).all():
            break
    after, first = np.full(n, n), np.flatnonzero(through == seconds[source])[::-1]
    after[source[first]] = target[first]  # of several, the last assignment counts
    return seconds, after


def leaps(follower: Longs) -> Longs:
    """Followers [J, N + 1] after 1, 2, 4, … steps, until all are at the end N.

    >>> leaps(np.array([1, 2, 3])).tolist()
    [[1, 2, 3, 3], [2, 3, 3, 3]]
    """
    rows = [np.append(follower, len(follower))]
    while (rows[-1][rows[-1]] < len(follower)).any():
        rows.append(rows[-1][rows[-1]])
    return np.stack(rows)


def table(start: Ints | Longs, values: NDArray[Any], filling: float) -> NDArray[Any]:
    """Rows values[start[i]:start[i + 1]]; short ones are filled up.

    >>> table(np.array([0, 2, 3]), np.array([7, 8, 9]), -1).tolist()
    [[7, 8], [9, -1]]
    """
    counts = np.diff(start)[:, None]
    rows = np.full((len(counts), counts.max(initial=0)), filling, values.dtype)
    rows[np.arange(rows.shape[1]) < counts] = values
    return rows
