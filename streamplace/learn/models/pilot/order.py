"""The order in which pilot decides: what must not be torn apart goes first, while there is room."""

import heapq

import numpy as np
from streamsim.jit import kernel, patient

from streamplace.model.arrays import Ints
from streamplace.model.level import Level

NOWHERE = -1


def decision_order(level: Level, walk: int = 0) -> Ints:
    """Units [U] in the order of `grown`; those without a choice before, then those with rivals.

    The first walk begins at the heaviest pair, the k-th after it at the k-th lightest unit.
    """
    sequence = grown(level, _lightest(level, walk - 1) if walk else NOWHERE)
    if not level.ruled:
        return sequence
    choices = level.allowed[level.kind].sum(axis=1)
    rivals = np.diff(level.rival_start) if len(level.rival_start) else np.zeros(level.n_units)
    key = np.where(choices == 1, 0, np.where(rivals > 0, 1, 2))
    return sequence[np.argsort(key[sequence], kind="stable")]


def _lightest(level: Level, k: int) -> int:
    """Unit with the k-th least bytes/s to and from it."""
    owner = np.repeat(np.arange(level.n_units), np.diff(level.start))
    flow = np.bincount(owner, level.sent + level.taken, level.n_units)
    return int(np.argsort(flow, kind="stable")[k % level.n_units])


@patient
@kernel
def grown(level: Level, first: int) -> Ints:
    """Units from ``first`` on, always the one to which most bytes/s lead from those before.

    This is a maximum adjacency order; ties go to the unit of the heavier pair, then to the first,
    and so does the beginning if it is `NOWHERE`.
    """
    n = len(level.load)
    heaviest, pull, done = np.zeros(n), np.zeros(n), np.zeros(n, np.bool_)
    for u in range(n):
        for e in range(level.start[u], level.start[u + 1]):
            heaviest[u] = max(heaviest[u], level.sent[e] + level.taken[e])
    if first != NOWHERE:
        pull[first] = np.inf
    heap = [(-pull[u], -heaviest[u], np.int64(u)) for u in range(n)]
    heapq.heapify(heap)
    order, end = np.empty(n, np.int32), 0
    while end < n:
        key, _, top = heapq.heappop(heap)
        u = int(top)
        if done[u] or -key < pull[u]:
            continue
        done[u], order[end] = True, u
        end += 1
        for e in range(level.start[u], level.start[u + 1]):
            v = np.int64(level.peer[e])
            if not done[v]:
                pull[v] += level.sent[e] + level.taken[e]
                heapq.heappush(heap, (-pull[v], -heaviest[v], v))
    return order
