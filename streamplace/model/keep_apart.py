"""Distinct devices for rival units (list colouring)."""

import numpy as np

from streamplace.model.arrays import Bools, Ints, Longs

SEARCH_STEPS = 20_000
PLACED = np.iinfo(np.int64).max


def rival_columns(pairs: Ints, n_units: int) -> tuple[Longs, Longs]:
    """Rivals of every unit u, ascending: ``rival[start[u]:start[u + 1]]``.

    >>> [column.tolist() for column in rival_columns(np.array([[0, 2]]), 3)]
    [[0, 1, 1, 2], [2, 0]]
    """
    both = np.concatenate([pairs, pairs[:, ::-1]]).astype(np.int64)
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    start = np.zeros(n_units + 1, np.int64)
    np.cumsum(np.bincount(both[:, 0], minlength=n_units), out=start[1:])
    return start, np.ascontiguousarray(both[:, 1])


def keep_apart(allowed: Bools, pairs: Ints) -> Ints | None:
    """Devices for units such that no pair shares one; None if the search finds none.

    Depth-first search without recursion: the unit with the fewest free devices is next (Brélaz),
    and the search backtracks as soon as a unit has none, at most ``SEARCH_STEPS`` times.
    ``allowed`` is [U, D], and ``pairs`` of units [P, 2].
    """
    n = len(allowed)
    start, rival = rival_columns(pairs, n)
    blocked = (~allowed).astype(np.int32)  # how often each device is blocked for each unit
    free = allowed.sum(axis=1)
    chosen: Ints = np.full(n, -1, np.int32)
    untried = [0] * n  # first device that was not tried for each unit
    trail: list[int] = []
    steps_back = 0
    while len(trail) < n:
        u = int(np.argmin(np.where(chosen < 0, free, PLACED)))
        untried[u] = 0
        while (device := _first_free(blocked[u], untried[u])) < 0:
            steps_back += 1
            if not trail or steps_back > SEARCH_STEPS:
                return None
            u = trail.pop()
            others, last = rival[start[u] : start[u + 1]], chosen[u]
            chosen[u] = -1
            blocked[others, last] -= 1
            free[others] += blocked[others, last] == 0
        others = rival[start[u] : start[u + 1]]
        chosen[u], untried[u] = device, device + 1
        trail.append(u)
        free[others] -= blocked[others, device] == 0
        blocked[others, device] += 1
    return chosen


def _first_free(blocked: Ints, start: int) -> int:
    """First device from this one on that is not blocked; -1 if there is none."""
    free = blocked[start:] == 0
    return start + int(np.argmax(free)) if free.any() else -1
