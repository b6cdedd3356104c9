"""Offers: the types of machines that can be bought, and their prices."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import partial
from math import gcd, lcm
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from streamplace.errors import ClusterError
from streamplace.io.files import LARGEST_TOML, located, read_bytes, spot
from streamplace.io.parsing import checked, parse_toml_text
from streamplace.io.schema import OffersToml, OfferToml
from streamplace.model.arrays import Floats
from streamplace.model.cluster import MOST_DEVICES
from streamplace.model.columns import check_tags, check_whole
from streamplace.model.devices import MOST_CORES, SLOWEST, Device
from streamplace.model.messages import quoted
from streamplace.model.objects import call_of
from streamplace.model.units import (
    LARGEST,
    Quantity,
    bandwidth_bps,
    check_bandwidth,
    mips,
    seconds,
    size_bytes,
)

_NOTHING: frozenset[str] = frozenset()
LEAST_PRICE = 1e-15
"""Smallest price of a machine."""
MOST_OFFERS = 500
"""Most types of machines; each cut and each step of the search for a plan looks at all of them."""


@dataclass(frozen=True, slots=True)
class Offer:
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
    price: float
    mips: Quantity = 2500.0
    cores: int = 1
    memory: Quantity = math.inf
    egress: Quantity = math.inf
    ingress: Quantity = math.inf
    slots: float = math.inf
    tags: frozenset[str] = _NOTHING
    at_least: int = 0
    at_most: int = MOST_DEVICES
    reserved: Quantity = 0.0

    __repr__ = call_of

    def __post_init__(self) -> None:
        put = partial(object.__setattr__, self)
        if not isinstance(self.name, str) or not self.name:
            raise ClusterError(f"an offer is called {quoted(self.name)}; give it a name")
        with located(f"offer {quoted(self.name)}"):
            put("mips", _positive("mips", self.mips, mips))
            with located("reserved"):
                put("reserved", mips(self.reserved))
            put("memory", _limit("memory", self.memory, size_bytes))
            for column in ("egress", "ingress"):
                put(column, _limit(column, getattr(self, column), bandwidth_bps))
                check_bandwidth(column, getattr(self, column), float(self.mips))
            check_tags(self.tags, partial(_bad, "tags"))
            put("tags", frozenset(self.tags))
            self._check()

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

    def _check(self) -> None:
        price, slots = self.price, self.slots
        is_number = isinstance(price, Real) and not isinstance(price, bool)
        if not is_number or not LEAST_PRICE <= price <= LARGEST:
            value = f"{price:g}" if is_number else quoted(price)
            raise _bad("price", value, f"it must be > 0, from {LEAST_PRICE:g} to {LARGEST:g}")
        counts = {"cores": (1, MOST_CORES), "at_most": (1, MOST_DEVICES)}
        counts["at_least"] = (0, MOST_DEVICES)
        if slots != math.inf:
            counts["slots"] = (1, int(LARGEST))
        for column, (least, most) in counts.items():
            check_whole(getattr(self, column), least, most, partial(_bad, column))
            object.__setattr__(self, column, int(getattr(self, column)))
        if not 0 <= float(self.reserved) < float(self.mips) * self.cores:
            raise ClusterError(
                f"reserved is {float(self.reserved):g}; it must be 0 or more and less than mips "
                "times cores, so that something is left for operators"
            )
        if self.at_least > self.at_most:
            raise ClusterError(
                f"at_least is {self.at_least} and at_most is {self.at_most}; "
                "at_least must not be above at_most"
            )


_SHARED = {f.name for f in fields(Offer)} & {f.name for f in fields(Device)} - {"name"}
"""Fields that a type of machine and a device have in common."""


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

    @property
    def handles(self) -> bool:
        """Whether sending or receiving takes CPU."""
        return self.overhead > 0 or self.overhead_per_byte > 0

    @property
    def handling(self) -> tuple[Floats, Floats]:
        """Instructions per remote tuple and per bit of it on a machine of each type, at each end.

        Seconds of a core are those of a whole one, whatever is reserved of it.
        """
        speed = 1e6 * np.array([float(offer.mips) for offer in self.offers])
        return self.overhead * speed, self.overhead_per_byte / 8 * speed


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
        exact = [Fraction(repr(float(offer.price))) for offer in catalogue.offers]
        common = lcm(*(price.denominator for price in exact))
        whole = [int(price * common) for price in exact]
        step = gcd(*whole)
        return cls(tuple(number // step for number in whole), Fraction(step, common))

    def cost(self, counts: Sequence[int]) -> int:
        """Cost of these numbers of machines, in units."""
        return sum(n * x for n, x in zip(self.numbers, counts, strict=True))

    def per_hour(self, counts: Sequence[int]) -> float:
        """Price per hour of these numbers of machines."""
        return float(self.cost(counts) * self.unit)


def read_offers(path: Path) -> Catalogue:
    """Read offers from a TOML file with a table ``[[offers]]`` for each type of machine."""
    return parse_offers(read_bytes(path, LARGEST_TOML), spot(path))


def parse_offers(content: bytes, where: str) -> Catalogue:
    """Parse offers from a TOML document; errors mention ``where``.

    >>> text = b'offers = [{name = "small", price = 0.1, memory = "8 GB"}]'
    >>> parse_offers(text, "offers.toml").offers[0].memory
    8000000000.0
    """
    tables = checked(OffersToml, parse_toml_text(content, where), where)
    with located(where):
        return Catalogue.of(
            map(_offer, tables["offers"]),
            tables.get("overhead", 0.0),
            tables.get("overhead_per_byte", 0.0),
            tables.get("slot_sharing", False),
        )


def _offer(row: OfferToml) -> Offer:
    facts: dict[str, Any] = {**row}
    facts["tags"] = frozenset(facts.get("tags", ()))
    return Offer(**facts)


def _bad(field: str, value: str, rule: str) -> ClusterError:
    return ClusterError(f"{field} is {value}; {rule}")


def _positive(field: str, value: Quantity, parse: Any) -> float:
    with located(field):
        number: float = parse(value)
    if not SLOWEST <= number <= LARGEST:
        raise _bad(field, f"{number:g}", f"it must be {SLOWEST:g} to {LARGEST:g}")
    return number


def _limit(field: str, value: Quantity, parse: Any) -> float:
    return math.inf if value == math.inf else _positive(field, value, parse)
