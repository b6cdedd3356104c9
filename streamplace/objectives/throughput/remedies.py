"""Remedies: the device, link, card and operator whose improvement would help a placement most.

Each is improved alone, and the placement evaluated again; nothing moves.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from streamplace.display.report import percent
from streamplace.model.arrays import Floats, Ints
from streamplace.model.cluster import Cluster
from streamplace.model.devices import Device
from streamplace.model.expansion import operators_by_subtask
from streamplace.model.problem import Problem
from streamplace.model.what_if import changed_problem
from streamplace.objectives.throughput.loads import CardLoad, DeviceLoad, LinkLoad

if TYPE_CHECKING:
    from streamplace.objectives.throughput.loads import Carried

MOST_TRIED = 6
"""Most devices, links, cards and operators to try, the fullest first."""
LEAST_GAIN = 1e-3
"""Share of the throughput that a remedy must gain."""


@dataclass(frozen=True, slots=True)
class PlacementRemedy:
    """Something better, and the relative throughput of the same placement with it."""

    kind: str  # "device", "link", "card" or "operator"
    name: str
    change: str  # in words
    relative_throughput: float

    @property
    def words(self) -> str:
        """What would be better, and what that would give."""
        return f"{self.name} {self.change} ({percent(self.relative_throughput)})"


Changed = tuple[str, str, str, Callable[[], Problem]]
"""Kind, name and change of a remedy, and the problem with it."""


def remedies(
    problem: Problem,
    place: Ints,
    value: float,
    devices: tuple[DeviceLoad, ...],
    links: tuple[LinkLoad, ...],
    cards: tuple[CardLoad, ...],
) -> tuple[PlacementRemedy, ...]:
    """Return the best remedy of every kind that gains something, the best first."""
    from streamsim import throughput

    best: dict[str, PlacementRemedy] = {}
    for kind, name, change, changed in _changes(problem, devices, links, cards):
        reached = float(throughput(changed().instance, place[None, :])[0])
        least = best[kind].relative_throughput if kind in best else value * (1 + LEAST_GAIN)
        if reached > least:
            best[kind] = PlacementRemedy(kind, name, change, reached)
    return tuple(sorted(best.values(), key=attrgetter("relative_throughput"), reverse=True))


def _changes(
    problem: Problem,
    devices: tuple[DeviceLoad, ...],
    links: tuple[LinkLoad, ...],
    cards: tuple[CardLoad, ...],
) -> Iterator[Changed]:
    names = problem.cluster.devices.name
    full = sorted(devices, key=lambda device: -max(device.load, device.busiest_core))
    full = [d for d in full if max(d.load, d.busiest_core) > 1][:MOST_TRIED]
    for device in full:
        row = names.index(device.name)
        yield "device", device.name, "at twice its speed", partial(_faster, problem, row)
    for link in [link for link in links if link.load > 1][:MOST_TRIED]:
        ends = names.index(link.source), names.index(link.target)
        name = f"link {link.source}→{link.target}"
        yield "link", name, "at twice its bandwidth", partial(_wider, problem, *ends)
    for card in [card for card in cards if card.load > 1][:MOST_TRIED]:
        row, field = names.index(card.device), card.kind
        name = f"the network card of {card.device} ({field})"
        yield "card", name, "at twice its bandwidth", partial(_with, problem, row, field)
    heaviest: list[Carried] = [user for device in full for user in list(device.operators)[:3]]
    family = operators_by_subtask(problem.graph.operators.name)
    for operator in dict.fromkeys(family[user.name] for user in heaviest):
        halves = {name: 0.5 for name in problem.graph.operators.name if family[name] == operator}
        changed = partial(changed_problem, problem, halves, {})
        yield "operator", operator, "at half its CPU", changed


def _faster(problem: Problem, row: int) -> Problem:
    """Return the problem with a device of twice the speed."""
    if problem.seconds is None:
        return _with(problem, row, "mips")
    seconds = np.array(problem.seconds)
    seconds[:, row] /= 2
    return _on(problem, problem.cluster, seconds)


def _with(problem: Problem, row: int, field: str) -> Problem:
    """Return the problem with twice a number of a device."""
    cluster, rows = problem.cluster, list[Device](problem.cluster.devices)
    rows[row] = replace(rows[row], **{field: 2 * getattr(rows[row], field)})
    return _on(problem, replace(cluster, devices=type(cluster.devices).of(rows)))


def _wider(problem: Problem, source: int, target: int) -> Problem:
    """Return the problem with a link of twice the bandwidth."""
    bandwidth = np.array(problem.cluster.bandwidth_bps)
    bandwidth[source, target] *= 2
    return _on(problem, replace(problem.cluster, bandwidth_bps=bandwidth))


def _on(problem: Problem, cluster: Cluster, seconds: Floats | None = None) -> Problem:
    costs = problem.seconds if seconds is None else seconds
    return Problem(problem.graph, cluster, problem.constraints, costs, problem.moving)
