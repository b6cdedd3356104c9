"""Memory under moves: the use of every device, and whether a move fits."""

from streamsim.jit import borrowing_kernel

from streamplace.model.level import Level
from streamplace.placers.anneal.rate.walk import UnitWalk

ROUNDING = 1e-10
"""Share of a device's memory; smaller than the tolerance for legal placements."""


@borrowing_kernel
def count_used(level: Level, walk: UnitWalk) -> None:
    """Sum the memory of the units by device."""
    walk.used[:] = 0.0
    for u in range(len(level.memory)):
        walk.used[walk.place[u]] += level.memory[u]


@borrowing_kernel
def has_room(level: Level, walk: UnitWalk, n_moved: int, n_back: int, a: int, b: int) -> bool:
    """Whether both devices have enough memory for the move under trial, from a to b and back."""
    change = _change(level, walk, n_moved, n_back)
    on_a, on_b = walk.used[a] - change, walk.used[b] + change
    fits_a = change >= 0 or on_a <= level.room[a] * (1 + ROUNDING)
    return fits_a and (change <= 0 or on_b <= level.room[b] * (1 + ROUNDING))


@borrowing_kernel
def take_room(level: Level, walk: UnitWalk, n_moved: int, n_back: int, a: int, b: int) -> None:
    """Update the used memory after a move."""
    if len(level.memory) == 0:
        return
    change = _change(level, walk, n_moved, n_back)
    walk.used[a] -= change
    walk.used[b] += change


@borrowing_kernel
def _change(level: Level, walk: UnitWalk, n_moved: int, n_back: int) -> float:
    change = 0.0
    for i in range(n_moved + n_back):
        size = level.memory[walk.moved[i]]
        change += size if i < n_moved else -size
    return change
