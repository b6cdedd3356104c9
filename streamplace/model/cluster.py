"""Cluster: devices and the network between every ordered pair of them."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from streamplace.errors import ClusterError
from streamplace.model.columns import Floats, Ints, frozen, same_fields
from streamplace.model.devices import Device, Devices
from streamplace.model.units import LARGEST, Quantity, bandwidth_bps, seconds

MOST_DEVICES = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    """Devices, and for every ordered pair of them a bandwidth and a latency.

    Attributes
    ----------
    bandwidth_bps, latency_s
        Matrices, row = sender, column = receiver; the diagonals mean nothing (what stays on a
        device is free) and are stored as infinite and 0.
    overhead_s
        Core seconds that each remote tuple costs at both ends (LogP's o).
    gap_s
        Link seconds that each remote tuple costs besides its bytes (LogP's g).
    interchangeable
        Class of every device: devices of one class can be swapped without changing anything.

    Examples
    --------
    >>> cluster = Cluster.uniform(3, mips=2500, bandwidth="1000 Mbps")
    >>> cluster.devices.name, cluster.interchangeable.tolist()
    (('d0', 'd1', 'd2'), [0, 0, 0])
    """

    devices: Devices
    bandwidth_bps: Floats
    latency_s: Floats
    overhead_s: float = 0.0
    gap_s: float = 0.0
    interchangeable: Ints = field(init=False, repr=False, compare=False)

    @classmethod
    def uniform(
        cls,
        n: int = 5,
        *,
        mips: Quantity = 2500.0,
        bandwidth: Quantity = 1e9,
        latency: Quantity = 0.0,
        cores: int = 1,
    ) -> "Cluster":
        """``n`` equal devices d0…, every ordered pair joined by a link of its own."""
        if not 1 <= n <= MOST_DEVICES:
            raise ClusterError(f"a cluster of {n} devices; it must have 1 to {MOST_DEVICES}")
        devices = [Device(f"d{i}", mips=mips, cores=cores) for i in range(n)]
        return cls.of(devices, bandwidth=bandwidth, latency=latency)

    @classmethod
    def of(
        cls,
        devices: Iterable[Device],
        *,
        bandwidth: Quantity | ArrayLike = 1e9,
        latency: Quantity | ArrayLike = 0.0,
        overhead: Quantity = 0.0,
        gap: Quantity = 0.0,
    ) -> "Cluster":
        """Cluster of the given devices; bandwidth and latency are one quantity or a matrix."""
        columns = Devices.of(devices)
        size = len(columns)
        return cls(
            columns,
            _matrix(bandwidth_bps(bandwidth) if _is_quantity(bandwidth) else bandwidth, size),  # type: ignore[arg-type]
            _matrix(seconds(latency) if _is_quantity(latency) else latency, size),  # type: ignore[arg-type]
            seconds(overhead),
            seconds(gap),
        )

    def __post_init__(self) -> None:
        put = object.__setattr__
        size = len(self.devices)
        if size > MOST_DEVICES:
            raise ClusterError(f"a cluster of {size} devices; it must have 1 to {MOST_DEVICES}")
        put(self, "bandwidth_bps", self._checked("bandwidth_bps", least=1e-3, diagonal=np.inf))
        put(self, "latency_s", self._checked("latency_s", least=0.0, diagonal=0.0))
        for cost in ("overhead_s", "gap_s"):
            value = getattr(self, cost)
            if not 0 <= value <= LARGEST:
                raise ClusterError(f"{cost} is {value}; it must be between 0 and {LARGEST:g}")
        put(self, "interchangeable", frozen(self._classes()))

    @property
    def n_devices(self) -> int:
        """Number of devices, D."""
        return len(self.devices)

    def __eq__(self, other: object) -> bool:
        return same_fields(self, other)

    def __hash__(self) -> int:
        return hash((self.devices, self.bandwidth_bps.tobytes()))

    def _checked(self, column: str, *, least: float, diagonal: float) -> Floats:
        matrix = np.array(getattr(self, column), np.float64)
        size = len(self.devices)
        if matrix.shape != (size, size):
            raise ClusterError(
                f"{column} must be a {size} × {size} matrix for {size} devices, not {matrix.shape}"
            )
        np.fill_diagonal(matrix, least)
        good = (matrix >= least) & (matrix <= LARGEST)
        if not good.all():
            a, b = np.argwhere(~good)[0]
            raise ClusterError(
                f"link {self.devices.name[a]}→{self.devices.name[b]} has {column} "
                f"{matrix[a, b]:g}; it must be between {least:g} and {LARGEST:g}"
            )
        np.fill_diagonal(matrix, diagonal)
        return frozen(matrix)

    def _classes(self) -> Ints:
        """Class of each device; swappability is transitive, so one representative each is enough."""
        representatives: list[int] = []
        classes = np.empty(self.n_devices, np.int32)
        for d in range(self.n_devices):
            found = (i for i, r in enumerate(representatives) if self._swappable(r, d))
            classes[d] = next(found, len(representatives))
            if classes[d] == len(representatives):
                representatives.append(d)
        return classes

    def _swappable(self, a: int, b: int) -> bool:
        """Whether exchanging devices a and b leaves the whole cluster as it is."""
        devices = self.devices
        for column in (devices.mips, devices.cores, devices.memory, devices.tags):
            if column[a] != column[b]:
                return False
        for limit in (devices.egress_bps, devices.ingress_bps):
            if limit[a] != limit[b]:
                return False
        return all(_symmetric(matrix, a, b) for matrix in (self.bandwidth_bps, self.latency_s))


def _symmetric(matrix: Floats, a: int, b: int) -> bool:
    others = np.ones(len(matrix), bool)
    others[[a, b]] = False
    return bool(
        matrix[a, b] == matrix[b, a]
        and (matrix[a, others] == matrix[b, others]).all()
        and (matrix[others, a] == matrix[others, b]).all()
    )


def _is_quantity(value: object) -> bool:
    return isinstance(value, str | int | float)


def _matrix(values: ArrayLike, size: int) -> Floats:
    try:
        matrix = np.array(values, np.float64)
    except (TypeError, ValueError):
        raise ClusterError(f"a network matrix must be {size} × {size} numbers") from None
    return np.full((size, size), matrix) if matrix.ndim == 0 else matrix
