"""Loads of devices and links at full rate, and the fullest of them, in names."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, overload

import numpy as np

from streamplace.model.arrays import Floats, Ints
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem

if TYPE_CHECKING:
    from streamsim.steady import Bottleneck, Loads


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
class FullestResource:
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


def device_loads(problem: Problem, placement: Placement, loads: "Loads") -> tuple[DeviceLoad, ...]:
    """Loads of all devices, in the order of the cluster."""
    return tuple(
        DeviceLoad(
            name,
            float(loads.devices[d]),
            float(loads.cores[d]),
            float(loads.egress[d]),
            float(loads.ingress[d]),
            _operators_on(problem, placement.index, d),
        )
        for d, name in enumerate(placement.devices)
    )


def _operators_on(problem: Problem, place: Ints, d: int) -> Carriers:
    """Operators on a device."""
    rows = np.flatnonzero(place == d).astype(np.int32)
    loads = problem.instance.load[rows, problem.instance.device_type[d]]
    return Carriers(problem.graph.operators.name.__getitem__, rows, loads)


def link_loads(problem: Problem, place: Ints, loads: Floats) -> tuple[LinkLoad, ...]:
    """Loads of the links that carry anything, fullest first; ``loads`` is that of all [D, D]."""
    from streamsim.equation import link_loads as shares_of

    instance, cluster = problem.instance, problem.cluster
    a, b = place[instance.source], place[instance.target]
    remote = np.flatnonzero(a != b)
    if not len(remote):
        return ()
    pair = a[remote].astype(np.int64) * problem.n_devices + b[remote]
    traffic = instance.traffic[remote]
    wire = instance.seconds_per_byte[a[remote], b[remote]]
    shares = shares_of(traffic, instance.tuples[remote], wire, instance.gap)
    by_pair, carrying = np.argsort(pair, kind="stable"), []
    used, first = np.unique(pair[by_pair], return_index=True)
    for link, rows in zip(used, np.split(by_pair, first[1:]), strict=True):
        u, v = divmod(int(link), problem.n_devices)
        streams = instance.stream_index[remote[rows]]
        carrying.append(
            LinkLoad(
                cluster.devices.name[u],
                cluster.devices.name[v],
                float(loads[u, v]),
                float(traffic[rows].sum()),
                float(cluster.bandwidth_bps[u, v]),
                Carriers(problem.graph.streams.label, streams, shares[rows]),
            )
        )
    return tuple(sorted(carrying, key=lambda link: -link.load))


def fullest_resource(
    top: "Bottleneck", devices: tuple[DeviceLoad, ...], links: tuple[LinkLoad, ...]
) -> FullestResource:
    """Give the fullest resource its name and what it carries."""
    device = devices[top.device]
    if top.kind == "link":
        link = links[0]
        return FullestResource("link", f"{link.source}→{link.target}", top.load, link.streams)
    if top.kind in ("device", "core"):
        return FullestResource(top.kind, device.name, top.load, device.operators)
    through = [
        link.streams
        for link in links
        if device.name == (link.source if top.kind == "egress" else link.target)
    ]
    return FullestResource(top.kind, device.name, top.load, reduce(Carriers.and_those_of, through))
