"""Windows: when a task can run on a device, if the pass is to be shorter than a cut.

A task on a device has a *head*, the soonest that it can start there, and a *tail*, the least that
comes after it; both follow the ways through the graph over the devices that are left. Where head,
work and tail do not stay below the cut the task cannot run there, and where they do not for the two
ends of a stream these do not go together. Each exclusion raises heads and tails of others.
"""

from typing import NamedTuple

import numpy as np
from streamsim.jit import borrowing_kernel, kernel

from streamplace.model.arrays import Floats
from streamplace.scheduling.tasks import Tasks, transfer


class Windows(NamedTuple):
    """What is left: times are infinite where a task cannot be."""

    head: Floats  # [N, D] soonest start
    tail: Floats  # [N, D] least seconds after the finish
    work: Floats  # [N, D] infinite where excluded

    @property
    def path(self) -> float:
        """Makespan that no schedule is below; infinite where none is below the cut."""
        through = self.head + self.work + self.tail
        return float(through.min(axis=1).max())


@kernel
def windows_below(tasks: Tasks, cut: float) -> Windows:
    """Exclude until nothing changes; no task has a device left where no schedule is below."""
    n, d = tasks.work.shape
    windows = Windows(np.empty((n, d)), np.empty((n, d)), tasks.work.copy())
    if cut == np.inf:
        _find_heads(tasks, windows, cut)
        _find_tails(tasks, windows, cut)
        return windows
    _find_tails(tasks, windows, np.inf)
    for _ in range(n * d + 1):
        _find_heads(tasks, windows, cut)
        _find_tails(tasks, windows, cut)
        if _exclude(tasks, windows, cut) == 0:
            break
    return windows


@borrowing_kernel
def _find_heads(tasks: Tasks, windows: Windows, cut: float) -> None:
    """Soonest starts, of senders that go together with their receivers below the cut."""
    d = windows.head.shape[1]
    for v in tasks.order:
        for a in range(d):
            windows.head[v, a] = tasks.release[v] if windows.work[v, a] < np.inf else np.inf
        for k in range(tasks.in_start[v], tasks.in_start[v + 1]):
            e = tasks.in_stream[k]
            u = tasks.source[e]
            for a in range(d):
                if windows.work[v, a] == np.inf:
                    continue
                soonest = np.inf
                after = windows.work[v, a] + windows.tail[v, a]
                for b in range(d):
                    arrival = windows.head[u, b] + windows.work[u, b] + transfer(tasks, e, b, a)
                    if arrival < soonest and (cut == np.inf or arrival + after < cut):
                        soonest = arrival
                windows.head[v, a] = max(windows.head[v, a], soonest)


@borrowing_kernel
def _find_tails(tasks: Tasks, windows: Windows, cut: float) -> None:
    """Least times after, over receivers that go together with their senders below the cut."""
    n, d = windows.tail.shape
    for i in range(n - 1, -1, -1):
        v = tasks.order[i]
        for a in range(d):
            windows.tail[v, a] = 0.0
        for e in range(tasks.out_start[v], tasks.out_end[v]):
            u = tasks.target[e]
            for a in range(d):
                if windows.work[v, a] == np.inf:
                    continue
                least = np.inf
                for b in range(d):
                    after = transfer(tasks, e, a, b) + windows.work[u, b] + windows.tail[u, b]
                    below = cut == np.inf or windows.head[v, a] + windows.work[v, a] + after < cut
                    if after < least and below:
                        least = after
                windows.tail[v, a] = max(windows.tail[v, a], least)


@borrowing_kernel
def _exclude(tasks: Tasks, windows: Windows, cut: float) -> int:
    """Exclude what does not stay below the cut, for whole units; how much that is."""
    n, d = windows.work.shape
    count = 0
    for v in range(n):
        for a in range(d):
            if windows.work[v, a] == np.inf:
                continue
            if windows.head[v, a] + windows.work[v, a] + windows.tail[v, a] < cut:
                continue
            u = tasks.unit[v]
            for k in range(tasks.member_start[u], tasks.member_start[u + 1]):
                windows.work[tasks.members[k], a] = np.inf
            count += 1
    return count
