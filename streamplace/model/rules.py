"""Constraints compiled to arrays: units that move together, and where each may go.

A *unit* is a set of colocated operators; without colocation every operator is its own.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamplace.errors import ProblemError
from streamplace.model.cluster import Cluster
from streamplace.model.columns import Ints
from streamplace.model.constraints import Constraints
from streamplace.model.graph import StreamGraph

SEARCH_STEPS = 100_000


@dataclass(frozen=True, slots=True)
class Rules:
    """What makes a placement legal.

    Attributes
    ----------
    unit
        [N] unit of every operator, numbered by first operator.
    allowed
        [U, D] whether a unit may run on a device.
    apart
        [P, 2] pairs of units that must not share a device, lower one first.
    witness
        [U] a device for every unit that respects everything.
    """

    unit: Ints
    allowed: NDArray[np.bool_]
    apart: Ints
    witness: Ints

    @property
    def n_units(self) -> int:
        """Number of units, U."""
        return len(self.allowed)

    @property
    def first_operator(self) -> NDArray[np.intp]:
        """[U] first operator of every unit."""
        first: NDArray[np.intp] = np.unique(self.unit, return_index=True)[1]
        return first

    def repaired(self, placement: Ints) -> Ints:
        """Return a legal placement close to the given one [N]; the witness where none is near."""
        wish = placement[self.first_operator]
        rivals = self.rivals()
        chosen = np.full(self.n_units, -1, np.int32)
        for u in range(self.n_units):
            free = self.allowed[u].copy()
            taken = chosen[rivals.get(u, [])]
            free[taken[taken >= 0]] = False
            if not free.any():
                return self.witness[self.unit]
            chosen[u] = wish[u] + int(np.argmax(np.roll(free, -int(wish[u]))))
            chosen[u] %= len(free)
        return chosen[self.unit]

    def rivals(self) -> dict[int, list[int]]:
        """Return the units that each unit must not meet."""
        met: dict[int, list[int]] = {}
        for a, b in self.apart.tolist():
            met.setdefault(a, []).append(b)
            met.setdefault(b, []).append(a)
        return met

    def legal(self, placements: Ints) -> NDArray[np.bool_]:
        """Whether each placement of a batch [B, N] respects every rule; shape [B]."""
        of_unit = placements[:, self.first_operator]
        together = (of_unit[:, self.unit] == placements).all(axis=1)
        inside = self.allowed[np.arange(self.n_units), of_unit].all(axis=1)
        apart = (of_unit[:, self.apart[:, 0]] != of_unit[:, self.apart[:, 1]]).all(axis=1)
        return np.asarray(together & inside & apart)


def compile_rules(graph: StreamGraph, cluster: Cluster, constraints: Constraints) -> Rules | None:
    """Rules of a problem, or None where every placement is legal.

    Raises
    ------
    ProblemError
        When the constraints name what does not exist or cannot all be met.
    """
    tagged = [v for v, tags in enumerate(graph.operators.requires) if tags]
    c = constraints
    if not (c.pin or c.colocate or c.exlocate or c.allowed or tagged):
        return None
    unit = _units(graph, c.colocate)
    allowed = _allowed(graph, cluster, c, unit, tagged)
    apart = _apart(graph, c.exlocate, unit)
    return Rules(unit, allowed, apart, _witness(graph, cluster, unit, allowed, apart))


def _rows(graph: StreamGraph, names: Iterable[str], what: str) -> list[int]:
    for name in names:
        if name not in graph.operators:
            raise ProblemError(f"{what} names the unknown operator {name!r}; correct the name")
    return sorted(graph.operators.index(name) for name in names)


def _units(graph: StreamGraph, groups: Iterable[frozenset[str]]) -> Ints:
    """Merge overlapping groups, then number the units by first operator."""
    leader = np.arange(graph.n_operators)
    for group in groups:
        rows = _rows(graph, group, "colocate")
        merged = np.isin(leader, leader[rows])
        leader[merged] = leader[merged].min(initial=graph.n_operators)
    return np.unique(leader, return_inverse=True)[1].astype(np.int32)


def _allowed(
    graph: StreamGraph, cluster: Cluster, c: Constraints, unit: Ints, tagged: list[int]
) -> NDArray[np.bool_]:
    allowed = np.ones((int(unit.max()) + 1, cluster.n_devices), bool)
    limits = [(v, frozenset({device}), "pin") for v, device in c.pin.items()]
    limits += [(v, devices, "allowed") for v, devices in c.allowed.items()]
    for name, devices, what in limits:
        (row,) = _rows(graph, [name], what)
        _narrow(graph, allowed, unit, row, _mask(cluster, devices, f"{what} of {name!r}"))
    for row in tagged:
        needs = graph.operators.requires[row]
        mask = np.array([needs <= tags for tags in cluster.devices.tags])
        if not mask.any():
            raise ProblemError(
                f"operator {graph.operators.name[row]!r} requires {_listed(needs)}, "
                "which no device offers; add the tag to a device"
            )
        _narrow(graph, allowed, unit, row, mask)
    return allowed


def _mask(cluster: Cluster, devices: frozenset[str], where: str) -> NDArray[np.bool_]:
    mask = np.zeros(cluster.n_devices, bool)
    for device in devices:
        if device not in cluster.devices:
            raise ProblemError(f"{where} names the unknown device {device!r}; correct the name")
        mask[cluster.devices.index(device)] = True
    return mask


def _narrow(
    graph: StreamGraph,
    allowed: NDArray[np.bool_],
    unit: Ints,
    row: int,
    mask: NDArray[np.bool_],
) -> None:
    u = unit[row]
    allowed[u] &= mask
    if not allowed[u].any():
        mates = [graph.operators.name[v] for v in np.flatnonzero(unit == u)]
        raise ProblemError(
            f"no device is left for {_listed(mates)}: its pins, allowed devices and required tags "
            "exclude each other; loosen one"
        )


def _apart(graph: StreamGraph, groups: Iterable[frozenset[str]], unit: Ints) -> Ints:
    pairs: set[tuple[int, int]] = set()
    for group in groups:
        rows = _rows(graph, group, "exlocate")
        for i, v in enumerate(rows):
            for w in rows[i + 1 :]:
                if unit[v] == unit[w]:
                    both = _listed([graph.operators.name[v], graph.operators.name[w]])
                    raise ProblemError(f"{both} are both colocated and exlocated; drop one rule")
                a, b = sorted((int(unit[v]), int(unit[w])))
                pairs.add((a, b))
    return np.array(sorted(pairs), np.int32).reshape(-1, 2)


def _witness(
    graph: StreamGraph, cluster: Cluster, unit: Ints, allowed: NDArray[np.bool_], apart: Ints
) -> Ints:
    """Find a legal device for every unit: the exlocated ones by backtracking, fewest choices first."""
    witness = np.argmax(allowed, axis=1).astype(np.int32)
    rivals = Rules(unit, allowed, apart, witness).rivals()
    devices = {u: np.flatnonzero(allowed[u]).tolist() for u in rivals}
    todo = sorted(rivals, key=lambda u: (len(devices[u]) - len(rivals[u]), u))
    found = _backtrack(todo, devices, rivals)
    if found is None:
        names = [graph.operators.name[int(np.argmax(unit == u))] for u in todo[:6]]
        raise ProblemError(
            f"{_listed(names)} cannot all be kept apart on {cluster.n_devices} devices; "
            "allow more devices or drop an exlocate rule"
        )
    for u, d in found.items():
        witness[u] = d
    return witness


def _backtrack(
    todo: list[int], devices: dict[int, list[int]], rivals: dict[int, list[int]]
) -> dict[int, int] | None:
    """Depth-first search without recursion; None when there is no way or none was found in time."""
    chosen: dict[int, int] = {}
    choices = [iter(devices[todo[0]])] if todo else []
    for _ in range(SEARCH_STEPS):
        if len(chosen) == len(todo):
            return chosen
        u = todo[len(choices) - 1]
        chosen.pop(u, None)
        taken = {chosen[r] for r in rivals[u] if r in chosen}
        free = next((d for d in choices[-1] if d not in taken), None)
        if free is not None:
            chosen[u] = free
            if len(chosen) < len(todo):
                choices.append(iter(devices[todo[len(chosen)]]))
        else:
            choices.pop()
            if not choices:
                return None
    return None


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in sorted(names))
