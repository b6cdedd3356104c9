"""Distinct devices for rival units (list colouring)."""

import numpy as np

from streamplace.model.arrays import Bools, Ints, Longs

SEARCH_STEPS = 20_000
TAKEN = np.iinfo(np.int64).max


def rivals_of(pairs: Ints) -> dict[int, Longs]:
    """Rivals of every unit that occurs in a pair [P, 2].

    >>> {u: rivals.tolist() for u, rivals in rivals_of(np.array([[0, 1], [0, 2]])).items()}
    {0: [1, 2], 1: [0], 2: [0]}
    """
    if not len(pairs):
        return {}
    both = _both_ways(pairs)
    units, starts = np.unique(both[:, 0], return_index=True)
    return dict(zip(units.tolist(), np.split(both[:, 1], starts[1:]), strict=True))


def rival_columns(pairs: Ints, n_units: int) -> tuple[Longs, Longs]:
    """Rivals of every unit u, ascending: ``rival[start[u]:start[u + 1]]``.

    >>> [column.tolist() for column in rival_columns(np.array([[0, 2]]), 3)]
    [[0, 1, 1, 2], [2, 0]]
    """
    both = _both_ways(pairs)
    start = np.zeros(n_units + 1, np.int64)
    np.cumsum(np.bincount(both[:, 0], minlength=n_units), out=start[1:])
    return start, np.ascontiguousarray(both[:, 1])


def _both_ways(pairs: Ints) -> Longs:
    """Pairs in both orders, sorted."""
    both = np.concatenate([pairs, pairs[:, ::-1]]).astype(np.int64)
    return both[np.lexsort((both[:, 1], both[:, 0]))]


def keep_apart(allowed: Bools, pairs: Ints) -> Ints | None:
    """Devices for units such that no pair shares one; None if the search finds none.

    Depth-first search without recursion: the unit with the fewest free devices is next (Brélaz),
    and the search backtracks as soon as a unit has none, at most ``SEARCH_STEPS`` times.
    ``allowed`` is [U, D], and ``pairs`` of units [P, 2].
    """
    n, rivals = len(allowed), rivals_of(pairs)
    nobody = np.empty(0, np.int64)
    blocked = (~allowed).astype(np.int32)  # how often each device is blocked for each unit
    free = allowed.sum(axis=1)
    chosen: Ints = np.full(n, -1, np.int32)
    untried = [0] * n  # first device that was not tried for each unit
    trail: list[int] = []
    steps_back = 0
    while len(trail) < n:
        u = int(np.argmin(np.where(chosen < 0, free, TAKEN)))
        untried[u] = 0
        while (device := _first_free(blocked[u], untried[u])) < 0:
            steps_back += 1
            if not trail or steps_back > SEARCH_STEPS:
                return None
            u = trail.pop()
            others, last = rivals.get(u, nobody), chosen[u]
            chosen[u] = -1
            blocked[others, last] -= 1
            free[others] += blocked[others, last] == 0
        others = rivals.get(u, nobody)
        chosen[u], untried[u] = device, device + 1
        trail.append(u)
        free[others] -= blocked[others, device] == 0
        blocked[others, device] += 1
    return chosen


def _first_free(blocked: Ints, start: int) -> int:
    """First device from this one on that is not blocked; -1 if there is none."""
    free = blocked[start:] == 0
    return start + int(np.argmax(free)) if free.any() else -1
