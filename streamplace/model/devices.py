"""Devices: what operators run on, stored as columns; a `Device` is one row."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from streamplace.errors import ClusterError
from streamplace.model.columns import Floats, Ints, float_column, frozen, same_fields
from streamplace.model.units import Quantity, bandwidth_bps, mips, size_bytes

_NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Device:
    """One machine, or one accelerator in it.

    Attributes
    ----------
    mips
        Million instructions per second of one core.
    tags
        What it offers ("gpu", "ssd", …); operators may require tags.
    memory
        Bytes; infinite by default.
    egress, ingress
        What its network card sends and receives at most, over all links, in bit/s; infinite where
        only the links limit.
    """

    name: str
    mips: Quantity = 2500.0
    cores: int = 1
    tags: frozenset[str] = _NOTHING
    memory: Quantity = math.inf
    egress: Quantity = math.inf
    ingress: Quantity = math.inf


@dataclass(frozen=True, slots=True, eq=False)
class Devices(Sequence[Device]):
    """All devices of a cluster, column by column."""

    name: tuple[str, ...]
    mips: Floats
    cores: Ints
    tags: tuple[frozenset[str], ...]
    memory: Floats
    egress_bps: Floats
    ingress_bps: Floats
    _position: dict[str, int] = field(init=False, repr=False, compare=False)

    @classmethod
    def of(cls, devices: Iterable[Device]) -> "Devices":
        """Columns from single devices; quantities may be texts such as ``"2500 MIPS"``."""
        rows = list(devices)
        return cls(
            tuple(row.name for row in rows),
            np.array([mips(row.mips) for row in rows]),
            np.array([row.cores for row in rows]),
            tuple(frozenset(row.tags) for row in rows),
            np.array([_or_infinite(row.memory, size_bytes) for row in rows]),
            np.array([_or_infinite(row.egress, bandwidth_bps) for row in rows]),
            np.array([_or_infinite(row.ingress, bandwidth_bps) for row in rows]),
        )

    def __post_init__(self) -> None:
        put = object.__setattr__
        size = len(self.name)
        if not size:
            raise ClusterError("the cluster has no devices; it needs at least one")
        position = {name: i for i, name in enumerate(self.name)}
        if len(position) < size or "" in position:
            raise ClusterError("device names must differ and not be empty; correct the names")
        put(self, "_position", position)
        self._put_floats("mips", positive=True)
        for column in ("memory", "egress_bps", "ingress_bps"):
            self._put_limit(column)
        self._put_floats("cores", positive=True)
        whole = self.cores == np.floor(self.cores)
        if not whole.all():
            raise self._bad(int(np.argmin(whole)), "cores", "that are not a whole number")
        put(self, "cores", frozen(self.cores.astype(np.int32)))

    def __len__(self) -> int:
        return len(self.name)

    def __getitem__(self, key: int | str) -> Device:  # type: ignore[override]
        i = self.index(key) if isinstance(key, str) else range(len(self))[key]
        return Device(
            self.name[i],
            float(self.mips[i]),
            int(self.cores[i]),
            self.tags[i],
            float(self.memory[i]),
            float(self.egress_bps[i]),
            float(self.ingress_bps[i]),
        )

    def __iter__(self) -> Iterator[Device]:
        return (self[i] for i in range(len(self)))

    def __contains__(self, name: object) -> bool:
        return name in self._position

    def __eq__(self, other: object) -> bool:
        return same_fields(self, other)

    def __hash__(self) -> int:
        return hash(self.name)

    def index(self, name: str) -> int:  # type: ignore[override]
        """Row of the device with this name."""
        try:
            return self._position[name]
        except KeyError:
            known = ", ".join(self.name[:8]) + (", …" if len(self) > 8 else "")
            raise ClusterError(f"there is no device {name!r}; the cluster has {known}") from None

    def _put_floats(self, column: str, *, positive: bool) -> None:
        values = getattr(self, column)
        checked = float_column(
            values, len(self), 0.0, lambda i, why: self._bad(i, column, why), positive=positive
        )
        object.__setattr__(self, column, checked)

    def _put_limit(self, column: str) -> None:
        """Like a float column, but infinity means "no limit"."""
        values = np.array(getattr(self, column), np.float64)
        endless = np.isposinf(values)
        object.__setattr__(self, column, np.where(endless, 1.0, values))
        self._put_floats(column, positive=True)
        object.__setattr__(self, column, frozen(np.where(endless, np.inf, values)))

    def _bad(self, i: int, column: str, why: str) -> ClusterError:
        who = f"device {self.name[i]!r} has" if i >= 0 else "devices' column"
        return ClusterError(f"{who} {column} {why}")


def _or_infinite(value: Quantity, parse: "type[float] | object") -> float:
    return math.inf if value == math.inf else parse(value)  # type: ignore[operator]
