"""Devices that operators run on, stored as columns; a `Device` is one row."""

from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any, ClassVar, Generic

import numpy as np
from numpy.typing import NDArray

from streamplace.errors import ClusterError, StreamplaceError, UnitError
from streamplace.model.arrays import Floats, Ints
from streamplace.model.columns import (
    CheckedRow,
    CountRule,
    Counts,
    NamedColumns,
    NumberRule,
    Numbers,
    TagSets,
    TagsRule,
    Texts,
    check_name,
    distinct_rows,
    frozen,
    ruled,
    rules_of,
)
from streamplace.model.defaults import MIPS
from streamplace.model.message_text import quoted
from streamplace.model.units import Quantity, Stated, bandwidth_bps, check_bandwidth, size_bytes
from streamplace.model.units import mips as speed

MAX_CORES = 1_000_000
MIN_MIPS = 1e-3
SLACK = 1e-9
"""Share by which a device may be overfull, for rounding errors."""


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class DeviceFields(Generic[Texts, Numbers, Counts, TagSets]):
    """The fields of a device, with their rules: values of `Device`, columns of `Devices`."""

    name: Texts
    mips: Numbers = ruled(NumberRule(MIPS, minimum=MIN_MIPS, parse=speed))
    cores: Counts = ruled(CountRule(1, MAX_CORES))
    tags: TagSets = ruled(TagsRule())
    memory: Numbers = ruled(NumberRule(inf, minimum=MIN_MIPS, parse=size_bytes))
    egress: Numbers = ruled(NumberRule(inf, minimum=MIN_MIPS, parse=bandwidth_bps))
    ingress: Numbers = ruled(NumberRule(inf, minimum=MIN_MIPS, parse=bandwidth_bps))
    watts: Numbers = ruled(NumberRule())
    reserved: Numbers = ruled(NumberRule(parse=speed))
    price: Numbers = ruled(NumberRule())


@dataclass(frozen=True, slots=True, repr=False)
class Device(CheckedRow, DeviceFields[str, Quantity, int, frozenset[str]]):
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
    price
        Price per hour, in any currency, for plans and the objective cost; 0 if it costs nothing.
    """

    _error: ClassVar[type[StreamplaceError]] = ClusterError
    _called: ClassVar[str] = "a device"

    def __post_init__(self) -> None:
        check_name(self.name, self._called, self._error)
        self._check()
        settle_units(self)


def settle_units(machine: Any) -> None:
    """Convert the speeds of a device or an offer; refuse numbers whose unit is in doubt."""
    owner = f"{type(machine).__name__.lower()} {quoted(machine.name)}"
    try:
        for column in ("mips", "reserved"):
            object.__setattr__(machine, column, speed(getattr(machine, column)))
    except UnitError as error:
        raise UnitError(f"{owner}: {error}") from None
    for column in ("egress", "ingress"):
        check_bandwidth(f"{owner}: {column}", getattr(machine, column), float(machine.mips))


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Devices(
    NamedColumns[Device], DeviceFields[tuple[str, ...], Floats, Ints, tuple[frozenset[str], ...]]
):
    """All devices of a cluster, column by column; omitted columns have `Device`'s defaults.

    Examples
    --------
    >>> devices = Devices(("cpu", "gpu"), mips=[2500, 9000], tags=[(), ("cuda",)])
    >>> devices["gpu"].mips, devices.index("gpu"), devices.cores.tolist()
    (9000.0, 1, [1, 1])
    """

    speed: Floats = field(init=False, compare=False)  # [D] MIPS of one core, less its reserved part
    # [D] kind of every device; devices of equal speed and number of cores are of one kind.
    kind: Ints = field(init=False, compare=False)
    example: NDArray[np.intp] = field(init=False, compare=False)  # one device of every kind
    _position: dict[str, int] = field(init=False, compare=False)
    _row: ClassVar[type[Any]] = Device
    _error: ClassVar[type[StreamplaceError]] = ClusterError
    _whole: ClassVar[str] = "cluster"

    def _finish(self) -> None:
        put = partial(object.__setattr__, self)
        put("speed", frozen(self.mips - self.reserved / self.cores))
        for device, mips in zip(self.name, self.speed, strict=True):
            if mips <= 0:
                raise ClusterError(
                    f"all of device {quoted(device)} is reserved, so nothing can run there; "
                    "reserve less than its mips times its cores, or leave it out"
                )
        example, kind = distinct_rows(self.speed, self.cores)
        put("example", frozen(example))
        put("kind", frozen(kind))

    def _values(self, i: int) -> dict[str, Any]:
        """Fields of a device, whose units are not in doubt any more."""
        values = NamedColumns._values(self, i)
        stated = (name for name, rule in rules_of(Device) if isinstance(rule, NumberRule))
        return values | {name: Stated(values[name]) for name in stated}


NUMERIC_COLUMNS = tuple(
    name for name, rule in rules_of(Devices) if isinstance(rule, NumberRule | CountRule)
)
"""Columns of `Devices` that are numbers."""
