"""Devices that operators run on, stored as columns; a `Device` is one row."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamplace.errors import ClusterError, UnitError
from streamplace.model.arrays import Floats, Ints
from streamplace.model.columns import (
    Fail,
    check_name,
    check_tags,
    check_whole,
    distinct_rows,
    float_column,
    frozen,
    int_column,
    name_column,
    plain_item,
    tag_column,
)
from streamplace.model.messages import listed, quoted
from streamplace.model.objects import call_of, same_fields
from streamplace.model.units import (
    LARGEST,
    Quantity,
    Stated,
    bandwidth_bps,
    check_bandwidth,
    mips,
    size_bytes,
)

MOST_CORES = 1_000_000
SLOWEST = 1e-3
SLACK = 1e-9
"""Share of its memory by which a device may be overfull, for rounding errors."""
_NOTHING: frozenset[str] = frozenset()
_QUANTITIES: dict[str, Callable[[Quantity], float]] = {
    "mips": mips,
    "reserved": mips,
    "memory": size_bytes,
    "egress": bandwidth_bps,
    "ingress": bandwidth_bps,
}
"""Columns that may be texts, and their parsers."""


@dataclass(frozen=True, slots=True)
class Device:
    """One machine, or one accelerator in it.

    Attributes
    ----------
    mips
        Million instructions per second of one core.
    cores
        Number of cores; a subtask runs on one of them.
    tags
        Capabilities that it offers ("gpu", "ssd", …); operators may require tags.
    memory
        Bytes; infinite by default.
    egress, ingress
        Most bit/s that its network card sends and receives over all links; infinite where only
        the links limit.
    watts
        Power that a busy core draws beyond an idle one; 0 where energy is of no interest.
    reserved
        MIPS of all its cores together that other processes take, such as Java.
    """

    name: str
    mips: Quantity = 2500.0
    cores: int = 1
    tags: frozenset[str] = _NOTHING
    memory: Quantity = math.inf
    egress: Quantity = math.inf
    ingress: Quantity = math.inf
    watts: float = 0.0
    reserved: Quantity = 0.0

    __repr__ = call_of

    def __post_init__(self) -> None:
        check_name(self.name, "a device", ClusterError)
        for column, parse in _QUANTITIES.items():
            number = _read(self, getattr(self, column), parse)
            least = 0.0 if column == "reserved" else SLOWEST
            endless = column in ("mips", "reserved") and number == math.inf
            if not number >= least or endless:
                rule = f"it must be ≥ {least:g} and at most {LARGEST:g}"
                raise self._bad(column, f"{number:g}", rule)
            object.__setattr__(self, column, number)
            if column in ("egress", "ingress"):
                check_bandwidth(f"device {quoted(self.name)}: {column}", number, float(self.mips))
        check_whole(self.cores, 1, MOST_CORES, partial(self._bad, "cores"))
        check_tags(self.tags, partial(self._bad, "tags"))
        if not isinstance(self.watts, Real) or not 0 <= self.watts <= LARGEST:
            rule = f"it must be a number ≥ 0 and at most {LARGEST:g}"
            raise self._bad("watts", quoted(self.watts), rule)

    def _bad(self, column: str, value: str, rule: str) -> ClusterError:
        return ClusterError(f"device {quoted(self.name)} has {column} {value}; {rule}")


_FIELDS = fields(Device)
NUMERIC_COLUMNS = ("mips", "cores", "memory", "egress_bps", "ingress_bps", "watts", "reserved")
"""Columns of `Devices` that are numbers."""


def _column(name: str) -> str:
    """Name of the column of `Devices` for a field of `Device`."""
    return f"{name}_bps" if name in ("egress", "ingress") else name


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Devices:
    """All devices of a cluster, column by column; omitted columns have `Device`'s defaults.

    Attributes
    ----------
    speed
        [D] MIPS of one core, less what is reserved of it.
    kind
        [D] kind of every device; devices of equal speed and number of cores are of one kind.
    example
        One device of every kind.

    Examples
    --------
    >>> devices = Devices(("cpu", "gpu"), mips=[2500, 9000], tags=[(), ("cuda",)])
    >>> devices["gpu"].mips, devices.index("gpu"), devices.cores.tolist()
    (9000.0, 1, [1, 1])
    """

    name: tuple[str, ...]
    mips: Floats
    cores: Ints
    tags: tuple[frozenset[str], ...]
    memory: Floats
    egress_bps: Floats
    ingress_bps: Floats
    watts: Floats
    reserved: Floats
    speed: Floats = field(init=False, repr=False, compare=False)
    kind: Ints = field(init=False, repr=False, compare=False)
    example: NDArray[np.intp] = field(init=False, repr=False, compare=False)
    _position: dict[str, int] = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        name: Iterable[str],
        mips: ArrayLike | None = None,
        cores: ArrayLike | None = None,
        tags: Sequence[Iterable[str]] | None = None,
        memory: ArrayLike | None = None,
        egress_bps: ArrayLike | None = None,
        ingress_bps: ArrayLike | None = None,
        watts: ArrayLike | None = None,
        reserved: ArrayLike | None = None,
    ) -> None:
        put = partial(object.__setattr__, self)
        names, position = name_column(name, "a device", ClusterError)
        if not names:
            raise ClusterError("the cluster has no devices; it needs at least one")
        put("name", names)
        put("_position", position)
        size = len(names)
        gross = float_column(mips, size, 2500.0, partial(self._bad, "mips"), least=SLOWEST)
        put("mips", gross)
        bad = partial(self._bad, "cores")
        put("cores", int_column(cores, size, 1, bad, least=1, most=MOST_CORES))
        put("tags", tag_column(tags, size, partial(self._bad, "tags")))
        limits = {"memory": memory, "egress_bps": egress_bps, "ingress_bps": ingress_bps}
        for column, values in limits.items():
            put(column, _limit_column(values, size, partial(self._bad, column)))
        put("watts", float_column(watts, size, 0.0, partial(self._bad, "watts")))
        put("reserved", float_column(reserved, size, 0.0, partial(self._bad, "reserved")))
        put("speed", frozen(self.mips - self.reserved / self.cores))
        for device, speed in zip(names, self.speed, strict=True):
            if speed <= 0:
                raise ClusterError(
                    f"all of device {quoted(device)} is reserved, so nothing can run there; "
                    "reserve less than its mips times its cores, or leave it out"
                )
        example, kind = distinct_rows(self.speed, self.cores)
        put("example", frozen(example))
        put("kind", frozen(kind))

    @classmethod
    def of(cls, devices: Iterable[Device]) -> "Devices":
        """Columns from single devices."""
        rows = list(devices)
        return cls(**{_column(f.name): [getattr(row, f.name) for row in rows] for f in _FIELDS})

    def __repr__(self) -> str:
        return f"<Devices: {len(self)}>"

    def __len__(self) -> int:
        return len(self.name)

    def __getitem__(self, key: int | str) -> Device:
        i = self.index(key) if isinstance(key, str) else range(len(self))[key]
        row = {f.name: plain_item(getattr(self, _column(f.name)), i) for f in _FIELDS}
        return Device(**row | {column: Stated(row[column]) for column in _QUANTITIES})

    def __iter__(self) -> Iterator[Device]:
        return (self[i] for i in range(len(self)))

    def __contains__(self, name: object) -> bool:
        """Whether a device has this name."""
        return name in self._position

    def __eq__(self, other: object) -> bool:
        return same_fields(self, other)

    def __hash__(self) -> int:
        return hash(self.name)

    def index(self, name: str) -> int:
        """Row of the device with this name."""
        try:
            return self._position[name]
        except KeyError:
            raise ClusterError(
                f"there is no device {quoted(name)}; the cluster has {listed(self.name)}"
            ) from None

    def _bad(self, column: str, i: int, value: str, rule: str) -> ClusterError:
        if i < 0:
            return ClusterError(f"devices' column {column} {rule}")
        return ClusterError(f"device {quoted(self.name[i])} has {column} {value}; {rule}")


def _limit_column(values: ArrayLike | None, size: int, fail: Fail) -> Floats:
    """Like a float column, but infinity means "no limit" and is the default."""
    if values is None:
        return frozen(np.full(size, np.inf))
    try:
        limits = np.array(values, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise fail(-1, "", "must be numbers") from None
    endless = np.isposinf(limits)
    checked = float_column(np.where(endless, SLOWEST, limits), size, np.inf, fail, least=SLOWEST)
    return frozen(np.where(endless, np.inf, checked))


def _read(device: Device, value: Quantity, parse: Callable[[Quantity], float]) -> float:
    if value == math.inf:
        return math.inf
    try:
        return parse(value)
    except UnitError as error:
        raise UnitError(f"device {quoted(device.name)}: {error}") from None
