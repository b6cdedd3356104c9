"""Offers: the types of machines that can be bought or are owned, and their prices."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from math import gcd, isfinite, lcm
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from streamplace.errors import ClusterError, StreamplaceError
from streamplace.io.files import MAX_TOML_BYTES, located, read_bytes, spot
from streamplace.io.parsing import parse_tables, parse_toml
from streamplace.model.arrays import Floats
from streamplace.model.cluster import MAX_DEVICES
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
from streamplace.model.message_text import quoted, suggestion
from streamplace.model.paths import is_path
from streamplace.model.units import (
    MAX_VALUE,
    UNLIMITED_BPS,
    Quantity,
    bandwidth_bps,
    check_bandwidth,
    mips,
    seconds,
)

MIN_PRICE = 1e-15
"""Smallest price of a machine that is not owned."""
MAX_OFFERS = 500
"""Most types of machines; each cut and each step of the search for a plan reads all of them."""
OF_DEVICE = dict(rules_of(Device))


@dataclass(frozen=True, slots=True, repr=False)
class Offer(CheckedRow):
    """One type of machine.

    Attributes
    ----------
    price
        Price of one machine per hour, in any currency; 0 only if it is owned.
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
    owned
        Number of machines that exist already, the most in a plan; 0 for machines to buy. A single
        one has the name of the offer, several are numbered like bought ones.

    Examples
    --------
    >>> Offer("small", 0.1, mips="2500 MIPS", cores=4).instructions
    10000000000.0
    """

    name: str
    price: float = ruled(NumberRule())
    mips: Quantity = ruled(OF_DEVICE["mips"])
    cores: int = ruled(OF_DEVICE["cores"])
    memory: Quantity = ruled(OF_DEVICE["memory"])
    egress: Quantity = ruled(OF_DEVICE["egress"])
    ingress: Quantity = ruled(OF_DEVICE["ingress"])
    slots: float = math.inf
    tags: frozenset[str] = ruled(OF_DEVICE["tags"])
    at_least: int = ruled(CountRule(0, MAX_DEVICES))
    at_most: int = field(default=MAX_DEVICES, metadata={"rule": CountRule(1, MAX_DEVICES)})
    reserved: Quantity = ruled(OF_DEVICE["reserved"])
    owned: int = ruled(CountRule(0, MAX_DEVICES))

    _error: ClassVar[type[StreamplaceError]] = ClusterError
    _called: ClassVar[str] = "an offer"

    def __post_init__(self) -> None:
        put = partial(object.__setattr__, self)
        check_name(self.name, self._called, self._error)
        for column in ("cores", "slots", "at_least", "at_most", "owned"):
            value = getattr(self, column)
            if isinstance(value, np.number | float) and float(value).is_integer():  # of a table
                put(column, int(value))
        self._check()
        if self.price < MIN_PRICE and not (self.owned and self.price == 0):
            raise ClusterError(
                f"{self._owner} has price {self.price:g}; it must be at least {MIN_PRICE:g}, or "
                "owned must say how many you have"
            )
        if self.owned:
            put("at_most", min(self.at_most, self.owned))
        settle_units(self)
        put("tags", frozenset(self.tags))
        if self.slots != math.inf:
            check_whole(
                self.slots,
                1,
                int(MAX_VALUE),
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
        """Instructions per second of one core, less its reserved part."""
        return (float(self.mips) - float(self.reserved) / self.cores) * 1e6

    @property
    def instructions(self) -> float:
        """Instructions per second of all cores."""
        return self.core_speed * self.cores

    def device(self, name: str) -> Device:
        """Return a machine of this type as a device of a cluster."""
        alike = {shared: getattr(self, shared) for shared in _SHARED}
        return Device(name, **alike | {"tags": without_places(self.tags)})

    @classmethod
    def of_device(cls, device: Device, price: float = 1.0) -> "Offer":
        """Return a type of owned machine that is like a device."""
        alike = {shared: getattr(device, shared) for shared in _SHARED}
        return cls("machine", price, owned=MAX_DEVICES, **alike)


_SHARED = OF_DEVICE.keys() & dict(rules_of(Offer)).keys() - {"price"}
"""Fields that a type of machine and a device have in common."""


ON = "\0"
"""Beginning of a tag that stands for machines named by rules; no tag of a file has it."""


def is_place(tag: str) -> bool:
    """Whether a tag stands for machines."""
    return tag.startswith(ON)


def without_places(tags: Iterable[str]) -> frozenset[str]:
    """Tags that do not stand for machines."""
    return frozenset(tag for tag in tags if not is_place(tag))


def offer_of(machine: str, alone: Collection[str] = ()) -> str:
    """Offer of a machine: its name, without the number that tells equal machines apart.

    Machines that are ``alone`` have the name of their offer.
    """
    return machine if machine in alone else machine.rpartition("-")[0]


class Link(NamedTuple):
    """Links from each machine of an offer to each machine of another, in one direction."""

    source: str
    target: str
    bandwidth: float  # bit/s
    latency: float  # seconds


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All offers, the links between their machines, and the CPU cost of tuples on these."""

    offers: tuple[Offer, ...]
    overhead: float = 0.0  # core seconds per remote tuple, at each end
    overhead_per_byte: float = 0.0  # core seconds per byte of a remote tuple, at each end
    # Whether a slot may hold a subtask of each operator of a slot sharing group, as in Flink;
    # otherwise it holds one subtask.
    slot_sharing: bool = False
    # Links that are unlike all others, and the bandwidth (bit/s) and latency (s) of these.
    links: tuple[Link, ...] = ()
    bandwidth: float = UNLIMITED_BPS
    latency: float = 0.0
    # Offers of one machine of another offer, which a rule names; `offer_of` gives the other offer.
    singled: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not self.offers:
            raise ClusterError("there are no offers; add at least one")
        if len(self.offers) > MAX_OFFERS:
            raise ClusterError(
                f"there are {len(self.offers)} offers, and a plan takes at most {MAX_OFFERS}; "
                "drop offers that cost more than others and are no larger"
            )
        names = [offer.name for offer in self.offers]
        duplicate = next((name for i, name in enumerate(names) if name in names[:i]), None)
        if duplicate is not None:
            raise ClusterError(f"two offers are called {quoted(duplicate)}; rename one")
        for offer in self.offers:
            several = next((o for o in self.offers if o.name == offer_of(offer.name)), None)
            if offer.owned == 1 and several is not None and several.owned != 1:
                raise ClusterError(
                    f"a machine of offer {quoted(several.name)} may get the name of offer "
                    f"{quoted(offer.name)}; rename one"
                )
        if sum(offer.at_least for offer in self.offers) > MAX_DEVICES:
            raise ClusterError(
                f"at_least of all offers together is above {MAX_DEVICES}, the most machines of a "
                "cluster; lower it"
            )

    @classmethod
    def of(
        cls,
        offers: Iterable[Offer],
        overhead: Quantity = 0.0,
        overhead_per_byte: Quantity = 0.0,
        slot_sharing: bool = False,
        links: Iterable[Mapping[str, Any]] = (),
        bandwidth: Quantity | None = None,
        latency: Quantity = 0.0,
    ) -> "Catalogue":
        """Build a catalogue from offers, with units parsed; links are as in a file."""
        listed_offers = tuple(offers)
        with located("overhead"):
            per_tuple = seconds(overhead)
        with located("overhead_per_byte"):
            per_byte = seconds(overhead_per_byte)
        fastest = max((float(offer.mips) for offer in listed_offers), default=0.0)
        with located("every link"):
            default = _bandwidth(bandwidth, fastest), seconds(latency)
        names = [offer.name for offer in listed_offers]
        pairs = dict[tuple[str, str], Link]()
        for row in links:
            ends = str(row["from"]), str(row["to"])
            with located(f"link {ends[0]}→{ends[1]}"):
                if unknown := [name for name in ends if name not in names]:
                    hint = suggestion(unknown[0], names)
                    raise ClusterError(f"there is no offer {quoted(unknown[0])}{hint}")
                if ends in pairs:
                    raise ClusterError("it is listed twice; drop one")
                speed = _bandwidth(row["bandwidth"], fastest) if "bandwidth" in row else default[0]
                delay = seconds(row["latency"]) if "latency" in row else default[1]
                pairs[ends] = Link(*ends, speed, delay)
        return cls(
            listed_offers, per_tuple, per_byte, slot_sharing, tuple(pairs.values()), *default
        )

    def family(self, offer: str) -> str:
        """Name of the offer of the file to which an offer of the catalogue belongs."""
        return offer_of(offer) if offer in self.singled else offer

    @property
    def whole(self) -> tuple[Offer, ...]:
        """Offers with all of their machines, as in the file."""
        merged = dict[str, Offer]()
        for offer in self.offers:
            name = self.family(offer.name)
            low, high = offer.at_least, offer.at_most
            if other := merged.get(name):
                low, high = low + other.at_least, high + other.at_most
            merged[name] = replace(offer, name=name, at_least=low, at_most=high)
        return tuple(merged.values())

    @property
    def alone(self) -> frozenset[str]:
        """Machines with the name of their offer, because they are its only ones."""
        return frozenset(offer.name for offer in self.offers if offer.owned == 1)

    def machines(self, kinds: Iterable[int]) -> list[str]:
        """Names of machines of these types, in order."""
        names, number = list[str](), Counter[int]()
        for kind in kinds:
            offer = self.offers[kind]
            name = offer.name
            if name not in self.alone | self.singled:
                while f"{name}-{number[kind]}" in self.singled:
                    number[kind] += 1
                name = f"{name}-{number[kind]}"
                number[kind] += 1
            names.append(name)
        return names

    @property
    def is_linked(self) -> bool:
        """Whether links limit what machines send to each other."""
        return min([self.bandwidth, *(link.bandwidth for link in self.links)]) < UNLIMITED_BPS

    def between(self, kinds: Sequence[int]) -> tuple[Floats, Floats]:
        """Bandwidth and latency of the links between machines of these types, [D, D] each."""
        family = np.array([self.family(self.offers[kind].name) for kind in kinds])
        speed, delay = (np.full((len(kinds),) * 2, x) for x in (self.bandwidth, self.latency))
        for link in self.links:
            pairs = np.ix_(family == link.source, family == link.target)
            speed[pairs], delay[pairs] = link.bandwidth, link.latency
        return speed, delay

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

        A second of a core counts in full, whatever is reserved of the core.
        """
        speed = 1e6 * np.array([float(offer.mips) for offer in self.offers])
        return self.overhead * speed, self.overhead_per_byte / 8 * speed


def exact_price(price: float) -> Fraction:
    """Exact value of a price in decimals."""
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
        step = gcd(*multiples) or 1
        return cls(tuple(number // step for number in multiples), Fraction(step, common))

    def cost(self, counts: Sequence[int]) -> int:
        """Cost of these numbers of machines, in units."""
        return sum(n * x for n, x in zip(self.numbers, counts, strict=True))

    def per_hour(self, counts: Sequence[int]) -> float:
        """Price per hour of these numbers of machines."""
        return float(self.cost(counts) * self.unit)


def read_offers(path: Path) -> Catalogue:
    """Read offers from a TOML file with a table ``[[offers]]`` for each type of machine."""
    return parse_offers(read_bytes(path, MAX_TOML_BYTES), spot(path))


def catalogue_of(value: Any) -> Catalogue:
    """Catalogue itself, of offers, or of a file."""
    if isinstance(value, Catalogue):
        return value
    if is_path(value):
        return read_offers(Path(value))
    if isinstance(value, Mapping):
        return offers_from_tables(value)
    listed = list(value) if isinstance(value, Iterable) else [value]
    if listed and all(isinstance(offer, Mapping) for offer in listed):
        return offers_from_tables({"offers": listed})
    if all(isinstance(offer, Offer) for offer in listed):
        return Catalogue.of(listed)
    raise ValueError(
        "it must be a list of Offer or of dictionaries, the tables of an offers file, or its path"
    )


def parse_offers(content: bytes, where: str) -> Catalogue:
    r"""Parse offers from a TOML document; errors mention ``where``.

    >>> text = b'offers = [{name = "small", price = 0.1, memory = "8 GB"}]'
    >>> parse_offers(text, "offers.toml").offers[0].memory
    8000000000.0

    >>> text = b'per_core = 0.04\nper_gb = 0.005\noffers = [{name = "m", memory = "8 GB"}]'
    >>> parse_offers(text, "offers.toml").offers[0].price
    0.08
    """
    return _catalogue(parse_toml("offers", content, where), where)


def offers_from_tables(tables: Mapping[str, Any]) -> Catalogue:
    """Catalogue from the tables of an offers file."""
    return _catalogue(parse_tables("offers", dict(tables), "offers"), "offers")


def _catalogue(tables: dict[str, Any], where: str) -> Catalogue:
    prices = tables.pop("per_core", 0.0), tables.pop("per_gb", 0.0)
    with located(where):
        offers = [_priced(dict(row), *prices) for row in tables.pop("offers")]
        return Catalogue.of(offers, **tables)


def _bandwidth(value: Quantity | None, fastest: float) -> float:
    """Bandwidth of a link between machines whose fastest core has this speed."""
    if value is None:
        return UNLIMITED_BPS
    number = bandwidth_bps(value)
    check_bandwidth("bandwidth", number, fastest)
    if not number > 0:
        raise ClusterError(f"bandwidth is {number:g}; it must be above 0")
    return number


def _priced(row: dict[str, Any], per_core: float, per_gb: float) -> Offer:
    """Offer with its stated price, or with the price of its cores and memory.

    ``cpu`` becomes the fewest whole cores, slowed to its speed: a quota limits every thread.
    """
    if (cpu := row.pop("cpu", None)) is not None:
        if other := row.keys() & {"mips", "cores"}:
            raise ClusterError(
                f"offer {quoted(row['name'])} has cpu and {min(other)}; cpu is both cores and "
                "mips, so drop one"
            )
        row["cores"] = math.ceil(cpu)
        row["mips"] = mips(SPEED) * cpu / row["cores"]
    if "price" in row or row.get("owned"):
        return Offer(**row)
    offer = Offer(**row, price=1.0)
    cores = offer.cores * float(offer.mips) / mips(SPEED)
    price = per_core * cores + (per_gb * float(offer.memory) / 1e9 if per_gb else 0.0)
    if not 0 < price < math.inf:
        raise ClusterError(
            f"{offer._owner} has no price; give price, or per_core and per_gb with its memory"
        )
    return replace(offer, price=float(f"{price:.6g}"))
