"""Memory under moves: what every device has in use, and whether a move fits."""

from streamsim.jit import borrowing_kernel

from streamplace.model.level import Level
from streamplace.placers.anneal.rate.walk import UnitWalk

ROUNDING = 1e-10
"""Of a device's memory; less than what makes a placement illegal."""


@borrowing_kernel
def count_used(level: Level, walk: UnitWalk) -> None:
    """Sum what the units take, device by device."""
    walk.used[:] = 0.0
    for u in range(len(level.memory)):
        walk.used[walk.place[u]] += level.memory[u]


@borrowing_kernel
def has_room(level: Level, walk: UnitWalk, n_moved: int, n_back: int, a: int, b: int) -> bool:
    """Whether the move under trial, from device a to b and back, fits into both."""
    change = _change(level, walk, n_moved, n_back)
    on_a, on_b = walk.used[a] - change, walk.used[b] + change
    fits_a = change >= 0 or on_a <= level.room[a] * (1 + ROUNDING)
    return fits_a and (change <= 0 or on_b <= level.room[b] * (1 + ROUNDING))


@borrowing_kernel
def take_room(level: Level, walk: UnitWalk, n_moved: int, n_back: int, a: int, b: int) -> None:
    """Take note of a move that was made."""
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
