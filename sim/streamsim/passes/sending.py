"""The sending equation: the time of a transfer from one device to another.

A stream of ``size`` bytes in ``tuples`` tuples takes, from device a to another device b,

    latency(a, b) + size · seconds per byte(a, b) + fixed_s
    fixed_s = tuples · (gap + 2 · overhead) + size · 2 · overhead per byte

seconds, and none within a device (LogGP's L + G·k + g + 2·o). In networks with contention, only
size · seconds per byte(a, b) + tuples · gap occupies the channel, which is the link's load in
`streamsim.equation`. All code that times transfers, in simulators and searches, uses this module.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from streamsim.arrays import Floats
from streamsim.jit import inlined_kernel
from streamsim.passes.compiled import Pass


@inlined_kernel
def sending_seconds(latency: float, size: float, seconds_per_byte: float, fixed_s: float) -> float:
    """Seconds of a transfer between two devices."""
    return latency + size * seconds_per_byte + fixed_s


@inlined_kernel
def fixed_seconds(one_pass: Pass, e: int) -> float:
    """Seconds of stream e that do not depend on the link."""
    stream = one_pass.streams[e]
    per_tuple = one_pass.gap + 2.0 * one_pass.overhead
    seconds: float = stream.tuples * per_tuple + stream.size * (2.0 * one_pass.overhead_per_byte)
    return seconds


@inlined_kernel
def unoccupied_seconds(one_pass: Pass, latency: float, e: int) -> float:
    """Seconds of stream e that occupy no channel: the latency and the overhead at both ends."""
    stream = one_pass.streams[e]
    at_ends = stream.tuples * (2.0 * one_pass.overhead)
    seconds: float = latency + at_ends + stream.size * (2.0 * one_pass.overhead_per_byte)
    return seconds


def sending_times(
    latency: ArrayLike, size: ArrayLike, seconds_per_byte: ArrayLike, fixed_s: ArrayLike
) -> Floats:
    """`sending_seconds` of many transfers at once."""
    bytes_s: Any = np.asarray(size) * np.asarray(seconds_per_byte)
    return np.asarray(np.asarray(latency) + bytes_s + np.asarray(fixed_s), np.float64)


def fixed_times(one_pass: Pass) -> Floats:
    """`fixed_seconds` of every stream."""
    tuples, size = one_pass.streams["tuples"], one_pass.streams["size"]
    per_tuple = one_pass.gap + 2.0 * one_pass.overhead
    return np.asarray(tuples * per_tuple + size * (2.0 * one_pass.overhead_per_byte), np.float64)
