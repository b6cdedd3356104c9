"""The sending equation: how long a transfer takes from one device to another.

A stream of so many bytes in so many tuples takes from device a to another device b

    latency(a, b) + size · seconds per byte(a, b) + fixed_s
    fixed_s = tuples · (gap + 2 · overhead)

seconds, and none within a device (LogGP's L + G·k + g + 2·o). Where transfers wait for one another,
what occupies the channel, size · seconds per byte(a, b) + tuples · gap, is apart from the rest.
Whatever times a transfer, here or in a search, takes its terms from this page.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from streamsim.arrays import Floats
from streamsim.equation import link_load, link_loads
from streamsim.jit import inlined_kernel


@inlined_kernel
def sending_seconds(latency: float, size: float, seconds_per_byte: float, fixed_s: float) -> float:
    """Seconds of a transfer between two devices."""
    return latency + size * seconds_per_byte + fixed_s


@inlined_kernel
def fixed_seconds(tuples: float, gap: float, overhead: float) -> float:
    """Seconds of a transfer whatever the link."""
    return tuples * (gap + 2.0 * overhead)


@inlined_kernel
def channel_seconds(size: float, seconds_per_byte: float, tuples: float, gap: float) -> float:
    """Seconds for which a transfer occupies its channel."""
    return link_load(size, tuples, seconds_per_byte, gap)


@inlined_kernel
def unoccupied_seconds(latency: float, tuples: float, overhead: float) -> float:
    """Seconds of a transfer that occupy no channel: the latency and the work at both ends."""
    return latency + tuples * (2.0 * overhead)


def sending_times(
    latency: ArrayLike, size: ArrayLike, seconds_per_byte: ArrayLike, fixed_s: ArrayLike
) -> Floats:
    """`sending_seconds` of many transfers at once."""
    bytes_s: Any = np.asarray(size) * np.asarray(seconds_per_byte)
    return np.asarray(np.asarray(latency) + bytes_s + np.asarray(fixed_s), np.float64)


def fixed_times(tuples: Floats, gap: float, overhead: float) -> Floats:
    """`fixed_seconds` of many transfers at once."""
    return np.asarray(tuples * (gap + 2.0 * overhead), np.float64)


def channel_times(size: Floats, seconds_per_byte: ArrayLike, tuples: Floats, gap: float) -> Floats:
    """`channel_seconds` of many transfers at once."""
    return link_loads(size, tuples, seconds_per_byte, gap)
