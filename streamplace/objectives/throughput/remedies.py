"""Remedies: the device, link, card and operator whose improvement would help a placement most.

Each is improved alone, and the placement evaluated again; nothing moves.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from streamplace.display.report import percent
from streamplace.model.arrays import Ints
from streamplace.model.problem import Problem
from streamplace.model.subtasks import operators_by_subtask
from streamplace.objectives.throughput.loads import CardLoad, DeviceLoad, LinkLoad

if TYPE_CHECKING:
    from streamplace.objectives.throughput.loads import Carried

MAX_TRIED, MAX_PAIRS = 6, 2_000_000
"""Devices, links and cards to try, the fullest first; and this number times pairs of devices."""
MIN_GAIN = 1e-3
"""Share of the throughput that a remedy must gain."""


@dataclass(frozen=True, slots=True)
class PlacementRemedy:
    """An improvement, and the relative throughput of the same placement with it."""

    kind: str  # "device", "link", "card" or "operator"
    name: str
    change: str  # in words
    relative_throughput: float

    @property
    def words(self) -> str:
        """Improvement in words, with the resulting throughput."""
        return f"{self.name} {self.change} ({percent(self.relative_throughput)})"


def remedies(
    problem: Problem,
    place: Ints,
    value: float,
    devices: tuple[DeviceLoad, ...],
    links: tuple[LinkLoad, ...],
    cards: tuple[CardLoad, ...],
) -> tuple[PlacementRemedy, ...]:
    """Return the best remedy of every kind that gains something, the best first."""
    from streamsim import throughput_of

    best: dict[str, PlacementRemedy] = {}
    for kind, name, change, changed in _changes(problem, devices, links, cards):
        reached = throughput_of(changed.instance, place)
        least = best[kind].relative_throughput if kind in best else value * (1 + MIN_GAIN)
        if reached > least:
            best[kind] = PlacementRemedy(kind, name, change, reached)
    return tuple(sorted(best.values(), key=attrgetter("relative_throughput"), reverse=True))


def _changes(
    problem: Problem,
    devices: tuple[DeviceLoad, ...],
    links: tuple[LinkLoad, ...],
    cards: tuple[CardLoad, ...],
) -> Iterator[tuple[str, str, str, Problem]]:
    """Kind, name and change of each remedy, and the problem with it."""
    from streamplace.model.what_if import changed_cluster, changed_problem

    cluster = problem.cluster
    n_tried = max(1, min(MAX_TRIED, MAX_PAIRS // problem.n_devices**2))

    def doubled(key: str, number: float) -> Problem:
        return replace(problem, cluster=changed_cluster(cluster, {key: 2 * float(number)}))

    full = sorted(devices, key=lambda device: -max(device.load, device.busiest_core))
    full = [d for d in full if max(d.load, d.busiest_core) > 1][:n_tried]
    for device in full:
        row = cluster.devices.index(device.name)
        changed = doubled(f"{device.name}.mips", cluster.devices.mips[row])
        if problem.seconds is not None:
            seconds = np.array(problem.seconds)
            seconds[:, row] /= 2
            changed = replace(problem, seconds=seconds)
        yield "device", device.name, "at twice its speed", changed
    for link in [link for link in links if link.load > 1][:n_tried]:
        ends = cluster.devices.index(link.source), cluster.devices.index(link.target)
        key = f"{link.source}->{link.target}.bandwidth"
        name = f"link {link.source}→{link.target}"
        yield "link", name, "at twice its bandwidth", doubled(key, cluster.bandwidth_bps[ends])
    for card in [card for card in cards if card.load > 1][:n_tried]:
        number = getattr(cluster.devices[card.device], card.kind)
        name = f"the network card of {card.device} ({card.kind})"
        changed = doubled(f"{card.device}.{card.kind}", number)
        yield "card", name, "at twice its bandwidth", changed
    heaviest: list[Carried] = [user for device in full for user in list(device.operators)[:3]]
    family = operators_by_subtask(problem.graph.operators.name)
    for operator in dict.fromkeys(family[user.name] for user in heaviest):
        halves = {name: 0.5 for name in problem.graph.operators.name if family[name] == operator}
        yield "operator", operator, "at half its CPU", changed_problem(problem, halves, {})
