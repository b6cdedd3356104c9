"""Constraints that a placement must respect, in names."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

from streamplace.errors import ProblemError
from streamplace.model.devices import Devices
from streamplace.model.message_text import quoted
from streamplace.model.mixins import call_of

TAG = "tag:"
"""Beginning of a label of all devices with a tag."""


@dataclass(frozen=True, slots=True, init=False)
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
        ``tag:gpu`` stands for the devices with the tag ``gpu``, and ``big`` for ``big0``, ``big1``
        and so on, if no device is called ``big``. A `Problem` has the names of the devices instead.
    dropped
        Operator → the lost device that it had to run on; see `Problem.without`.

    Examples
    --------
    >>> Constraints(pin={"src": "d0"}, exlocate=[{"join", "sink"}])
    Constraints(pin={'src': 'd0'}, exlocate=(frozenset({...}),))
    """

    pin: Mapping[str, str]
    colocate: tuple[frozenset[str], ...]
    exlocate: tuple[frozenset[str], ...]
    allowed: Mapping[str, frozenset[str]]
    dropped: Mapping[str, str] = field(repr=False, compare=False)

    __repr__ = call_of

    def __init__(
        self,
        pin: Mapping[str, str] | None = None,
        colocate: Iterable[Iterable[str]] = (),
        exlocate: Iterable[Iterable[str]] = (),
        allowed: Mapping[str, Iterable[str]] | None = None,
        dropped: Mapping[str, str] | None = None,
    ) -> None:
        put = partial(object.__setattr__, self)
        for what, rules in (("pin", pin), ("allowed", allowed)):
            if not isinstance(rules or {}, Mapping):
                raise ProblemError(f"{what} is {quoted(rules)}; it must map operators to devices")
        for name, device in (pin or {}).items():
            if not isinstance(device, str):
                raise ProblemError(
                    f"pin {quoted(name)} is {quoted(device)}; it must be the name of a device"
                )
        put("pin", dict(pin or {}))
        put("colocate", _groups("colocate", colocate))
        put("exlocate", _groups("exlocate", exlocate))
        devices = (allowed or {}).items()
        put("allowed", {name: _names(f"allowed {quoted(name)}", d) for name, d in devices})
        put("dropped", dict(dropped or {}))

    def limits(self) -> Iterator[tuple[str, frozenset[str], str]]:
        """Yield the operators of pins and of allowed devices, the labels, and the kind of rule."""
        for name, device in self.pin.items():
            yield name, frozenset({device}), "pin"
        for name, devices in self.allowed.items():
            yield name, devices, "allowed"

    def on(self, devices: Devices) -> "Constraints":
        """Return the same constraints, with labels replaced by the names of devices.

        >>> devices = Devices(("big0", "big1", "small"), tags=[(), (), ("gpu",)])
        >>> sorted(Constraints(allowed={"a": ["big"], "b": ["tag:gpu"]}).on(devices).allowed["a"])
        ['big0', 'big1']
        """
        if all(name in devices for names in self.allowed.values() for name in names):
            return self
        return Constraints(
            self.pin,
            self.colocate,
            self.exlocate,
            {
                operator: frozenset(chain.from_iterable(_labelled(devices, name) for name in names))
                for operator, names in self.allowed.items()
            },
            self.dropped,
        )


def _labelled(devices: Devices, label: str) -> Iterable[str]:
    """Names of the devices that a label stands for; the label itself if there are none."""
    if not isinstance(label, str) or label in devices:
        return [label]
    if label.startswith(TAG):
        tag = label.removeprefix(TAG)
        names = [n for n, tags in zip(devices.name, devices.tags, strict=True) if tag in tags]
    else:
        numbered = f"{label}-"  # as in plans
        names = [
            name
            for name in devices.name
            if name.removeprefix(numbered if name.startswith(numbered) else label).isdecimal()
        ]
    return names or [label]


def _groups(what: str, groups: Iterable[Iterable[str]]) -> tuple[frozenset[str], ...]:
    if isinstance(groups, str) or not isinstance(groups, Iterable):
        raise ProblemError(f"{what} is {quoted(groups)}; it must be a list of lists of names")
    return tuple(_names(what, group) for group in groups)


def _names(what: str, names: Iterable[str]) -> frozenset[str]:
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ProblemError(f"{what} holds {quoted(names)}; it must be a list of names")
    return frozenset(names)
