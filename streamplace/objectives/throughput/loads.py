"""Loads of devices and links at full rate, and the bottleneck, with names and in a drawing."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

import numpy as np

from streamplace.display.report import percent, some
from streamplace.model.arrays import ROUNDING, Bools, Floats, Ints, Longs
from streamplace.model.message_text import shown
from streamplace.model.mixins import MAX_WIDTH
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.units import UNLIMITED_BPS, digits
from streamplace.objectives.explanation import Picture

if TYPE_CHECKING:
    from streamsim import Instance
    from streamsim.steady import Bottleneck, Loads

    from streamplace.model.source_levels import SourceLevel


RESOURCES = {
    "device": "the CPU of {}",
    "core": "one core of {}",
    "link": "link {}",
    "egress": "the outgoing network card of {}",
    "ingress": "the incoming network card of {}",
}
"""Resources in words."""


@dataclass(frozen=True, slots=True)
class Carried:
    """An operator or stream on a resource, and its share of the resource at full rate."""

    name: str
    load: float


class Carriers(Sequence[Carried]):
    """Users of a resource, heaviest first; they are columns, named only on access."""

    def __init__(self, label: Callable[[int], str], rows: Ints, loads: Floats) -> None:
        order = np.argsort(-loads, kind="stable")
        # Rows of the users, and the share of the resource that each needs at the full rate.
        self.label, self.heaviest, self.loads = label, rows[order], loads[order]

    def __repr__(self) -> str:
        return f"<Carriers: {some(self, lambda user: f'{user.name} {percent(user.load)}', ', ')}>"

    def __len__(self) -> int:
        return len(self.loads)

    @overload
    def __getitem__(self, at: int) -> Carried: ...

    @overload
    def __getitem__(self, at: slice) -> "Carriers": ...

    def __getitem__(self, at: int | slice) -> "Carried | Carriers":
        if isinstance(at, slice):
            return Carriers(self.label, self.heaviest[at], self.loads[at])
        return Carried(self.label(int(self.heaviest[at])), float(self.loads[at]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Carriers) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(self.loads.tobytes())

    @property
    def rows(self) -> list[int]:
        """Rows of all users, ascending."""
        return sorted(self.heaviest.tolist())

    def names(self) -> list[str]:
        """Names of all users."""
        return [self.label(row) for row in self.heaviest.tolist()]


@dataclass(frozen=True, slots=True)
class DeviceLoad:
    """A device at full rate: loads of its CPU, of its busiest core and of its network card.

    A subtask at its operator's ``max_rate`` counts as one that fills its core.
    """

    name: str
    load: float
    busiest_core: float
    egress: float
    ingress: float
    operators: Carriers
    constant: float = 0.0  # load of its CPU that does not depend on the rate, a part of ``load``
    overhead: float = 0.0  # load of its CPU by sending to and receiving from other devices


@dataclass(frozen=True, slots=True)
class LinkLoad:
    """A link at full rate, with its streams."""

    source: str
    target: str
    load: float
    bytes_per_s: float
    bandwidth_bps: float | None  # None for a link without a limit
    streams: Carriers


@dataclass(frozen=True, slots=True)
class CardLoad:
    """One direction of a network card at full rate, with its streams."""

    device: str
    kind: str  # "egress" for sent data, "ingress" for received data
    load: float
    bytes_per_s: float
    bandwidth_bps: float
    streams: Carriers


@dataclass(frozen=True, slots=True)
class FullestResource:
    """The bottleneck."""

    kind: str  # "device", "core", "link", "egress" or "ingress"
    name: str  # ``d1`` or ``d1→d3``
    load: float  # load at full rate, including load that does not depend on the rate
    # Users with their shares of this resource. For a core, only the operators that fill it with a
    # single subtask.
    carries: Carriers
    # Load of a CPU or core that does not depend on the rate, a part of ``load``. Where it differs
    # between CPUs, the one that fills first need not have the largest load.
    constant: float = 0.0

    @property
    def loaded(self) -> str:
        """Load in words; beside a constant part, also the share of the rest that the rate needs."""
        if not self.constant:
            return percent(self.load)
        rest = ""
        if self.constant < 1 < self.load:
            needed = percent((self.load - self.constant) / (1 - self.constant))
            rest = f", {needed} of the rest"
        return f"{percent(self.load)} ({percent(self.constant)} at any rate{rest})"

    @property
    def label(self) -> str:
        """Name for a sentence: "the CPU of d2", "link d1→d3"."""
        return RESOURCES[self.kind].format(self.name)

    def __repr__(self) -> str:
        return shown(f"<{type(self).__name__}: {self.label} at {percent(self.load)}>", MAX_WIDTH)


@dataclass(frozen=True, slots=True)
class SourceLimit:
    """Sources that are not carried whole, and the resource that is full at their share."""

    sources: tuple[str, ...]
    share: float  # of their rates at which they can run, all sources at once
    resource: FullestResource
    stuck: tuple[str, ...]  # operators that limit these sources under every placement

    @property
    def names(self) -> str:
        """First few sources in words."""
        return some(self.sources, separator=", ", most=2)


@dataclass(frozen=True, slots=True, repr=False)
class FullestSubtask(FullestResource):
    """The bottleneck if it is the largest rate of a subtask, its operator's ``max_rate``.

    The kind is "core", as a subtask has one core at most, and the load is a share of that rate.
    """

    max_rate: float = 0.0  # tuples/s
    emits: bool = False  # whether the first of the operators is a source

    @property
    def label(self) -> str:
        """Operator and rate for a sentence: "a subtask of ask (reads at most 300 tuples/s)"."""
        limit = f"{'emits' if self.emits else 'reads'} at most {digits(self.max_rate, 6)} tuples/s"
        return f"a subtask of {self.carries[0].name} ({limit})"


def device_loads(problem: Problem, placement: Placement, loads: "Loads") -> tuple[DeviceLoad, ...]:
    """Loads of all devices, in order of the cluster."""
    instance, label, devices = problem.instance, problem.graph.operators.name.__getitem__, []
    for d, name in enumerate(placement.devices):
        rows = np.flatnonzero(placement.index == d).astype(np.int32)
        shares = instance.full_load[rows, instance.device_type[d]]
        devices.append(
            DeviceLoad(
                name,
                float(loads.devices[d]),
                float(loads.cores[d]),
                float(loads.egress[d]),
                float(loads.ingress[d]),
                Carriers(label, rows, shares),
                float(loads.constants[d]),
                _rest(float(loads.devices[d]), float(shares.sum())),
            )
        )
    return tuple(devices)


def _rest(whole: float, parts: float) -> float:
    """Load without its parts; 0 if the difference is rounding."""
    return whole - parts if whole - parts > ROUNDING * whole else 0.0


def link_loads(problem: Problem, place: Ints, loads: Floats) -> tuple[LinkLoad, ...]:
    """Loads of the links in use, fullest first; ``loads`` are those of all links [D, D]."""
    from streamsim.equation import link_loads as shares_of

    instance, cluster = problem.instance, problem.cluster
    a, b = place[instance.source], place[instance.target]
    remote = np.flatnonzero(a != b)
    wire = instance.seconds_per_byte[a[remote], b[remote]]
    traffic = instance.traffic[remote]
    shares = shares_of(traffic, instance.tuples[remote], wire, instance.gap)
    carrying = []
    for link, rows in _grouped(a[remote].astype(np.int64) * problem.n_devices + b[remote]):
        u, v = divmod(link, problem.n_devices)
        streams = instance.stream_index[remote[rows]]
        speed = float(cluster.bandwidth_bps[u, v])
        carrying.append(
            LinkLoad(
                cluster.devices.name[u],
                cluster.devices.name[v],
                float(loads[u, v]),
                float(traffic[rows].sum()),
                None if speed >= UNLIMITED_BPS else speed,
                Carriers(problem.graph.streams.label, streams, shares[rows]),
            )
        )
    return tuple(sorted(carrying, key=lambda link: -link.load))


def card_loads(problem: Problem, place: Ints, loads: "Loads") -> tuple[CardLoad, ...]:
    """Loads of the network cards in use that have a limit, fullest first."""
    instance, devices = problem.instance, problem.cluster.devices
    a, b = place[instance.source], place[instance.target]
    sides = (
        ("egress", a, instance.egress, devices.egress, loads.egress),
        ("ingress", b, instance.ingress, devices.ingress, loads.ingress),
    )
    cards = []
    for kind, end, seconds_per_byte, bandwidth_bps, load in sides:
        through = np.flatnonzero((a != b) & (seconds_per_byte[end] > 0))
        for d, rows in _grouped(end[through]):
            traffic = instance.traffic[through[rows]]
            streams = instance.stream_index[through[rows]]
            cards.append(
                CardLoad(
                    devices.name[d],
                    kind,
                    float(load[d]),
                    float(traffic.sum()),
                    float(bandwidth_bps[d]),
                    Carriers(problem.graph.streams.label, streams, traffic * seconds_per_byte[d]),
                )
            )
    return tuple(sorted(cards, key=lambda card: -card.load))


def _grouped(keys: Ints | Longs) -> Iterator[tuple[int, Longs]]:
    """Distinct keys, each with its rows."""
    by_key = np.argsort(keys, kind="stable")
    used, first = np.unique(keys[by_key], return_index=True)
    yield from zip(used.tolist(), np.split(by_key, first[1:]), strict=False)


def fullest_resource(
    problem: Problem,
    place: Ints,
    top: "Bottleneck",
    devices: tuple[DeviceLoad, ...],
    links: tuple[LinkLoad, ...],
    cards: tuple[CardLoad, ...],
) -> FullestResource:
    """Name the bottleneck, and list its users."""
    device = devices[top.device]
    if top.kind == "link":
        names = problem.cluster.devices.name
        ends = names[top.device], names[top.peer]
        link = next(link for link in links if (link.source, link.target) == ends)
        return FullestResource("link", f"{link.source}→{link.target}", top.load, link.streams)
    if top.kind == "device":
        kind, constant = "device", device.constant
        return FullestResource(kind, device.name, top.use, device.operators, constant)
    if top.kind == "core":
        slow = _fullest_subtask(problem, place, top, device.name)
        return slow or _full_core(problem, place, top, device.name)
    card = next(card for card in cards if (card.kind, card.device) == (top.kind, device.name))
    return FullestResource(top.kind, device.name, top.load, card.streams)


def source_limits(
    problem: Problem,
    place: Ints,
    loads: "Loads",
    name: Callable[["Bottleneck"], FullestResource],
) -> tuple[SourceLimit, ...]:
    """Return the levels of sources that are not carried whole, with the resource that limits each.

    ``name`` describes a resource.
    """
    names = problem.graph.operators.name
    limits = list[SourceLimit]()
    for level, top in limited_levels(problem, place, loads):
        sources, stuck = (tuple(names[v] for v in rows) for rows in (level.sources, level.stuck))
        limits.append(SourceLimit(sources, level.share, name(top), stuck))
    return tuple(limits)


def limited_levels(
    problem: Problem, place: Ints, loads: "Loads"
) -> Iterator[tuple["SourceLevel", "Bottleneck"]]:
    """Yield the levels of sources that are not carried whole, with the resource full at each."""
    from streamsim import bottleneck

    from streamplace.model.source_levels import slowdowns, source_levels

    instance, top = problem.instance, bottleneck(loads)
    free, held = np.ones(len(instance.sources), np.bool_), np.zeros(len(instance.sources))
    for level in source_levels(problem, place):
        if level.share >= 1:
            break
        if not free.all():
            row = int(slowdowns(instance, place, held, free).argmax())
            top = _resource(instance, place, loads, row)
        yield level, top
        now = np.isin(instance.sources, level.sources)
        held[now], free = level.share, free & ~now


def _resource(instance: "Instance", place: Ints, loads: "Loads", row: int) -> "Bottleneck":
    """Resource by its column in `loads_of_parts`."""
    from streamsim.steady import Bottleneck

    d = instance.n_devices
    if row < d:
        return Bottleneck("device", row, -1, float(loads.pressures[row]), float(loads.devices[row]))
    kinds = (("link", loads.links.ravel()), ("egress", loads.egress), ("ingress", loads.ingress))
    row -= d
    for kind, column in kinds:
        if row < len(column):
            a, b = divmod(row, d) if kind == "link" else (row, -1)
            return Bottleneck(kind, a, b, float(column[row]), float(column[row]))
        row -= len(column)
    at = row, instance.device_type[place[row]]
    pressure, use = float(instance.core_pressure[at]), float(instance.full_core_load[at])
    return Bottleneck("core", int(place[row]), -1, pressure, use)


def _equal(loads: Floats, load: float) -> Bools:
    """Whether each of the loads, perhaps infinite, equals one load up to rounding."""
    return np.asarray((loads >= (1 - ROUNDING) * load) & ((1 - ROUNDING) * loads <= load))


def _full_core(problem: Problem, place: Ints, top: "Bottleneck", device: str) -> FullestResource:
    """Bottleneck with the operators whose single subtask fills the core."""
    instance = problem.instance
    kind = instance.device_type[top.device]
    fills = (place == top.device) & _equal(instance.core_pressure[:, kind], top.load)
    rows = np.flatnonzero(fills).astype(np.int32)
    used = instance.full_core_load[rows, kind]
    carries = Carriers(problem.graph.operators.name.__getitem__, rows, used)
    if not len(instance.constant):
        return FullestResource("core", device, top.use, carries)
    constant = instance.core_constant[rows, kind]
    return FullestResource("core", device, float(used.max()), carries, float(constant.max()))


def _fullest_subtask(
    problem: Problem, place: Ints, top: "Bottleneck", device: str
) -> FullestSubtask | None:
    """Bottleneck with the operators at their ``max_rate``; None if CPU limits instead."""
    rows = at_max_rate(problem, place, top)
    if not len(rows):
        return None
    operators, shares = problem.graph.operators, shares_of_max_rate(problem.instance)
    carries = Carriers(operators.name.__getitem__, rows, shares[rows])
    first = operators.index(carries[0].name)
    rate, emits = float(operators.max_rate[first]), bool(operators.rate[first] > 0)
    return FullestSubtask("core", device, top.load, carries, max_rate=rate, emits=emits)


def at_max_rate(problem: Problem, place: Ints, top: "Bottleneck") -> Ints:
    """Operators on the device of a full core that are limited by ``max_rate``, not by CPU."""
    shares = shares_of_max_rate(problem.instance)
    full = (place == top.device) & (shares > 0) & _equal(shares, top.load)
    return np.flatnonzero(full).astype(np.int32)


def shares_of_max_rate(instance: "Instance") -> Floats:
    """Rate of the busiest subtask of each operator, as a share of its ``max_rate``, [N]."""
    if not len(instance.max_rate):
        return np.zeros(instance.n_operators)
    return np.asarray(instance.input_rate / (instance.parallelism * instance.max_rate))


def picture(problem: Problem, placement: Placement) -> Picture:
    """Mark the users of the bottleneck if it is overloaded."""
    from streamsim import bottleneck, resource_loads, throughput_of

    place = placement.index
    loads = resource_loads(problem.instance, place)
    top = bottleneck(loads)
    devices = device_loads(problem, placement, loads)
    links, cards = link_loads(problem, place, loads.links), card_loads(problem, place, loads)
    fullest = fullest_resource(problem, place, top, devices, links, cards)
    limits = top.load > 1 + ROUNDING
    operators = np.zeros(problem.n_operators, np.bool_)
    streams = np.zeros(problem.graph.n_streams, np.bool_)
    users = operators if fullest.kind in ("device", "core") else streams
    users[fullest.carries.rows] = limits
    return Picture(
        title=percent(throughput_of(problem.instance, place)),
        subtitle=f"{'limit' if limits else 'fullest'}: {fullest.label} at {percent(fullest.load)}",
        operators=operators,
        streams=streams,
        devices=tuple(f"CPU {100 * load:.0f} %" for load in loads.devices),
    )
