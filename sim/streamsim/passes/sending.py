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
from streamsim.passes.compiled import Pass


def sending_times(
    latency: ArrayLike, size: ArrayLike, seconds_per_byte: ArrayLike, fixed_s: ArrayLike
) -> Floats:
    """Seconds of many transfers between two devices each."""
    bytes_s: Any = np.asarray(size) * np.asarray(seconds_per_byte)
    return np.asarray(np.asarray(latency) + bytes_s + np.asarray(fixed_s), np.float64)


def fixed_times(one_pass: Pass) -> Floats:
    """Seconds of every stream that do not depend on the link."""
    tuples, size = one_pass.streams["tuples"], one_pass.streams["size"]
    per_tuple = one_pass.gap + 2.0 * one_pass.overhead
    return np.asarray(tuples * per_tuple + size * (2.0 * one_pass.overhead_per_byte), np.float64)
