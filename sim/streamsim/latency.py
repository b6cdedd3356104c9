"""Latency of one tuple in an empty system: the longest path, in seconds."""

from numpy.typing import ArrayLike

from streamsim import _core
from streamsim.arrays import Floats
from streamsim.instance import Instance, as_ints


def latencies(instance: Instance, placements: ArrayLike) -> Floats:
    """Seconds from a source to the sink that is reached last, for each placement [B, N].

    T(v) = c(v) + max over streams (u, v) of T(u) + L + g + 2·o + payload · (G + 2·o'), where the
    network terms are 0 within a device, G is that of the slowest of link and network cards, and o'
    is the overhead per byte. Windows are assumed to emit at once.

    Examples
    --------
    >>> from streamsim import build_instance
    >>> instance = build_instance(rate=[100, 0], seconds=[[1e-3], [5e-3]], source=[0], target=[1],
    ...                           payload=[20_000], device_type=[0, 0],
    ...                           seconds_per_byte=[[0, 1e-6], [1e-6, 0]])
    >>> latencies(instance, [[0, 0], [0, 1]]).round(6).tolist()
    [0.006, 0.026]
    """
    return _core.latencies(instance.core, as_ints(placements))
