"""Offers: the types of machines that can be bought, and their prices."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from math import gcd, isfinite, lcm
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np

from streamplace.errors import ClusterError, StreamplaceError
from streamplace.io.files import LARGEST_TOML, located, read_bytes, spot
from streamplace.io.parsing import parse_toml
from streamplace.model.arrays import Floats
from streamplace.model.cluster import MOST_DEVICES
from streamplace.model.columns import (
    CheckedRow,
    CountRule,
    NumberRule,
    check_name,
    check_whole,
    ruled,
    rules_of,
)
from streamplace.model.defaults import SPEED
from streamplace.model.devices import Device, settle_units
from streamplace.model.message_text import quoted
from streamplace.model.paths import is_path
from streamplace.model.units import LARGEST, Quantity, mips, seconds

LEAST_PRICE = 1e-15
"""Smallest price of a machine."""
MOST_OFFERS = 500
"""Most types of machines; each cut and each step of the search for a plan reads all of them."""
OF_DEVICE = dict(rules_of(Device))


@dataclass(frozen=True, slots=True, repr=False)
class Offer(CheckedRow):
    """One type of machine.

    Attributes
    ----------
    price
        Price of one machine per hour, in any currency.
    mips, cores
        Million instructions per second of a core, and number of cores.
    memory
        Bytes; infinite by default.
    egress, ingress
        Bandwidth of the network card in each direction, in bit/s; infinite by default.
    slots
        Slots of a machine, for the subtasks that it runs; infinite by default.
    tags
        Features of the machine ("gpu", "ssd", …); operators may require tags.
    at_least, at_most
        Fewest and most machines of this type in a plan.
    reserved
        MIPS of all its cores together that other processes take, such as Java.

    Examples
    --------
    >>> Offer("small", 0.1, mips="2500 MIPS", cores=4).instructions
    10000000000.0
    """

    name: str
    price: float = field(metadata={"rule": NumberRule(LEAST_PRICE, least=LEAST_PRICE)})
    mips: Quantity = ruled(OF_DEVICE["mips"])
    cores: int = ruled(OF_DEVICE["cores"])
    memory: Quantity = ruled(OF_DEVICE["memory"])
    egress: Quantity = ruled(OF_DEVICE["egress"])
    ingress: Quantity = ruled(OF_DEVICE["ingress"])
    slots: float = math.inf
    tags: frozenset[str] = ruled(OF_DEVICE["tags"])
    at_least: int = ruled(CountRule(0, MOST_DEVICES))
    at_most: int = field(default=MOST_DEVICES, metadata={"rule": CountRule(1, MOST_DEVICES)})
    reserved: Quantity = ruled(OF_DEVICE["reserved"])

    _error: ClassVar[type[StreamplaceError]] = ClusterError
    _called: ClassVar[str] = "an offer"

    def __post_init__(self) -> None:
        put = partial(object.__setattr__, self)
        check_name(self.name, self._called, self._error)
        for column in ("cores", "slots", "at_least", "at_most"):
            value = getattr(self, column)
            if isinstance(value, np.number | float) and float(value).is_integer():  # of a table
                put(column, int(value))
        self._check()
        settle_units(self)
        put("tags", frozenset(self.tags))
        if self.slots != math.inf:
            check_whole(
                self.slots,
                1,
                int(LARGEST),
                lambda value, rule: ClusterError(f"{self._owner} has slots {value}; {rule}"),
            )
        if not float(self.reserved) < float(self.mips) * self.cores:
            raise ClusterError(
                f"{self._owner} has reserved {float(self.reserved):g}; it must be less than mips "
                "times cores, so that something is left for operators"
            )
        if self.at_least > self.at_most:
            raise ClusterError(
                f"{self._owner} has at_least {self.at_least} and at_most {self.at_most}; "
                "at_least must not be above at_most"
            )

    @property
    def core_speed(self) -> float:
        """Instructions per second of one core, less what is reserved of it."""
        return (float(self.mips) - float(self.reserved) / self.cores) * 1e6

    @property
    def instructions(self) -> float:
        """Instructions per second of all cores."""
        return self.core_speed * self.cores

    def device(self, name: str) -> Device:
        """Return a machine of this type as a device of a cluster."""
        return Device(name, **{shared: getattr(self, shared) for shared in _SHARED})

    @classmethod
    def of_device(cls, device: Device) -> "Offer":
        """Return a type of machine with a price of 1 that is like a device."""
        return cls("machine", 1.0, **{shared: getattr(device, shared) for shared in _SHARED})


_SHARED = OF_DEVICE.keys() & dict(rules_of(Offer)).keys()
"""Fields that a type of machine and a device have in common."""


def offer_of(machine: str) -> str:
    """Type of a bought machine: its name without the number that tells equal machines apart."""
    return machine.rpartition("-")[0]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All offers, and the CPU cost of tuples between machines."""

    offers: tuple[Offer, ...]
    overhead: float = 0.0  # core seconds per remote tuple, at each end
    overhead_per_byte: float = 0.0  # core seconds per byte of a remote tuple, at each end
    # Whether a slot may hold a subtask of each operator of a slot sharing group, as in Flink;
    # otherwise it holds one subtask.
    slot_sharing: bool = False

    def __post_init__(self) -> None:
        if not self.offers:
            raise ClusterError("there are no offers; add at least one")
        if len(self.offers) > MOST_OFFERS:
            raise ClusterError(
                f"there are {len(self.offers)} offers, and a plan takes at most {MOST_OFFERS}; "
                "leave out those that cost more than others and are no larger"
            )
        names = [offer.name for offer in self.offers]
        twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
        if twice is not None:
            raise ClusterError(f"two offers are called {quoted(twice)}; names must differ")
        if sum(offer.at_least for offer in self.offers) > MOST_DEVICES:
            raise ClusterError(
                f"at_least of all offers together is above {MOST_DEVICES}, the most machines of a "
                "cluster; lower it"
            )

    @classmethod
    def of(
        cls,
        offers: Iterable[Offer],
        overhead: Quantity = 0.0,
        overhead_per_byte: Quantity = 0.0,
        slot_sharing: bool = False,
    ) -> "Catalogue":
        """Build a catalogue from offers, with units parsed."""
        with located("overhead"):
            per_tuple = seconds(overhead)
        with located("overhead_per_byte"):
            per_byte = seconds(overhead_per_byte)
        return cls(tuple(offers), per_tuple, per_byte, slot_sharing)

    def slots(self, counts: Sequence[int]) -> float:
        """Slots of these numbers of machines together."""
        return sum(offer.slots * n for offer, n in zip(self.offers, counts, strict=True) if n)

    @property
    def handles(self) -> bool:
        """Whether sending or receiving takes CPU."""
        return self.overhead > 0 or self.overhead_per_byte > 0

    @property
    def network_matters(self) -> bool:
        """Whether a plan depends on which streams cross machines."""
        cards = [float(card) for offer in self.offers for card in (offer.egress, offer.ingress)]
        return self.handles or any(map(isfinite, cards))

    @property
    def handling(self) -> tuple[Floats, Floats]:
        """Instructions per remote tuple and per bit of it on a machine of each type, at each end.

        Seconds of a core are those of a whole one, whatever is reserved of it.
        """
        speed = 1e6 * np.array([float(offer.mips) for offer in self.offers])
        return self.overhead * speed, self.overhead_per_byte / 8 * speed


def exact_price(price: float) -> Fraction:
    """A price as it is written in decimals."""
    return Fraction(repr(float(price)))


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of machines as integers, the multiples of a common unit.

    >>> prices = Prices.of(Catalogue.of([Offer("small", 0.1), Offer("large", 0.25)]))
    >>> prices.numbers, prices.unit, prices.per_hour([1, 2])
    ((2, 5), Fraction(1, 20), 0.6)
    """

    numbers: tuple[int, ...]
    unit: Fraction

    @classmethod
    def of(cls, catalogue: Catalogue) -> "Prices":
        """Prices of the offers, exactly as they are written in decimals."""
        exact = [exact_price(offer.price) for offer in catalogue.offers]
        common = lcm(*(price.denominator for price in exact))
        multiples = [int(price * common) for price in exact]
        step = gcd(*multiples)
        return cls(tuple(number // step for number in multiples), Fraction(step, common))

    def cost(self, counts: Sequence[int]) -> int:
        """Cost of these numbers of machines, in units."""
        return sum(n * x for n, x in zip(self.numbers, counts, strict=True))

    def per_hour(self, counts: Sequence[int]) -> float:
        """Price per hour of these numbers of machines."""
        return float(self.cost(counts) * self.unit)


def read_offers(path: Path) -> Catalogue:
    """Read offers from a TOML file with a table ``[[offers]]`` for each type of machine."""
    return parse_offers(read_bytes(path, LARGEST_TOML), spot(path))


def catalogue_of(value: Any) -> Catalogue:
    """Catalogue itself, of offers, or of a file."""
    if isinstance(value, Catalogue):
        return value
    if is_path(value):
        return read_offers(Path(value))
    listed = list(value) if isinstance(value, Iterable) else [value]
    if all(isinstance(offer, Offer) for offer in listed):
        return Catalogue.of(listed)
    raise ValueError("it must be a list of Offer, or the path of a file with offers")


def parse_offers(content: bytes, where: str) -> Catalogue:
    r"""Parse offers from a TOML document; errors mention ``where``.

    >>> text = b'offers = [{name = "small", price = 0.1, memory = "8 GB"}]'
    >>> parse_offers(text, "offers.toml").offers[0].memory
    8000000000.0

    >>> text = b'per_core = 0.04\nper_gb = 0.005\noffers = [{name = "m", memory = "8 GB"}]'
    >>> parse_offers(text, "offers.toml").offers[0].price
    0.08
    """
    tables = parse_toml("offers", content, where)
    prices = tables.get("per_core", 0.0), tables.get("per_gb", 0.0)
    with located(where):
        return Catalogue.of(
            [_priced(cast(dict[str, Any], row), *prices) for row in tables["offers"]],
            tables.get("overhead", 0.0),
            tables.get("overhead_per_byte", 0.0),
            tables.get("slot_sharing", False),
        )


def _priced(row: dict[str, Any], per_core: float, per_gb: float) -> Offer:
    """Offer with its own price, or that of its cores and memory.

    The fewest cores have the speed of its ``cpu``, as a quota below one limits every thread.
    """
    if (cpu := row.pop("cpu", None)) is not None:
        if other := row.keys() & {"mips", "cores"}:
            raise ClusterError(
                f"offer {quoted(row['name'])} has cpu and {min(other)}; cpu is both cores and "
                "mips, so drop one"
            )
        row["cores"] = math.ceil(cpu)
        row["mips"] = mips(SPEED) * cpu / row["cores"]
    if "price" in row:
        return Offer(**row)
    offer = Offer(**row, price=1.0)
    cores = offer.cores * float(offer.mips) / mips(SPEED)
    price = per_core * cores + (per_gb * float(offer.memory) / 1e9 if per_gb else 0.0)
    if not 0 < price < math.inf:
        raise ClusterError(
            f"{offer._owner} has no price; give price, or per_core and per_gb with its memory"
        )
    return replace(offer, price=float(f"{price:.6g}"))
