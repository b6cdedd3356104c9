"""Platform: devices and links as arrays, which all instances on one cluster share."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from streamsim.arrays import Floats


class Platform(NamedTuple):
    """D devices and the links between them."""

    cores: Floats  # [D]
    free_cores: Floats  # [D] cores less what other processes take of them
    seconds_per_byte: Floats  # [D, D] 1 / bandwidth, 0 on the diagonal (LogGP's G)
    latency: Floats  # [D, D] seconds, 0 on the diagonal (L)
    egress: Floats  # [D] seconds per byte sent, 0 if the NIC is uncapped
    ingress: Floats  # [D] seconds per byte received, 0 if the NIC is uncapped
    overhead: float  # core seconds per remote tuple, at each end (o)
    overhead_per_byte: float  # core seconds per remote byte, at each end
    gap: float  # link seconds per remote tuple (g)

    @property
    def wire(self) -> Floats:
        """Seconds per byte on the slowest of a link and the network cards at its ends, [D, D]."""
        cards = np.maximum(self.egress[:, None], self.ingress[None, :])
        return np.asarray(np.maximum(self.seconds_per_byte, cards))


def platform_of(
    size: int,
    *,
    seconds_per_byte: ArrayLike,
    cores: ArrayLike | None = None,
    latency: ArrayLike | None = None,
    egress: ArrayLike | None = None,
    ingress: ArrayLike | None = None,
    overhead: float = 0.0,
    overhead_per_byte: float = 0.0,
    gap: float = 0.0,
    free_cores: ArrayLike | None = None,
) -> Platform:
    """Copy the description of ``size`` devices to arrays; the diagonals of matrices are ignored."""
    return Platform(
        cores=filled(cores, size, 1.0),
        free_cores=filled(cores if free_cores is None else free_cores, size, 1.0),
        seconds_per_byte=_hollow(seconds_per_byte, size),
        latency=_hollow(latency, size),
        egress=filled(egress, size, 0.0),
        ingress=filled(ingress, size, 0.0),
        overhead=float(overhead),
        overhead_per_byte=float(overhead_per_byte),
        gap=float(gap),
    )


def floats(values: ArrayLike) -> Floats:
    """Copy to a contiguous array of floats."""
    return np.array(values, np.float64, order="C")


def filled(values: ArrayLike | None, size: int, default: float) -> Floats:
    """Copy a column, or fill it with its default."""
    return np.full(size, default) if values is None else floats(values)


def _hollow(matrix: ArrayLike | None, size: int) -> Floats:
    """Copy a device × device matrix, with zeros on the diagonal (local streams are free)."""
    full = np.zeros((size, size)) if matrix is None else np.array(matrix, np.float64)
    np.fill_diagonal(full, 0.0)
    return full
