"""Cluster: devices and the network between every ordered pair of them."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from streamplace.errors import ClusterError
from streamplace.model.arrays import Floats, Ints
from streamplace.model.columns import checked_rows, frozen, reduced
from streamplace.model.defaults import BPS, DEVICES, MIPS
from streamplace.model.devices import MIN_MIPS, NUMERIC_COLUMNS, Device, Devices
from streamplace.model.message_text import counted, listed, quoted, shown, suggestion
from streamplace.model.mixins import Caching, Displayed, data_frame, kept, same_fields
from streamplace.model.units import (
    MAX_VALUE,
    Quantity,
    bandwidth_bps,
    check_bandwidth,
    digits,
    format_speed,
    seconds,
)

if TYPE_CHECKING:
    from pandas import DataFrame
    from streamsim.platform import Platform

MAX_DEVICES = 4096


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Cluster(Caching, Displayed):
    """Devices, and for every ordered pair of them a bandwidth and a latency.

    Attributes
    ----------
    bandwidth_bps, latency_s
        Matrices, row = sender, column = receiver; the diagonals are ignored (tuples within a
        device use no link) and stored as infinite and 0.
    overhead_s
        Core seconds that each remote tuple costs at both ends (LogP's o).
    overhead_s_per_byte
        Core seconds that each of its bytes costs in addition, at both ends.
    gap_s
        Link seconds that each remote tuple costs in addition to its bytes (LogP's g).
    joules_per_byte
        Energy of sending one byte over a link; 0 where energy is of no interest.
    interchangeable
        Class of every device. Swapping two devices of one class changes nothing.
    defaults
        Assumed arguments, of "devices", "mips" and "bandwidth"; answers state them.

    Examples
    --------
    >>> cluster = Cluster.uniform(3, mips=2500, bandwidth="1000 Mbps")
    >>> cluster.devices.name, cluster.interchangeable.tolist()
    (('d0', 'd1', 'd2'), [0, 0, 0])
    """

    devices: Devices
    bandwidth_bps: Floats
    latency_s: Floats
    overhead_s: float
    gap_s: float
    joules_per_byte: float
    overhead_s_per_byte: float
    defaults: frozenset[str] = field(repr=False, compare=False)
    interchangeable: Ints = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        devices: Devices,
        bandwidth_bps: ArrayLike,
        latency_s: ArrayLike,
        overhead_s: float = 0.0,
        gap_s: float = 0.0,
        joules_per_byte: float = 0.0,
        overhead_s_per_byte: float = 0.0,
        defaults: Iterable[str] = (),
    ) -> None:
        put = partial(object.__setattr__, self)
        put("devices", devices)
        put("defaults", frozenset(defaults))
        check_size(len(devices))
        put("bandwidth_bps", self._checked("bandwidth_bps", bandwidth_bps, MIN_MIPS, np.inf))
        put("latency_s", self._checked("latency_s", latency_s, 0, 0))
        costs = {"overhead_s": overhead_s, "gap_s": gap_s, "joules_per_byte": joules_per_byte}
        costs["overhead_s_per_byte"] = overhead_s_per_byte
        for cost, value in costs.items():
            if not 0 <= value <= MAX_VALUE:
                raise ClusterError(f"{cost} is {value}; it must be between 0 and {MAX_VALUE:g}")
            put(cost, float(value))
        classes = interchangeable(devices, (self.bandwidth_bps, self.latency_s))
        put("interchangeable", frozen(classes))

    @classmethod
    def uniform(
        cls,
        n: int | None = None,
        *,
        mips: Quantity | None = None,
        bandwidth: Quantity | None = None,
        latency: Quantity = 0.0,
        cores: int = 1,
    ) -> "Cluster":
        """Cluster of ``n`` equal devices d0…, with a link for every ordered pair.

        By default five devices of 2500 MIPS, joined by 1000 Mbps.
        """
        arguments = {"devices": n, "mips": mips, "bandwidth": bandwidth}
        size = DEVICES if n is None else n
        check_size(size)
        speed, links = MIPS if mips is None else mips, BPS if bandwidth is None else bandwidth
        devices = [Device(f"d{i}", mips=speed, cores=cores) for i in range(size)]
        cluster = cls.of(devices, bandwidth=links, latency=latency)
        defaults = frozenset(key for key, value in arguments.items() if value is None)
        return replace(cluster, defaults=defaults)

    @classmethod
    def of(
        cls,
        devices: Iterable[Device],
        *,
        bandwidth: Quantity | ArrayLike = BPS,
        latency: Quantity | ArrayLike = 0.0,
        overhead: Quantity = 0.0,
        gap: Quantity = 0.0,
        joules_per_byte: float = 0.0,
        overhead_per_byte: Quantity = 0.0,
    ) -> "Cluster":
        """Cluster of the given devices; bandwidth and latency are one quantity or a matrix."""
        columns = Devices.of(checked_rows(devices, Device, "Device('d0')", ClusterError))
        size = len(columns)
        if isinstance(bandwidth, str | int | float):
            check_bandwidth("bandwidth", bandwidth_bps(bandwidth), float(columns.mips.max()))
        return cls(
            columns,
            _matrix(bandwidth, bandwidth_bps, size),
            _matrix(latency, seconds, size),
            seconds(overhead),
            seconds(gap),
            joules_per_byte,
            seconds(overhead_per_byte),
        )

    @property
    def n_devices(self) -> int:
        """Number of devices, D."""
        return len(self.devices)

    @property
    @kept
    def platform(self) -> "Platform":
        """Devices and links as arrays, compiled on first use."""
        from streamsim.platform import platform_of

        devices = self.devices
        return platform_of(
            self.n_devices,
            seconds_per_byte=8 / self.bandwidth_bps,
            cores=devices.cores,
            free_cores=devices.cores * devices.speed / devices.mips,
            latency=self.latency_s,
            egress=8 / devices.egress,
            ingress=8 / devices.ingress,
            overhead=self.overhead_s,
            overhead_per_byte=self.overhead_s_per_byte,
            gap=self.gap_s,
        )

    def without(self, device: str) -> "Cluster":
        """Return the cluster of the other devices.

        >>> Cluster.uniform(3).without("d1").devices.name
        ('d0', 'd2')
        """
        names = self.devices.name
        if device not in self.devices:
            hint = suggestion(device, names) or f"; it has {listed(names)}"
            raise ClusterError(f"the cluster has no device {quoted(device)}{hint}")
        if len(names) == 1:
            raise ClusterError(f"{quoted(device)} is the only device; without it, nothing can run")
        d = self.devices.index(device)
        kept = np.ix_(*2 * [np.arange(self.n_devices) != d])
        return replace(
            self,
            devices=Devices.of(other for other in self.devices if other.name != device),
            bandwidth_bps=self.bandwidth_bps[kept],
            latency_s=self.latency_s[kept],
        )

    def to_pandas(self) -> "DataFrame":
        """Table of the devices, one row each."""
        devices = self.devices
        columns = ("name", *NUMERIC_COLUMNS)
        tags = [", ".join(sorted(tags)) for tags in devices.tags]
        return data_frame({**{name: getattr(devices, name) for name in columns}, "tags": tags})

    def __repr__(self) -> str:
        low, high = self.devices.mips.min(), self.devices.mips.max()
        speed = ("" if low == high else f"{digits(low)} to ") + format_speed(high)
        return f"<Cluster of {counted(self.n_devices, 'device')}: {speed}>"

    def __len__(self) -> int:
        return self.n_devices

    def __iter__(self) -> Iterator[Device]:
        return iter(self.devices)

    __reduce__ = reduced
    __eq__ = same_fields

    def __hash__(self) -> int:
        return hash((self.devices, self.bandwidth_bps.tobytes()))

    def _checked(self, column: str, values: ArrayLike, minimum: float, diagonal: float) -> Floats:
        size = len(self.devices)
        try:
            matrix = np.array(values, np.float64) + 0.0  # -0.0 becomes 0.0
        except (TypeError, ValueError, OverflowError):
            raise ClusterError(f"{column} must be a {size} × {size} matrix of numbers") from None
        if matrix.shape != (size, size):
            raise ClusterError(
                f"{column} must be a {size} × {size} matrix for {size} devices, not {matrix.shape}"
            )
        np.fill_diagonal(matrix, minimum)
        good = (matrix >= minimum) & (matrix <= MAX_VALUE)
        if not good.all():
            a, b = np.argwhere(~good)[0]
            raise ClusterError(
                f"link {shown(self.devices.name[a])}→{shown(self.devices.name[b])} has {column} "
                f"{matrix[a, b]:g}; it must be between {minimum:g} and {MAX_VALUE:g}"
            )
        np.fill_diagonal(matrix, diagonal)
        return frozen(matrix)


def check_size(n: int) -> None:
    """Raise ClusterError unless a cluster may have n devices (its matrices have n² cells)."""
    if not isinstance(n, Integral) or not 1 <= n <= MAX_DEVICES:
        raise ClusterError(f"the cluster has {quoted(n)} devices; it must have 1 to {MAX_DEVICES}")


def _matrix(
    values: Quantity | ArrayLike, parse: Callable[[Quantity], float], size: int
) -> ArrayLike:
    if isinstance(values, str | int | float):
        return np.full((size, size), parse(values))
    return values


def interchangeable(devices: Devices, matrices: Sequence[Floats]) -> Ints:
    """Class of every device, numbered by first device.

    Swappability is transitive ((a c) = (a b)(b c)(a b)), so a device is compared with one
    representative of each class. Most devices differ in their fingerprints, which swaps do not
    change, so few pairs are compared cell by cell.

    Examples
    --------
    >>> devices = Devices(("a", "b", "c"), mips=[1000, 2000, 1000])
    >>> interchangeable(devices, [np.ones((3, 3))]).tolist()
    [0, 1, 0]
    """
    matrices = [matrix for matrix in matrices if not _is_uniform(matrix)]
    # Hashes of the sorted cells of every row and of every column: equal for swappable devices.
    prints = [
        [hash(cells.tobytes()) for cells in np.sort(side, axis=1)]
        for matrix in matrices
        for side in (matrix, matrix.T)
    ]
    representatives: dict[Hashable, list[tuple[int, int]]] = {}
    classes = np.empty(len(devices), np.int32)
    n_classes = 0
    columns = [getattr(devices, name).tolist() for name in NUMERIC_COLUMNS]
    for d, facts in enumerate(zip(*columns, devices.tags, strict=True)):
        alike = representatives.setdefault((facts, *(p[d] for p in prints)), [])
        for r, number in alike:
            if all(_symmetric(matrix, r, d) for matrix in matrices):
                classes[d] = number
                break
        else:
            alike.append((d, n_classes))
            classes[d] = n_classes
            n_classes += 1
    return classes


def _is_uniform(matrix: Floats) -> bool:
    """Whether all cells off the diagonal are equal, so that any swap keeps them."""
    if len(matrix) == 1:
        return True
    off_diagonal = matrix.ravel()[1:].reshape(len(matrix) - 1, -1)[:, :-1]
    return bool((off_diagonal == off_diagonal[0, 0]).all())


def _symmetric(matrix: Floats, a: int, b: int) -> bool:
    """Whether swapping rows a and b and columns a and b does not change the matrix."""
    rows = matrix[a] == matrix[b]
    columns = matrix[:, a] == matrix[:, b]
    rows[[a, b]] = columns[[a, b]] = True
    return bool(matrix[a, b] == matrix[b, a] and rows.all() and columns.all())
