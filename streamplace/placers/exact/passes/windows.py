"""Windows: the times at which a task can run on a device in a pass shorter than a cut.

A task on a device has a *head*, its earliest start there, and a *tail*, the least time after it;
both follow paths through the graph over the devices that are not excluded. If head, work and tail
reach the cut, the task cannot run there; if they do for the two ends of a stream, this pair of
devices is excluded. Each exclusion raises heads and tails of others.
"""

from typing import NamedTuple

import numpy as np
from streamsim.jit import borrowing_kernel, kernel

from streamplace.model.arrays import Floats
from streamplace.scheduling.tasks import Tasks, transfer


class Windows(NamedTuple):
    """Heads, tails and work of tasks on devices, infinite on excluded devices."""

    head: Floats  # [N, D] earliest start
    tail: Floats  # [N, D] least seconds after the finish
    work: Floats  # [N, D] infinite where excluded

    @property
    def path(self) -> float:
        """Lower bound of the makespan; infinite if no schedule is below the cut."""
        through = self.head + self.work + self.tail
        return float(through.min(axis=1).max())


@kernel
def windows_below(tasks: Tasks, cut: float) -> Windows:
    """Exclude devices until nothing changes; a task loses all if no schedule is below the cut."""
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
    """Compute earliest starts, over senders' devices that keep the pair below the cut."""
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
    """Compute least times after, over receivers' devices that keep the pair below the cut."""
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
    """Exclude devices that reach the cut, for entire units; return the number of exclusions."""
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
