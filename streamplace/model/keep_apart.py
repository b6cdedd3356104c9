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
    search = _KeepApartSearch(allowed, pairs)
    steps_back = 0
    while (u := search.hardest()) is not None:
        while not search.advance(u):
            steps_back += 1
            last = search.retreat()
            if last is None or steps_back > SEARCH_STEPS:
                return None
            u = last
    return search.chosen


class _KeepApartSearch:
    """Devices chosen so far, and how often each (unit, device) is blocked by a rival."""

    def __init__(self, allowed: Bools, pairs: Ints) -> None:
        size = len(allowed)
        nobody = np.empty(0, np.int64)
        rivals = rivals_of(pairs)
        self._rivals = [rivals.get(u, nobody) for u in range(size)]
        self._blocked = (~allowed).astype(np.int32)
        self._free = allowed.sum(axis=1)
        self._tried: list[tuple[int, int]] = []
        self._next = [0] * size
        self.chosen: Ints = np.full(size, -1, np.int32)

    def hardest(self) -> int | None:
        """Return the open unit with the fewest free devices, None if all have a device."""
        if len(self._tried) == len(self.chosen):
            return None
        u = int(np.argmin(np.where(self.chosen < 0, self._free, TAKEN)))
        self._next[u] = 0
        return u

    def advance(self, u: int) -> bool:
        """Assign a unit its next free device; False if there is none."""
        free = self._blocked[u, self._next[u] :] == 0
        if not free.any():
            return False
        device = self._next[u] + int(np.argmax(free))
        self._next[u] = device + 1
        self.chosen[u] = device
        self._tried.append((u, device))
        rivals = self._rivals[u]
        self._free[rivals] -= self._blocked[rivals, device] == 0
        self._blocked[rivals, device] += 1
        return True

    def retreat(self) -> int | None:
        """Undo the last assignment and return its unit; None if there is none."""
        if not self._tried:
            return None
        u, device = self._tried.pop()
        self.chosen[u] = -1
        rivals = self._rivals[u]
        self._blocked[rivals, device] -= 1
        self._free[rivals] += self._blocked[rivals, device] == 0
        return u
