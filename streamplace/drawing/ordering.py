"""Order of nodes within layers: the best of several barycentre sweeps."""

from bisect import bisect_right, insort
from collections.abc import Sequence

SWEEPS = 12

Rows = list[list[int]]
Neighbours = Sequence[Sequence[int]]


def ordered(rows: Rows, before: Neighbours, after: Neighbours) -> Rows:
    """Rows in the order with the fewest crossings of all sweeps, the first of equal ones.

    A forward sweep sorts every layer by the mean position of the neighbours before it, a backward
    sweep by those after it.

    Examples
    --------
    >>> ordered([[0, 1], [2, 3]], [[], [], [1], [0]], [[3], [2], [], []])
    [[0, 1], [3, 2]]
    """
    current = [list(row) for row in rows]
    best, fewest = [list(row) for row in current], crossings(current, after)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        forth = sweep % 2 == 0
        _sweep(current, before if forth else after, forth)
        if (count := crossings(current, after)) < fewest:
            best, fewest = [list(row) for row in current], count
    return best


def crossings(rows: Rows, after: Neighbours) -> int:
    """Count crossing pairs of streams between adjacent layers.

    >>> crossings([[0, 1], [2, 3]], [[3], [2], [], []])
    1
    """
    position = _positions(rows)
    count = 0
    for row in rows[:-1]:
        passed: list[int] = []
        for u in row:
            ends = sorted(position[v] for v in after[u])
            count += sum(len(passed) - bisect_right(passed, end) for end in ends)
            for end in ends:
                insort(passed, end)
    return count


def _sweep(rows: Rows, neighbours: Neighbours, forth: bool) -> None:
    """Sort one layer after the other by its neighbours in the previous one."""
    position = _positions(rows)
    for row in rows if forth else reversed(rows):
        wanted = {
            v: sum(position[u] for u in neighbours[v]) / len(neighbours[v])
            if neighbours[v]
            else position[v]
            for v in row
        }
        row.sort(key=wanted.__getitem__)
        for i, v in enumerate(row):
            position[v] = i


def _positions(rows: Rows) -> list[int]:
    """Position of every node within its layer."""
    position = [0] * sum(map(len, rows))
    for row in rows:
        for i, v in enumerate(row):
            position[v] = i
    return position
