"""Rivals of units, in kernels."""

from streamsim.jit import borrowing_kernel

from streamplace.model.arrays import Ints, Longs


@borrowing_kernel
def meets_rival(place: Ints, start: Ints | Longs, rival: Ints | Longs, u: int, d: int) -> bool:
    """Whether a rival of unit u is on device d."""
    i, end = start[u], start[u + 1]
    while i < end and place[rival[i]] != d:
        i += 1
    met: bool = i < end
    return met
