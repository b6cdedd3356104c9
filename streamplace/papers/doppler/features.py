"""Features of a problem before the first decision: appendix D.1, and the longest paths.

As in the paper, the b-level path of a task is the longest one to an entry, the t-level path the
longest one to an exit; both count computing and sending, and begin with the task itself.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from streamsim.jit import kernel
from streamsim.passes.sending import sending_times

from streamplace.model.arrays import ROUNDING, Floats, Ints
from streamplace.model.problem import Problem
from streamplace.scheduling.tasks import Tasks, tasks_of

TASK_FEATURES = ("computing", "sending in", "sending out", "t-level", "b-level")
DEVICE_FEATURES = ("computing", "inputs' computing", "first start", "last end", "earliest start")
"""Appendix D.2; inputs are the task's inputs that were placed on the device."""
N_TASK, N_DEVICE = len(TASK_FEATURES), len(DEVICE_FEATURES)
FEATURES = [*TASK_FEATURES, *DEVICE_FEATURES]


class DopplerFeatures(NamedTuple):
    """Features of a problem (N tasks, E streams, D devices)."""

    tasks: Tasks
    group: Ints  # [D] class of interchangeable devices
    of_task: Floats  # [N, 5] `TASK_FEATURES`, each with mean 0 and deviation 1
    sending: Floats  # [E] mean seconds, with mean 0 and deviation 1
    to_exit: Floats  # [N] seconds of the t-level path
    before: Ints  # [N] next task on the b-level path, -1 at its end
    after: Ints  # [N] next task on the t-level path, -1 at its end
    unit: float  # seconds in which devices are compared, 0 for standard deviations


def features_of(problem: Problem, looks: str) -> DopplerFeatures:
    """Compute the features of a problem; ``looks`` as in the options."""
    tasks = tasks_of(problem)
    compute = _mean_work(problem)
    sending = _sending(tasks)
    levels = longest_paths(tasks, compute, sending)
    columns = (
        compute,
        np.bincount(tasks.target, sending, tasks.n_tasks),
        np.bincount(tasks.source, sending, tasks.n_tasks),
        levels.to_exit,
        levels.to_entry,
    )
    return DopplerFeatures(
        tasks=tasks,
        group=problem.interchangeable.astype(np.int32),
        of_task=np.stack([standardised(column) for column in columns], axis=1),
        sending=standardised(sending),
        to_exit=levels.to_exit,
        before=levels.before,
        after=levels.after,
        unit=_unit(compute, sending) if looks == "seconds" else 0.0,
    )


class Levels(NamedTuple):
    """Longest paths from every task [N]."""

    to_entry: Floats
    before: Ints
    to_exit: Floats
    after: Ints


def standardised(values: NDArray[Any]) -> Floats:
    """Values with mean 0 and deviation 1, zeros where all are alike.

    >>> standardised(np.array([1.0, 3.0])).tolist()
    [-1.0, 1.0]
    """
    spread = values.std() if len(values) else 0.0
    if spread <= ROUNDING * np.abs(values).max(initial=0.0):
        return np.zeros_like(values)
    return np.asarray((values - values.mean()) / spread)


@kernel
def longest_paths(tasks: Tasks, compute: Floats, sending: Floats) -> Levels:
    """Longest paths by what tasks compute and streams send; of equal ones the first stream's."""
    n = len(compute)
    to_entry, to_exit = compute.copy(), compute.copy()
    before, after = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    for v in tasks.order:
        for i in range(tasks.in_start[v], tasks.in_start[v + 1]):
            e = tasks.in_stream[i]
            u = tasks.source[e]
            length = compute[v] + sending[e] + to_entry[u]
            if before[v] < 0 or length > to_entry[v]:
                to_entry[v], before[v] = length, u
    for v in tasks.order[::-1]:
        for i in range(tasks.in_start[v], tasks.in_start[v + 1]):
            e = tasks.in_stream[i]
            u = tasks.source[e]
            length = compute[u] + sending[e] + to_exit[v]
            if after[u] < 0 or length > to_exit[u]:
                to_exit[u], after[u] = length, v
    return Levels(to_entry, before, to_exit, after)


@kernel
def members_of_paths(follower: Ints) -> tuple[Ints, Ints]:
    """Pairs (v, u) for every task u on the path that begins with v."""
    n, pairs = len(follower), 0
    for v in range(n):
        u = v
        while u >= 0:
            pairs += 1
            u = follower[u]
    owner, member = np.empty(pairs, np.int32), np.empty(pairs, np.int32)
    pairs = 0
    for v in range(n):
        u = v
        while u >= 0:
            owner[pairs], member[pairs] = v, u
            pairs += 1
            u = follower[u]
    return owner, member


def _sending(tasks: Tasks) -> Floats:
    """Seconds that every stream takes [E] in the mean over ordered pairs of devices."""
    d = len(tasks.latency)
    apart = ~np.eye(d, dtype=np.bool_)
    if d == 1:
        return np.zeros(len(tasks.size))
    mean = tasks.latency[apart].mean(), tasks.wire[apart].mean()
    return sending_times(mean[0], tasks.size, mean[1], tasks.fixed_s)


def _unit(compute: Floats, sending: Floats) -> float:
    """Mean seconds of a task that takes time, with its transfers."""
    busy = compute[compute > 0]
    seconds = (busy.mean() if len(busy) else 0.0) + (sending.mean() if len(sending) else 0.0)
    return float(seconds) or 1.0


def _mean_work(problem: Problem) -> Floats:
    """Mean seconds of every task over all devices, whether it may run there or not."""
    compiled = problem.one_pass
    work = np.ascontiguousarray(compiled.work[:, compiled.devices["type"]])
    return np.asarray(work.mean(axis=1))
