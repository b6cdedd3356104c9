"""Why a placement reaches what it reaches: loads, the bottleneck, and what to move."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from streamplace.model.arrays import Floats, Ints
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.objectives.report import Report, percent
from streamplace.objectives.throughput.advice import Move, best_move

if TYPE_CHECKING:
    from streamsim.steady import Bottleneck as Top

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
    """An operator or stream on a resource, and how much of the resource it takes at full rate."""

    name: str
    load: float


class Carriers(Sequence[Carried]):
    """What uses a resource, heaviest first; a column, of which only what is looked at gets a name.

    Attributes
    ----------
    loads
        Share of the resource that each of them takes at full rate.
    """

    def __init__(self, label: Callable[[int], str], rows: Ints, loads: Floats) -> None:
        order = np.argsort(-loads, kind="stable")
        self._label, self._rows, self.loads = label, rows[order], loads[order]

    def __len__(self) -> int:
        return len(self.loads)

    @overload
    def __getitem__(self, at: int) -> Carried: ...

    @overload
    def __getitem__(self, at: slice) -> "Carriers": ...

    def __getitem__(self, at: int | slice) -> "Carried | Carriers":
        if isinstance(at, slice):
            return Carriers(self._label, self._rows[at], self.loads[at])
        return Carried(self._label(int(self._rows[at])), float(self.loads[at]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Carriers) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(self.loads.tobytes())

    @property
    def rows(self) -> list[int]:
        """Rows of all of them, ascending."""
        return sorted(self._rows.tolist())

    def label(self, row: int) -> str:
        """Name of one of them by its row."""
        return self._label(row)

    def names(self) -> list[str]:
        """Names of all of them."""
        return [self._label(row) for row in self._rows.tolist()]

    def and_those_of(self, other: "Carriers") -> "Carriers":
        """Return both together, whose rows are of one kind."""
        rows = np.concatenate([self._rows, other._rows])
        return Carriers(self._label, rows, np.concatenate([self.loads, other.loads]))


@dataclass(frozen=True, slots=True)
class DeviceLoad:
    """A device at full rate: share of its CPU, of its busiest core and of its network card."""

    name: str
    load: float
    busiest_core: float
    egress: float
    ingress: float
    operators: Carriers


@dataclass(frozen=True, slots=True)
class LinkLoad:
    """A link at full rate, with what it carries."""

    source: str
    target: str
    load: float
    bytes_per_s: float
    bandwidth_bps: float
    streams: Carriers


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """The fullest resource.

    Attributes
    ----------
    kind
        "device", "core", "link", "egress" or "ingress".
    name
        ``d1`` or ``d1→d3``.
    carries
        What uses it.
    """

    kind: str
    name: str
    load: float
    carries: Carriers

    @property
    def label(self) -> str:
        """Name for a sentence: "the CPU of d2", "link d1→d3"."""
        return RESOURCES[self.kind].format(self.name)


@dataclass(frozen=True, slots=True)
class Sustained:
    """What a placement sustains in the steady state, and why not more.

    Attributes
    ----------
    relative_throughput
        Share of the sources' total rate.
    throughput, offered
        Tuples/s that the sources let in, and that they generate.
    sources
        Share that each source reaches (max–min fair where they compete).
    links
        The links that carry anything, fullest first.
    move
        The single move that helps most, None where none helps or nothing limits.
    """

    relative_throughput: float
    throughput: float
    offered: float
    sources: dict[str, float]
    bottleneck: Bottleneck
    devices: tuple[DeviceLoad, ...]
    links: tuple[LinkLoad, ...]
    move: Move | None

    @property
    def value(self) -> float:
        """The relative throughput."""
        return self.relative_throughput

    @property
    def words(self) -> str:
        """Relative and absolute throughput."""
        return f"{percent(self.value)} of the sources' rate, {self.throughput:g} tuples/s"

    @property
    def verdict(self) -> str:
        """One sentence for a person."""
        limit = self.bottleneck
        if limit.load <= 1:
            full = percent(limit.load)
            return f"keeps up with the sources; the fullest resource is {limit.label} at {full}"
        return f"{percent(self.value)} of the sources' rate; {limit.label} is the limit"

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
        return {**_plain(self), "verdict": self.verdict}

    def brief(self) -> Report:
        """Devices with their load and operators, and the bottleneck."""
        from streamplace.objectives.throughput.telling import brief

        return brief(self)

    def report(self) -> Report:
        """Devices, links, the bottleneck with what it carries, and what to move."""
        from streamplace.objectives.throughput.telling import report

        return report(self)


def explain(problem: Problem, placement: Placement) -> Sustained:
    """Loads, bottleneck and advice for one placement."""
    from streamsim import bottleneck, resource_loads, source_rates, throughput

    problem.check(placement)
    instance, place = problem.instance, placement.index
    loads = resource_loads(instance, place)
    top = bottleneck(loads)
    value = float(throughput(instance, place[None, :])[0])
    devices = tuple(
        DeviceLoad(
            name,
            float(loads.devices[d]),
            float(loads.cores[d]),
            float(loads.egress[d]),
            float(loads.ingress[d]),
            _operators_on(problem, place, d),
        )
        for d, name in enumerate(placement.devices)
    )
    links = _links(problem, place, loads.links)
    rates = source_rates(instance, place)
    names = problem.graph.operators.name
    return Sustained(
        relative_throughput=value,
        throughput=value * problem.graph.source_rate,
        offered=problem.graph.source_rate,
        sources={names[v]: float(rates[v]) for v in problem.graph.sources},
        bottleneck=_bottleneck(top, devices, links),
        devices=devices,
        links=links,
        move=best_move(problem, place, top) if value < 1 else None,
    )


def _plain(value: Any) -> Any:
    """Dataclasses as dictionaries; a million operators and streams straight from their columns."""
    if isinstance(value, Carriers):
        pairs = zip(value.names(), value.loads.tolist(), strict=True)
        return [{"name": name, "load": load} for name, load in pairs]
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return value


def _operators_on(problem: Problem, place: Ints, d: int) -> Carriers:
    """Operators on a device."""
    rows = np.flatnonzero(place == d).astype(np.int32)
    loads = problem.instance.load[rows, problem.instance.device_type[d]]
    return Carriers(problem.graph.operators.name.__getitem__, rows, loads)


def _links(problem: Problem, place: Ints, loads: Floats) -> tuple[LinkLoad, ...]:
    from streamsim.equation import link_loads

    instance, cluster = problem.instance, problem.cluster
    a, b = place[instance.source], place[instance.target]
    remote = np.flatnonzero(a != b)
    if not len(remote):
        return ()
    pair = a[remote].astype(np.int64) * problem.n_devices + b[remote]
    traffic = instance.traffic[remote]
    wire = instance.seconds_per_byte[a[remote], b[remote]]
    shares = link_loads(traffic, instance.tuples[remote], wire, instance.gap)
    by_pair, found = np.argsort(pair, kind="stable"), []
    used, first = np.unique(pair[by_pair], return_index=True)
    for link, rows in zip(used, np.split(by_pair, first[1:]), strict=True):
        u, v = divmod(int(link), problem.n_devices)
        streams = instance.stream_index[remote[rows]]
        found.append(
            LinkLoad(
                cluster.devices.name[u],
                cluster.devices.name[v],
                float(loads[u, v]),
                float(traffic[rows].sum()),
                float(cluster.bandwidth_bps[u, v]),
                Carriers(problem.graph.streams.label, streams, shares[rows]),
            )
        )
    return tuple(sorted(found, key=lambda link: -link.load))


def _bottleneck(
    top: "Top", devices: tuple[DeviceLoad, ...], links: tuple[LinkLoad, ...]
) -> Bottleneck:
    """Give the fullest resource its name and what it carries."""
    device = devices[top.device]
    if top.kind == "link":
        link = links[0]
        return Bottleneck("link", f"{link.source}→{link.target}", top.load, link.streams)
    if top.kind in ("device", "core"):
        return Bottleneck(top.kind, device.name, top.load, device.operators)
    through = [
        link.streams
        for link in links
        if device.name == (link.source if top.kind == "egress" else link.target)
    ]
    return Bottleneck(top.kind, device.name, top.load, reduce(Carriers.and_those_of, through))
