"""Constraints: what a placement must respect, in names."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Constraints:
    """Where operators must, may and must not run.

    Attributes
    ----------
    pin
        Operator → the device it must run on.
    colocate
        Groups of operators that share a device.
    exlocate
        Groups of operators of which no two share a device.
    allowed
        Operator → the devices it may run on. Tags that an operator requires narrow this further.

    Examples
    --------
    >>> Constraints(pin={"src": "d0"}, exlocate=[{"join", "sink"}])
    Constraints(pin={'src': 'd0'}, colocate=(), exlocate=(frozenset({...}),), allowed={})
    """

    pin: Mapping[str, str] = field(default_factory=dict)
    colocate: tuple[frozenset[str], ...] = ()
    exlocate: tuple[frozenset[str], ...] = ()
    allowed: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "pin", dict(self.pin))
        put(self, "colocate", tuple(frozenset(group) for group in self.colocate))
        put(self, "exlocate", tuple(frozenset(group) for group in self.exlocate))
        put(self, "allowed", {name: frozenset(devices) for name, devices in self.allowed.items()})
