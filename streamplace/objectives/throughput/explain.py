"""Explanation of a placement's throughput: loads, the bottleneck, and advice.

Advice on parallelism is for operators of which a single subtask fills a core. A subtask uses at
most one core, however many its device has. More subtasks use more cores of the same device. Where a
subtask is limited by its operator's ``max_rate``, more subtasks help on one core, too.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property, partial
from itertools import chain
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from streamplace.display.assumptions import assumed, assumptions
from streamplace.display.report import (
    MAX_ROWS,
    Bar,
    Brief,
    Cell,
    Detail,
    Names,
    Part,
    Report,
    Sheet,
    brief_and_detail,
    percent,
    some,
)
from streamplace.display.sheets import with_counts, with_rest
from streamplace.model.arrays import ROUNDING, Ints
from streamplace.model.message_text import counted
from streamplace.model.mixins import data_frame, verdict_of
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.subtasks import operators_by_subtask, with_parallelism
from streamplace.model.units import digits, format_bandwidth
from streamplace.objectives.explanation import (
    MAX_CANDIDATES,
    MAX_LISTED,
    MAX_NAMED,
    AdvisingExplanation,
    MoveAdvice,
    together,
)
from streamplace.objectives.throughput.loads import (
    CardLoad,
    Carried,
    Carriers,
    DeviceLoad,
    FullestResource,
    FullestSubtask,
    LinkLoad,
    SourceLimit,
    card_loads,
    device_loads,
    fullest_resource,
    link_loads,
    source_limits,
)
from streamplace.objectives.throughput.remedies import PlacementRemedy, remedies

if TYPE_CHECKING:
    from pandas import DataFrame

DIRECTIONS = {"egress": "out", "ingress": "in"}
"""Words for the directions of a network card."""
MAX_SUBTASKS = 64
"""Subtasks of an operator that are tried as advice."""


def best_move(problem: Problem, placement: Ints, limit: FullestResource) -> MoveAdvice | None:
    """Return the best legal move of an operator at the bottleneck, or of it and a neighbour.

    Operators that must share a device with them move, too. Of the moves that lower the load of the
    fullest resource most, the move with the highest throughput is returned: with several sources,
    it need not be the first. None if none of them helps.
    """
    from streamsim import throughput
    from streamsim.incremental import Incremental

    state = Incremental(problem.instance, placement)
    least = state.peak * (1 - ROUNDING)
    lower: list[tuple[float, tuple[int, ...], int]] = []
    for group in together(problem, _candidates(problem, limit)):
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
    tried = [_moved(placement, group, d) for _, group, d in lower[:MAX_CANDIDATES]]
    reached = throughput(problem.instance, np.array([placement, *tried]))
    best = int(np.argmax(reached >= reached.max() * (1 - ROUNDING)))  # the first but for rounding
    if best == 0:
        return None
    _, group, d = lower[best - 1]
    return MoveAdvice(
        tuple(problem.graph.operators.name[v] for v in group),
        problem.cluster.devices.name[d],
        float(reached[best]),
    )


def _moved(placement: Ints, group: tuple[int, ...], d: int) -> Ints:
    """Copy of a placement, with a group of operators on device d."""
    moved = placement.copy()
    moved[list(group)] = d
    return moved


def _candidates(problem: Problem, limit: FullestResource) -> list[tuple[int, ...]]:
    """Operators at the bottleneck, and pairs of them with a neighbour."""
    streams, heavy = problem.graph.streams, limit.carries.heaviest[:MAX_CANDIDATES]
    if limit.kind not in ("device", "core"):
        ends = zip(streams.source[heavy].tolist(), streams.target[heavy].tolist(), strict=True)
        heavy = np.array(list(dict.fromkeys(chain.from_iterable(ends)))[:MAX_CANDIDATES])
    touching = np.isin(streams.source, heavy) | np.isin(streams.target, heavy)
    pairs = np.flatnonzero(touching)[:MAX_CANDIDATES]
    both = zip(streams.source[pairs].tolist(), streams.target[pairs].tolist(), strict=True)
    return [*((v,) for v in heavy.tolist()), *both]


@dataclass(frozen=True, slots=True)
class ParallelismAdvice:
    """Operators to split into more subtasks, and the resulting relative throughput."""

    operators: tuple[str, ...]  # that fill a core, or need the parallelism of one that does
    parallelism: int  # number of subtasks of each of them
    relative_throughput: float

    @property
    def words(self) -> str:
        """Advice in words, with the resulting throughput."""
        who, then = " and ".join(self.operators), percent(self.relative_throughput)
        return f"Parallelism: {self.parallelism} for {who} would give {then}"


def more_subtasks(
    problem: Problem, place: Ints, limit: FullestResource
) -> ParallelismAdvice | None:
    """Return the parallelism that helps if a core is the bottleneck; None if none helps.

    The subtasks stay on the devices of their operators, within ``max_parallelism``.
    """
    from streamsim import throughput_of

    if limit.kind != "core":
        return None
    rows = _to_split(problem, limit)
    names = tuple(problem.graph.operators.name[v] for v in rows.tolist())
    operators = operators_by_subtask(problem.graph.operators.name)
    if any(operators[name] != name for name in names):
        return None  # subtasks of an expanded graph, whose original operator is unknown
    numbers = _numbers(problem, place, rows, limit)
    if not numbers:
        return None
    split = (_split(problem, rows, number).instance for number in numbers)
    reached = np.array([throughput_of(instance, place) for instance in split])
    best = int(np.argmax(reached >= reached.max() * (1 - ROUNDING)))  # the fewest but for rounding
    if reached[best] <= throughput_of(problem.instance, place) * (1 + ROUNDING):
        return None
    return ParallelismAdvice(names, numbers[best], float(reached[best]))


def _to_split(problem: Problem, limit: FullestResource) -> Ints:
    """Operators that fill the core, and operators that streams force to the same parallelism."""
    streams, chosen = problem.graph.streams, np.zeros(problem.n_operators, np.bool_)
    chosen[limit.carries.heaviest] = True
    straight = streams.straight()
    source, target = streams.source[straight], streams.target[straight]
    size = 0
    while size < chosen.sum():
        size = int(chosen.sum())
        chosen[source[chosen[target]]] = True
        chosen[target[chosen[source]]] = True
    return np.flatnonzero(chosen).astype(np.int32)


def _numbers(problem: Problem, place: Ints, rows: Ints, limit: FullestResource) -> range:
    """Numbers of subtasks to try: up to the cores, or more if ``max_rate`` is the limit."""
    operators, cores = problem.graph.operators, problem.instance.cores[place[rows]]
    n_useful = MAX_SUBTASKS if isinstance(limit, FullestSubtask) else int(cores.min())
    limits = operators.max_parallelism[rows]
    highest = min([n_useful, MAX_SUBTASKS, *limits[limits > 0].tolist()])
    return range(int(operators.parallelism[rows].max()) + 1, highest + 1)


def _split(problem: Problem, rows: Ints, number: int) -> Problem:
    """Return the problem with this number of subtasks of some operators."""
    parallelism = problem.graph.operators.parallelism.copy()
    parallelism[rows] = number
    return replace(problem, graph=with_parallelism(problem.graph, parallelism))


@dataclass(frozen=True)
class Sustained(AdvisingExplanation):
    """Rate that a placement carries in the steady state, and its bottleneck."""

    relative_throughput: float  # largest share of their rates at which all sources can run at once
    throughput: float  # tuples/s that the sources emit at their shares
    offered: float  # tuples/s that they would emit without limits
    # Share of each source's rate: the relative throughput or, beside stuck sources, more.
    sources: dict[str, float]
    bottleneck: FullestResource
    devices: tuple[DeviceLoad, ...]
    links: tuple[LinkLoad, ...]  # links in use, fullest first
    cards: tuple[CardLoad, ...]  # network cards in use that have a limit, fullest first
    # Searches for a better parallelism, if one operator fills a core.
    find_parallelism: Callable[[], ParallelismAdvice | None] = field(repr=False, compare=False)
    # Searches for the remedies that gain most, below the full rate.
    find_remedies: Callable[[], tuple[PlacementRemedy, ...]] = field(repr=False, compare=False)
    assumptions: tuple[str, ...] = ()
    # If there are several sources, those not carried whole, with the resource that limits them,
    # level by level.
    limits: tuple[SourceLimit, ...] = ()
    # If several sources are not all carried whole, the share of its rate that each gets when all
    # offer their full rates, as a fair CPU and full queues divide it (`streamsim.overload`).
    overloaded: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def parallelism(self) -> ParallelismAdvice | None:
        """Parallelism that helps if one operator fills a core; None if none does."""
        return self.find_parallelism()

    @cached_property
    def remedies(self) -> tuple[PlacementRemedy, ...]:
        """The best of the devices, links, cards and operators that would help if improved."""
        return self.find_remedies()

    @property
    def value(self) -> float:
        """The relative throughput."""
        return self.relative_throughput

    @property
    def words(self) -> str:
        """Relative and absolute throughput."""
        return f"{self._reached}, {digits(self.throughput, 6)} tuples/s"

    @property
    def _reached(self) -> str:
        whose = "every source's rate" if self.limits else "the sources' rate"
        return f"{percent(self.value)} of {whose}"

    @property
    def verdict(self) -> str:
        """Verdict in one sentence: which rate the placement carries, and the bottleneck."""
        limit = self.bottleneck
        if limit.load <= 1:
            full = percent(limit.load)
            return f"carries the full rate; the fullest resource is {limit.label} at {full}"
        if len(self.limits) < 2:
            return f"{self._reached}; {limit.label} is the limit"
        limits = some(self.limits, lambda part: f"{part.resource.label} for {part.names}", ", ", 2)
        return f"{self._reached}; the limits are {limits}"

    __repr__ = verdict_of

    def headline(self) -> dict[str, Any]:
        """Throughput and bottleneck."""
        limit = self.bottleneck
        return {
            "relative_throughput": self.relative_throughput,
            "throughput": self.throughput,
            "bottleneck": {"kind": limit.kind, "name": limit.name, "load": limit.load},
            **(self._source_facts() if self.limits else {}),
        }

    def _source_facts(self) -> dict[str, Any]:
        limits = [
            {"sources": part.sources, "share": part.share, "resource": part.resource.name}
            | {"kind": part.resource.kind, "stuck": part.stuck}
            for part in self.limits
        ]
        return {"sources": self.sources, "limits": limits, "overloaded": dict(self.overloaded)}

    def document(self) -> dict[str, Any]:
        """All facts."""
        hidden = "find_" if self.overloaded else ("find_", "overloaded")
        columns = (f.name for f in fields(self) if not f.name.startswith(hidden))
        loads = {name: _plain(getattr(self, name)) for name in columns}
        move = self.move_facts("relative_throughput")
        advice = {"move": move, "parallelism": _plain(self.parallelism)}
        advice["remedies"] = _plain(self.remedies)
        return {**loads, **advice, "verdict": self.verdict}

    def to_pandas(self) -> "DataFrame":
        """Table of the devices with their loads, one row each."""
        columns = ("name", "load", "constant", "busiest_core", "egress", "ingress")
        loads = {name: [getattr(device, name) for device in self.devices] for name in columns}
        return data_frame({**loads, "operators": [len(d.operators) for d in self.devices]})

    def brief(self) -> Report:
        """Devices with their load and operators, and the bottleneck."""
        devices = brief_and_detail(self._device_sheet)
        limits = self._bottlenecks(lambda limit: "")
        return Report((*devices, *self._further_source_lines, *limits, *self._remedies()))

    def report(self) -> Report:
        """Sources, devices, links, cards, the bottleneck with its users, and advice."""
        parts: list[Part] = [*self._further_source_lines, *brief_and_detail(self._loads_sheet)]
        if self.links or self.cards:
            parts.append(Brief(self._network_sheet()))
        if self.links:
            parts.append(Detail(_sheet_of("link", map(_link_row, self.links))))
        if self.cards:
            parts.append(Detail(_sheet_of("network card", map(_card_row, self.cards))))
        parts += self._bottlenecks(_users)
        return Report((*parts, *self._advice(), *assumed(self.assumptions)), self._title())

    @property
    def source_lines(self) -> tuple[str, ...]:
        """Lines on the shares of several sources that are not all carried whole."""
        lines = []
        for part in self.limits[:MAX_LISTED]:
            names, share = some(part.sources, separator=", ", most=MAX_LISTED), percent(part.share)
            stuck = some(part.stuck, separator=", ", most=MAX_NAMED)
            why = f", as no device that may run {stuck} is faster" if stuck else ""
            lines.append(f"Not carried whole: {names}: {share} of their rates at once{why}")
        slowest = sorted(self.overloaded.items(), key=itemgetter(1))
        if any(percent(share) != percent(self.sources[name]) for name, share in slowest):
            shares = [f"{name} {percent(share)}" for name, share in slowest]
            listed = some(shares, separator=", ", most=MAX_LISTED)
            lines.append(f"If all sources offer their rates, they get: {listed}")
        return tuple(lines)

    @property
    def _further_source_lines(self) -> tuple[str, ...]:
        """Lines on the sources, without the first if all sources have the reported share."""
        alike = len(self.limits) == 1 and not self.limits[0].stuck
        return self.source_lines[1 if alike else 0 :]

    def _bottlenecks(self, users: Callable[[FullestResource], str]) -> Iterator[str]:
        """Sentences on the bottleneck, or on that of each source, with its users."""
        limits = self.limits if len(self.limits) > 1 else ()
        for part in limits[:MAX_LISTED]:
            limit = part.resource
            whose = f"Bottleneck of {part.names} ({percent(part.share)})"
            yield f"{whose}: {limit.label} at {limit.loaded}{users(limit)}"
        if len(limits) > MAX_LISTED:
            yield f"and {counted(len(limits) - MAX_LISTED, 'bottleneck')} of faster sources"
        if not limits:
            limit = self.bottleneck
            yield f"Bottleneck: {limit.label} at {limit.loaded}{users(limit)}"

    @cached_property
    def _operators(self) -> dict[str, str]:
        """Operator of every subtask."""
        return operators_by_subtask(n for device in self.devices for n in device.operators.names())

    def _device_sheet(self, is_brief: bool) -> Sheet:
        """Devices with their operators, in short form by operator instead of subtask."""

        def names(device: DeviceLoad) -> Names:
            users = device.operators
            if not is_brief:
                return Names.of(users.rows, users.label)
            return Names.of(with_counts(map(users.label, users.rows), self._operators), lines=2)

        return _sheet_of_devices(self.devices, "operators", names)

    def _loads_sheet(self, is_brief: bool) -> Sheet:
        """Devices with the shares of their operators, in short form without subtasks."""

        def shares(device: DeviceLoad) -> Names:
            overhead = percent(device.overhead)
            before = f"sending and receiving {overhead}, " if device.overhead else ""
            if not is_brief:
                return Names.of(device.operators, _share, before=before)
            return Names.of(self._by_operator(device.operators), before=before, lines=1)

        return _sheet_of_devices(self.devices, "operators (share of the device)", shares)

    def _by_operator(self, users: Carriers) -> list[str]:
        """Operators with their shares of a device, the largest first."""
        loads: defaultdict[str, list[float]] = defaultdict(list)
        for user in users:
            loads[self._operators[user.name]].append(user.load)
        largest = sorted(loads.items(), key=lambda item: -sum(item[1]))
        return [
            f"{name}{f' × {len(each)}' if len(each) > 1 else ''} {percent(sum(each))}"
            for name, each in largest
        ]

    def _network_sheet(self) -> Sheet:
        """Fullest links and network cards."""
        rows = [(link.load, _link_row(link, self._operators)) for link in self.links]
        rows += [(card.load, _card_row(card, self._operators)) for card in self.cards]
        rows.sort(key=itemgetter(0), reverse=True)
        name = "link or card" if self.cards else "link"
        sheet = Sheet((name, "load", "", "carrying"), tuple(row for _, row in rows))
        return with_rest(sheet, MAX_LISTED)

    def _advice(self) -> Iterator[str]:
        """Changes that raise the throughput."""
        if self.value < 1:
            yield self.move_words(percent)
        if self.parallelism is not None:
            yield f"{self.parallelism.words} instead of {percent(self.value)}"
        yield from self._remedies()

    def _remedies(self) -> Iterator[str]:
        """Sentence on the remedies, if the placement carries less than the full rate."""
        if self.value >= 1:
            return
        better = "; ".join(remedy.words for remedy in self.remedies)
        nothing = "nothing; no single device, link or operator twice as good gains anything"
        yield f"What would help, with this placement: {better or nothing}"

    def _title(self) -> str:
        """Rate that the placement carries, of the sources' rate."""
        offered = f"{digits(self.offered, 6)} tuples/s"
        if self.bottleneck.load <= 1:
            return f"carries all {offered} of the sources"
        carried = digits(self.throughput, 6)
        return f"carries {carried} of the sources' {offered} ({percent(self.value)})"


def explain(problem: Problem, placement: Placement) -> Sustained:
    """Loads, bottleneck and advice for a legal placement."""
    from streamsim import bottleneck, resource_loads, throughput_of
    from streamsim.overload import overloaded_shares

    instance, place = problem.instance, placement.index
    loads = resource_loads(instance, place)
    value = throughput_of(instance, place)
    devices = device_loads(problem, placement, loads)
    links = link_loads(problem, place, loads.links)
    cards = card_loads(problem, place, loads)
    name = partial(fullest_resource, problem, place, devices=devices, links=links, cards=cards)
    fullest = name(bottleneck(loads))
    limits = source_limits(problem, place, loads, name) if len(instance.sources) > 1 else ()
    names, rates = problem.graph.operators.name, problem.graph.operators.rate
    limited = {source: limit.share for limit in limits for source in limit.sources}
    usual = 1.0 if limited else value
    sources = {names[v]: limited.get(names[v], usual) for v in problem.graph.sources}
    carried = overloaded_shares(instance, place).tolist() if limits else []
    overloaded = {names[v]: share for v, share in zip(instance.sources, carried, strict=False)}
    emitted = value * problem.graph.source_rate
    held_back = value < 1
    if len(set(sources.values())) > 1:
        emitted = sum(sources[names[v]] * float(rates[v]) for v in problem.graph.sources)
    return Sustained(
        relative_throughput=value,
        throughput=emitted,
        offered=problem.graph.source_rate,
        sources=sources,
        bottleneck=fullest,
        devices=devices,
        links=links,
        cards=cards,
        find_move=partial(best_move, problem, place, fullest) if held_back else _nothing,
        find_parallelism=partial(more_subtasks, problem, place, fullest) if held_back else _nothing,
        find_remedies=partial(remedies, problem, place, value, devices, links, cards)
        if held_back
        else tuple,
        assumptions=assumptions(problem),
        limits=limits,
        overloaded=overloaded,
    )


def _nothing() -> None:
    return None


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


def _share(carried: Carried) -> str:
    return f"{carried.name} {percent(carried.load)}"


def _sheet_of_devices(
    devices: tuple[DeviceLoad, ...], head: str, names: Callable[[DeviceLoad], Names]
) -> Sheet:
    """Devices in use, the fullest first, with their operators; the others in one row."""
    busy = sorted((d for d in devices if d.operators), key=lambda d: -d.load)
    rows: list[tuple[Cell, ...]] = [
        (device.name, percent(device.load), Bar(device.load), names(device))
        for device in busy[:MAX_ROWS]
    ]
    if len(busy) > MAX_ROWS:
        rows.append(("…", "", "", f"and {len(busy) - MAX_ROWS} more devices"))
    idle = [device.name for device in devices if not device.operators]
    if idle:
        rows.append(("", "", "", Names.of(idle, before="idle: ", lines=1)))
    return Sheet(("device", "CPU", "", head), tuple(rows))


def _users(limit: FullestResource) -> str:
    """Users of a bottleneck; for a core, the operators that fill it by themselves."""
    if isinstance(limit, FullestSubtask):
        others = some(limit.carries[1:], attrgetter("name"), ", ", MAX_NAMED)
        return f"; as full: {others}" if others else ""
    names = some(limit.carries, attrgetter("name"), ", ", MAX_NAMED)
    if limit.kind == "core":
        who = f"{names} fills alone" if len(limit.carries) == 1 else f"each of {names} fills"
        return f", which {who}"
    carried = some(limit.carries, lambda c: f"{c.name} ({percent(c.load)})", ", ", MAX_NAMED)
    return f", carrying {carried}"


def _sheet_of(noun: str, rows: Iterable[tuple[Cell, ...]]) -> Sheet:
    return with_rest(Sheet((noun, "load", "", "carrying"), tuple(rows)))


def _link_row(link: LinkLoad, operators: Mapping[str, str] | None = None) -> tuple[Cell, ...]:
    """Load of a link; links without a limit have none."""
    name, carrying = f"{link.source}→{link.target}", _carried(link, operators)
    if link.bandwidth_bps is None:
        return name, "—", "", carrying
    return name, percent(link.load), Bar(link.load), carrying


def _card_row(card: CardLoad, operators: Mapping[str, str] | None = None) -> tuple[Cell, ...]:
    carrying = _carried(card, operators)
    return f"{card.device}, {DIRECTIONS[card.kind]}", percent(card.load), Bar(card.load), carrying


def _carried(part: LinkLoad | CardLoad, operators: Mapping[str, str] | None) -> Names:
    """Bandwidth in use on a link or card, its limit, and the heaviest streams.

    With the operators of subtasks, streams between operators in one line.
    """
    bandwidth = part.bandwidth_bps
    limit = ", no limit" if bandwidth is None else f" of {format_bandwidth(bandwidth)}"
    before = f"{format_bandwidth(8 * part.bytes_per_s)}{limit}: "
    if operators is None:
        return Names.of(part.streams, attrgetter("name"), before=before)
    names = part.streams.names()
    ends = {name: name.split("→") for name in names}
    streams = {name: "→".join(operators.get(end, end) for end in ends[name]) for name in names}
    return Names.of(with_counts(names, streams), before=before, lines=1)
