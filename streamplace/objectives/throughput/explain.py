"""Explanation of a placement's throughput: loads, the bottleneck, and advice."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from streamplace.model.arrays import Ints
from streamplace.model.display import WIDEST, Displayed, data_frame
from streamplace.model.messages import shown
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.report import MOST_ROWS, Bar, Report, Sheet, percent, some
from streamplace.model.units import digits, format_bandwidth
from streamplace.objectives.throughput.loads import (
    CardLoad,
    Carried,
    Carriers,
    DeviceLoad,
    FullestResource,
    FullestSubtask,
    LinkLoad,
    card_loads,
    device_loads,
    fullest_resource,
    link_loads,
)
from streamplace.objectives.throughput.parallelism import ParallelismAdvice, more_subtasks

if TYPE_CHECKING:
    from pandas import DataFrame
    from streamsim.steady import Bottleneck

MOST_CARRIED, MOST_SHARES = 4, 6
WAYS = {"egress": "out", "ingress": "in"}
"""Words for the directions of a network card."""
MOST_CANDIDATES = 64


@dataclass(frozen=True, slots=True)
class RateAdvice:
    """Operators to move to a device, and the resulting relative throughput."""

    operators: tuple[str, ...]
    device: str
    relative_throughput: float


def best_move(problem: Problem, placement: Ints, top: "Bottleneck") -> RateAdvice | None:
    """Return the best legal move of an operator at the bottleneck, or of it and a neighbour.

    Operators that must share a device with them move, too. Of the moves that lower the load of the
    fullest resource most, the best has the highest throughput: with several sources, these may be
    different ones. None if none of them helps.
    """
    from streamsim import throughput
    from streamsim.incremental import Incremental

    state = Incremental(problem.instance, placement)
    least = state.peak * (1 - 1e-9)
    lower: list[tuple[float, tuple[int, ...], int]] = []
    for group in _together(problem, _candidates(problem, placement, top)):
        for d in range(problem.n_devices):
            if problem.rules is not None and not problem.legal(_moved(placement, group, d))[0]:
                continue
            for v in group:
                state.move(v, d)
            if state.peak < least:
                lower.append((state.peak, group, d))
            for v in group:
                state.move(v, int(placement[v]))
    lower.sort(key=itemgetter(0))
    tried = [_moved(placement, group, d) for _, group, d in lower[:MOST_CANDIDATES]]
    reached = throughput(problem.instance, np.array([placement, *tried]))
    best = int(np.argmax(reached >= reached.max() * (1 - 1e-9)))  # the first but for rounding
    if best == 0:
        return None
    _, group, d = lower[best - 1]
    return RateAdvice(
        tuple(problem.graph.operators.name[v] for v in group),
        problem.cluster.devices.name[d],
        float(reached[best]),
    )


def _moved(placement: Ints, group: tuple[int, ...], d: int) -> Ints:
    """Copy of a placement, with a group of operators on device d."""
    moved = placement.copy()
    moved[list(group)] = d
    return moved


def _together(problem: Problem, groups: list[tuple[int, ...]]) -> Iterable[tuple[int, ...]]:
    """Extend groups by the operators that must share a device with theirs, without duplicates."""
    if problem.rules is None:
        return groups
    unit = problem.rules.unit
    whole = (np.flatnonzero(np.isin(unit, unit[list(group)])) for group in groups)
    return dict.fromkeys(tuple(rows.tolist()) for rows in whole)


def _candidates(problem: Problem, placement: Ints, top: "Bottleneck") -> list[tuple[int, ...]]:
    """Operators at the bottleneck, and pairs of them with a neighbour."""
    instance = problem.instance
    a, b = placement[instance.source], placement[instance.target]
    if top.kind in ("device", "core"):
        rows = np.flatnonzero(placement == top.device)
        heavy = rows[np.argsort(-instance.full_load[rows, instance.device_type[top.device]])]
    else:
        sender = a == top.device if top.kind != "ingress" else b == top.device
        on_it = sender & (a != b) & ((b == top.peer) if top.kind == "link" else True)
        streams = np.flatnonzero(on_it)
        streams = streams[np.argsort(-instance.traffic[streams])][:MOST_CANDIDATES]
        heavy = np.fromiter(
            dict.fromkeys(
                chain.from_iterable((instance.source[e], instance.target[e]) for e in streams)
            ),
            np.int32,
        )
    singles = [(int(v),) for v in heavy[:MOST_CANDIDATES]]
    touching = np.isin(instance.source, heavy) | np.isin(instance.target, heavy)
    pairs = np.flatnonzero(touching)[:MOST_CANDIDATES]
    return singles + [(int(instance.source[e]), int(instance.target[e])) for e in pairs]


@dataclass(frozen=True)
class Sustained(Displayed):
    """Rate that a placement sustains in the steady state, and its bottleneck.

    Attributes
    ----------
    relative_throughput
        Sustained share of the sources' total rate.
    throughput, offered
        Tuples/s that the sources emit under back-pressure, and that they would emit without it.
    sources
        Sustained share of each source's rate (max–min fair where sources compete).
    links
        Links in use, fullest first.
    cards
        Network cards in use that have a limit, fullest first.
    find_move
        Function that searches for the best move, which takes longer than all else.
    find_parallelism
        Function that searches for a better parallelism, if one operator fills a core.
    """

    relative_throughput: float
    throughput: float
    offered: float
    sources: dict[str, float]
    bottleneck: FullestResource
    devices: tuple[DeviceLoad, ...]
    links: tuple[LinkLoad, ...]
    cards: tuple[CardLoad, ...]
    find_move: Callable[[], RateAdvice | None] = field(repr=False, compare=False)
    find_parallelism: Callable[[], ParallelismAdvice | None] = field(repr=False, compare=False)

    @cached_property
    def move(self) -> RateAdvice | None:
        """Move that helps most; None if none helps or nothing limits."""
        return self.find_move()

    @cached_property
    def parallelism(self) -> ParallelismAdvice | None:
        """Parallelism that helps if one operator fills a core; None if none does."""
        return self.find_parallelism()

    @property
    def value(self) -> float:
        """The relative throughput."""
        return self.relative_throughput

    @property
    def words(self) -> str:
        """Relative and absolute throughput."""
        return f"{percent(self.value)} of the sources' rate, {digits(self.throughput, 6)} tuples/s"

    @property
    def verdict(self) -> str:
        """Verdict in one sentence: whether the placement keeps up, and the bottleneck."""
        limit = self.bottleneck
        if limit.load <= 1:
            full = percent(limit.load)
            return f"keeps up with the sources; the fullest resource is {limit.label} at {full}"
        return f"{percent(self.value)} of the sources' rate; {limit.label} is the limit"

    def __repr__(self) -> str:
        return shown(f"<{type(self).__name__}: {self.verdict}>", WIDEST)

    def headline(self) -> dict[str, Any]:
        """Throughput and bottleneck."""
        limit = self.bottleneck
        return {
            "relative_throughput": self.relative_throughput,
            "throughput": self.throughput,
            "bottleneck": {"kind": limit.kind, "name": limit.name, "load": limit.load},
        }

    def document(self) -> dict[str, Any]:
        """All facts."""
        columns = (f.name for f in fields(self) if not f.name.startswith("find_"))
        loads = {name: _plain(getattr(self, name)) for name in columns}
        advice = {"move": _plain(self.move), "parallelism": _plain(self.parallelism)}
        return {**loads, **advice, "verdict": self.verdict}

    def to_pandas(self) -> "DataFrame":
        """Table of the devices with their loads, one row each."""
        columns = ("name", "load", "constant", "busiest_core", "egress", "ingress")
        loads = {name: [getattr(device, name) for device in self.devices] for name in columns}
        return data_frame({**loads, "operators": [len(d.operators) for d in self.devices]})

    def brief(self) -> Report:
        """Devices with their load and operators, and the bottleneck."""
        rows = tuple(
            (
                device.name,
                percent(device.load),
                Bar(device.load),
                some(device.operators.rows, device.operators.label) or "—",
            )
            for device in self.devices
        )
        limit = self.bottleneck
        devices = Sheet(("device", "CPU", "", "operators"), rows)
        return Report((devices, f"Bottleneck: {limit.label} at {percent(limit.load)}"))

    def report(self) -> Report:
        """Sources, devices, links, cards, the bottleneck with its users, and advice."""
        parts: list[str | Sheet] = []
        if len(self.sources) > 1:
            shares = ", ".join(f"{name} {percent(x)}" for name, x in self.sources.items())
            parts.append(f"sources: {shares}")
        parts.append(_device_sheet(self.devices))
        if self.links:
            parts.append(_link_sheet(self.links))
        if self.cards:
            parts.append(_card_sheet(self.cards))
        parts.append(_users(self.bottleneck))
        return Report((*parts, *self._advice()), self._title())

    def _advice(self) -> Iterator[str]:
        """Changes that raise the throughput."""
        if self.move is not None:
            who = " and ".join(self.move.operators)
            then = percent(self.move.relative_throughput)
            yield f"What to move: {who} to {self.move.device} would give {then}"
        elif self.value < 1:
            yield "No move of one operator or two neighbours helps; try: streamplace place"
        if self.parallelism is not None:
            yield f"{self.parallelism.words} instead of {percent(self.value)}"

    def _title(self) -> str:
        """Sustained rate, and whether it is all of the sources' rate."""
        offered = f"{digits(self.offered, 6)} tuples/s"
        if self.bottleneck.load <= 1:
            return f"sustains all {offered} of the sources"
        carried = digits(self.throughput, 6)
        return f"sustains {carried} of the sources' {offered} ({percent(self.value)})"


def explain(problem: Problem, placement: Placement) -> Sustained:
    """Loads, bottleneck and advice for a legal placement."""
    from streamsim import bottleneck, resource_loads, source_rates, throughput

    instance, place = problem.instance, placement.index
    loads = resource_loads(instance, place)
    top = bottleneck(loads)
    value = float(throughput(instance, place[None, :])[0])
    devices = device_loads(problem, placement, loads)
    links = link_loads(problem, place, loads.links)
    cards = card_loads(problem, place, loads)
    fullest = fullest_resource(problem, place, top, devices, links, cards)
    rates = source_rates(instance, place)
    names = problem.graph.operators.name
    return Sustained(
        relative_throughput=value,
        throughput=value * problem.graph.source_rate,
        offered=problem.graph.source_rate,
        sources={names[v]: float(rates[v]) for v in problem.graph.sources},
        bottleneck=fullest,
        devices=devices,
        links=links,
        cards=cards,
        find_move=lambda: best_move(problem, place, top) if value < 1 else None,
        find_parallelism=lambda: more_subtasks(problem, place, top) if value < 1 else None,
    )


def _plain(value: Any) -> Any:
    """Dataclasses as dictionaries; `Carriers` directly from their columns, as they may be large."""
    if isinstance(value, Carriers):
        pairs = zip(value.names(), value.loads.tolist(), strict=True)
        return [{"name": name, "load": load} for name, load in pairs]
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return value


def _name(carried: Carried) -> str:
    return carried.name


def _share(carried: Carried) -> str:
    return f"{carried.name} {percent(carried.load)}"


def _device_sheet(devices: tuple[DeviceLoad, ...]) -> Sheet:
    busy = sorted((d for d in devices if d.operators), key=lambda d: -d.load)
    rows: list[tuple[str | Bar, ...]] = [
        (
            device.name,
            percent(device.load),
            Bar(device.load),
            some(device.operators, _share, ", ", MOST_SHARES),
        )
        for device in busy[:MOST_ROWS]
    ]
    if len(busy) > MOST_ROWS:
        rows.append(("…", "", "", f"and {len(busy) - MOST_ROWS} more devices"))
    idle = [device.name for device in devices if not device.operators]
    if idle:
        rows.append(("", "", "", f"idle: {some(idle, separator=', ')}"))
    return Sheet(("device", "CPU", "", "operators (share of the device)"), tuple(rows))


def _users(limit: FullestResource) -> str:
    """Bottleneck and its users; for a core, the operators that fill it alone."""
    always = f" ({percent(limit.constant)} at any rate)" if limit.constant else ""
    what = f"Bottleneck: {limit.label} at {percent(limit.load)}{always}"
    names = [carried.name for carried in limit.carries[:MOST_CARRIED]]
    if isinstance(limit, FullestSubtask):
        others = f"; as full: {', '.join(names[1:])}" if len(names) > 1 else ""
        return f"{what}{others}"
    if limit.kind == "core":
        who = f"{names[0]} fills alone" if len(names) == 1 else f"each of {', '.join(names)} fills"
        return f"{what}, which {who}"
    carried = ", ".join(f"{c.name} ({percent(c.load)})" for c in limit.carries[:MOST_CARRIED])
    return f"{what}, carrying {carried}"


def _link_sheet(links: tuple[LinkLoad, ...]) -> Sheet:
    """Links by load; links without a limit have no load."""
    rows: list[tuple[str | Bar, ...]] = [
        (
            f"{link.source}→{link.target}",
            "—" if link.bandwidth_bps is None else percent(link.load),
            "" if link.bandwidth_bps is None else Bar(link.load),
            _carried(link),
        )
        for link in links[:MOST_ROWS]
    ]
    if len(links) > MOST_ROWS:
        rows.append(("…", "", "", f"and {len(links) - MOST_ROWS} more links"))
    return Sheet(("link", "load", "", "carrying"), tuple(rows))


def _card_sheet(cards: tuple[CardLoad, ...]) -> Sheet:
    rows: list[tuple[str | Bar, ...]] = [
        (
            f"{card.device}, {WAYS[card.kind]}",
            percent(card.load),
            Bar(card.load),
            _carried(card),
        )
        for card in cards[:MOST_ROWS]
    ]
    if len(cards) > MOST_ROWS:
        rows.append(("…", "", "", f"and {len(cards) - MOST_ROWS} more network cards"))
    return Sheet(("network card", "load", "", "carrying"), tuple(rows))


def _carried(part: LinkLoad | CardLoad) -> str:
    """Bandwidth in use on a link or card, its limit, and the heaviest streams."""
    most = part.bandwidth_bps
    limit = ", no limit" if most is None else f" of {format_bandwidth(most)}"
    sent = format_bandwidth(8 * part.bytes_per_s)
    return f"{sent}{limit}: {some(part.streams, _name, ', ', MOST_CARRIED)}"
