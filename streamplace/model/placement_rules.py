"""Constraints compiled to arrays: units that move together, and the devices of each.

A *unit* is a set of colocated operators; without colocation every operator is its own. Devices must
offer the tags that operators require.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from streamplace.errors import ProblemError
from streamplace.model.arrays import Bools, Floats, Ints
from streamplace.model.cluster import Cluster
from streamplace.model.constraints import TAG, Constraints
from streamplace.model.graph import StreamGraph
from streamplace.model.keep_apart import keep_apart, rival_columns
from streamplace.model.memory import (
    made_room,
    memory_in_use,
    packed,
    short_memory,
    too_large,
    with_slack,
)
from streamplace.model.message_text import listed, quoted
from streamplace.model.streams import CHAINED
from streamplace.model.units import format_bytes


@dataclass(frozen=True, slots=True)
class PlacementRules:
    """Rules that make a placement legal."""

    unit: Ints  # [N] unit of every operator, numbered by first operator
    allowed: Bools  # [U, D] whether a unit may run on a device
    apart: Ints  # [P, 2] pairs of units that must not share a device, lower one first
    # [U] a device for every unit that respects all rules; None if memory is short and the search
    # found none.
    known_devices: Ints | None
    # [U] bytes that every unit uses, [D] bytes of every device; None if all units fit on any device
    # together.
    memory: Floats | None = None
    room: Floats | None = None
    fault: str = ""  # error to report if a placement is needed and `known_devices` is None
    # [U] first operator of every unit.
    first_operator: NDArray[np.intp] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        alone = self.n_units == len(self.unit)
        first = np.arange(self.n_units) if alone else np.unique(self.unit, return_index=True)[1]
        object.__setattr__(self, "first_operator", first)

    @property
    def witness(self) -> Ints:
        """[U] a device for every unit that respects all rules."""
        if self.known_devices is None:
            raise ProblemError(self.fault)
        return self.known_devices

    @property
    def n_units(self) -> int:
        """Number of units, U."""
        return len(self.allowed)

    def repaired(self, placement: Ints) -> Ints:
        """Return a legal placement close to this one [N], or else the witness."""
        chosen = placement[self.first_operator]
        wrong = ~self.allowed[np.arange(self.n_units), chosen]
        for u in np.flatnonzero(wrong).tolist():
            chosen[u] = _next_free(self.allowed[u], int(chosen[u]))
        settled = np.full(self.n_units, -1, np.int32)
        start, rival = rival_columns(self.apart, self.n_units)
        for u in np.unique(self.apart).tolist():
            free = self.allowed[u].copy()
            blocked = settled[rival[start[u] : start[u + 1]]]
            free[blocked[blocked >= 0]] = False
            if not free.any():
                return np.asarray(self.witness[self.unit])
            wish = int(placement[self.first_operator[u]])
            chosen[u] = settled[u] = _next_free(free, wish)
        if self.memory is not None and self.room is not None:
            fitted = made_room(chosen, self.allowed, self.apart, self.memory, self.room)
            chosen = self.witness if fitted is None else fitted
        return np.asarray(chosen[self.unit])

    def legal(self, placements: Ints) -> Bools:
        """Whether each placement of a batch [B, N] respects every rule; shape [B]."""
        alone = self.n_units == len(self.unit)
        of_unit = placements if alone else placements[:, self.first_operator]
        units = self.first_operator if alone else np.arange(self.n_units)
        legal = self.allowed[units, of_unit].all(axis=1)
        if not alone:
            legal &= (of_unit[:, self.unit] == placements).all(axis=1)
        if len(self.apart):
            legal &= (of_unit[:, self.apart[:, 0]] != of_unit[:, self.apart[:, 1]]).all(axis=1)
        if self.memory is not None and self.room is not None:
            in_use = memory_in_use(of_unit, self.memory, len(self.room))
            legal &= (in_use <= with_slack(self.room)).all(axis=1)
        return np.asarray(legal)

    def is_legal(self, placement: Ints) -> bool:
        """Whether a placement [N] respects every rule."""
        if self.memory is None and self.n_units == len(placement) and not len(self.apart):
            allowed = np.count_nonzero(self.allowed[self.first_operator, placement])
            return bool(allowed == len(placement))
        return bool(self.legal(placement[None])[0])

    def overfull(self, placement: Ints) -> tuple[int, float] | None:
        """Device that a placement [N] overfills most, and the excess in bytes; None without one."""
        if self.memory is None or self.room is None:
            return None
        of_unit = placement[self.first_operator][None]
        (in_use,) = memory_in_use(of_unit, self.memory, len(self.room))
        excess = np.where(in_use > with_slack(self.room), in_use - self.room, -np.inf)
        d = int(np.argmax(excess))
        return (d, float(excess[d])) if excess[d] > 0 else None

    def broken(self, placement: Ints) -> tuple[Literal["together", "allowed", "apart"], int, int]:
        """Return a rule other than memory that a placement [N] breaks, and two operators of it."""
        first = self.first_operator
        of_unit = placement[first]
        strayed = of_unit[self.unit] != placement
        if strayed.any():
            v = int(np.argmax(strayed))
            return "together", int(first[self.unit[v]]), v
        outside = ~self.allowed[np.arange(self.n_units), of_unit]
        if outside.any():
            v = int(first[np.argmax(outside)])
            return "allowed", v, v
        together = of_unit[self.apart[:, 0]] == of_unit[self.apart[:, 1]]
        a, b = first[self.apart[int(np.argmax(together))]]
        return "apart", int(a), int(b)


def compile_rules(
    graph: StreamGraph, cluster: Cluster, constraints: Constraints, known: Ints | None = None
) -> PlacementRules:
    """Compile the rules of a problem.

    If memory is short, search for a legal placement, unless one is ``known``. Unknown names and
    contradictory constraints raise ProblemError.
    """
    c, chains = constraints, _chains(graph)
    tagged = [v for v, tags in enumerate(graph.operators.requires) if tags]
    sizes, room = graph.operators.memory, cluster.devices.memory
    any_fits = bool(sizes.sum() <= room.min())  # all operators together, on any device
    unit = units_of(graph, [*c.colocate, *chains])
    allowed = _allowed(graph, cluster, c, unit, tagged)
    apart = _apart(graph, cluster, c.exlocate, unit)
    if any_fits:
        return PlacementRules(unit, allowed, apart, _witness(graph, unit, allowed, apart))
    memory = np.bincount(unit, sizes).astype(np.float64)
    roomy = allowed & (memory[:, None] <= with_slack(room))
    if not roomy.any(axis=1).all():
        reason = too_large(graph, unit, allowed, memory, room)
        return _for_subtasks(
            graph, PlacementRules(unit, allowed, apart, None, memory, room, reason)
        )
    if known is not None:
        devices = known[np.unique(unit, return_index=True)[1]]
        rules = PlacementRules(unit, roomy, apart, devices, memory, room)
        if rules.is_legal(known):
            return rules
    return _fitting(graph, unit, roomy, apart, memory, room)


def _for_subtasks(graph: StreamGraph, rules: PlacementRules) -> PlacementRules:
    """Return rules that only subtasks can respect; raise ProblemError if there are none."""
    if (graph.operators.parallelism == 1).all():
        raise ProblemError(rules.fault)
    return rules


def _fitting(
    graph: StreamGraph, unit: Ints, allowed: Bools, apart: Ints, memory: Floats, room: Floats
) -> PlacementRules:
    """Rules for short memory, with a device for every unit if the search finds them."""
    lack = float(memory.sum() - with_slack(room).sum())
    if lack > 0:
        raise ProblemError(
            f"the operators cannot fit: {format_bytes(float(memory.sum()))} of memory needed "
            f"together, {format_bytes(lack)} more than all devices have"
        )
    _witness(graph, unit, allowed, apart)
    devices = packed(allowed, apart, memory, room)
    if devices is not None and (devices >= 0).all():
        return PlacementRules(unit, allowed, apart, devices, memory, room)
    reason = short_memory(graph, unit, allowed, memory, room)
    rules = PlacementRules(unit, allowed, apart, None, memory, room, reason)
    return _for_subtasks(graph, rules) if devices is None else rules


def rows_of(graph: StreamGraph, names: Iterable[str], what: str) -> list[int]:
    """Rows of the operators that a rule names."""
    for name in sorted(names, key=str):
        if name not in graph.operators:
            is_text = isinstance(name, str)
            fix = "correct it" if is_text else f"names are texts; write {quoted(str(name))}"
            raise ProblemError(f"{what} names the unknown operator {quoted(name)}; {fix}")
    return sorted(graph.operators.index(name) for name in names)


def _chains(graph: StreamGraph) -> list[frozenset[str]]:
    """Pairs of operators that share a thread, because their stream is chained."""
    streams, name = graph.streams, graph.operators.name
    if CHAINED not in streams.partitioning:
        return []
    ends = zip(streams.source.tolist(), streams.target.tolist(), strict=True)
    return [
        frozenset({name[u], name[v]})
        for (u, v), kind in zip(ends, streams.partitioning, strict=True)
        if kind == CHAINED
    ]


def units_of(graph: StreamGraph, groups: Sequence[frozenset[str]]) -> Ints:
    """Unit of each operator: merge overlapping groups, then number the units by first operator."""
    if not groups:
        return np.arange(graph.n_operators, dtype=np.int32)
    members = (rows_of(graph, group, "colocate") for group in groups)
    return joined(graph.n_operators, ((rows[0], v) for rows in members for v in rows[1:]))


def joined(n: int, pairs: Iterable[tuple[int, int]]) -> Ints:
    """Connected components of n things by pairs of them, numbered by first member.

    >>> joined(4, [(3, 1)]).tolist()
    [0, 1, 2, 1]
    """
    leader = list(range(n))

    def lead(v: int) -> int:
        while leader[v] != v:
            leader[v] = leader[leader[v]]
            v = leader[v]
        return v

    for pair in pairs:
        low, high = sorted(map(lead, pair))
        leader[high] = low
    leaders = np.fromiter(map(lead, leader), np.int32, n)
    return np.unique(leaders, return_inverse=True)[1].astype(np.int32)


def _allowed(
    graph: StreamGraph, cluster: Cluster, c: Constraints, unit: Ints, tagged: list[int]
) -> Bools:
    allowed = np.ones((int(unit.max()) + 1, cluster.n_devices), bool)
    for name, devices, what in c.limits():
        row = rows_of(graph, [name], what)
        mask = _mask(cluster, devices, f"{what} of {quoted(name)}")
        _narrow(graph, allowed, unit[row], mask, unit)
    if tagged:
        _narrow(graph, allowed, unit[tagged], _tag_masks(graph, cluster, tagged), unit)
    return allowed


def _tag_masks(graph: StreamGraph, cluster: Cluster, tagged: list[int]) -> Bools:
    """Whether each device has the tags that each of these operators requires, [T, D]."""
    masks: dict[frozenset[str], Bools] = {}
    for v in tagged:
        tags = graph.operators.requires[v]
        if tags not in masks:
            masks[tags] = np.array([tags <= offered for offered in cluster.devices.tags])
            if not masks[tags].any():
                raise ProblemError(
                    f"operator {quoted(graph.operators.name[v])} requires "
                    f"{listed(sorted(tags))}, which no device offers; add the tag to a device"
                )
    return np.array([masks[graph.operators.requires[v]] for v in tagged])


def _mask(cluster: Cluster, devices: frozenset[str], where: str) -> Bools:
    mask = np.zeros(cluster.n_devices, bool)
    for device in sorted(devices, key=str):
        if device not in cluster.devices:
            if where.startswith("allowed") and str(device).startswith(TAG):
                tag = quoted(device.removeprefix(TAG))
                raise ProblemError(f"{where}: no device has the tag {tag}; add it to a device")
            names = listed(cluster.devices.name)
            if tags := sorted(set().union(*cluster.devices.tags)):
                names += f" and the tags {listed(tags)}"
            raise ProblemError(
                f"{where} names the unknown device {quoted(device)}; the cluster has {names}"
            )
        mask[cluster.devices.index(device)] = True
    return mask


def _narrow(graph: StreamGraph, allowed: Bools, units: Ints, masks: Bools, unit: Ints) -> None:
    """Restrict units to the devices of their masks; a unit may occur several times."""
    if len(allowed) == len(unit):
        allowed[units] &= masks
    else:
        np.logical_and.at(allowed, units, masks)
    has_device = allowed[units].any(axis=1)
    if not has_device.all():
        mates = np.flatnonzero(unit == units[np.argmin(has_device)])
        raise ProblemError(
            f"no device is left for {listed([graph.operators.name[v] for v in mates])}: pins, "
            "allowed devices and required tags exclude each other; loosen one"
        )


def rows_apart(graph: StreamGraph, group: frozenset[str], unit: Ints) -> list[int]:
    """Rows of exlocated operators; raise ProblemError if two of them share a unit."""
    rows = rows_of(graph, group, "exlocate")
    units, counts = np.unique(unit[rows], return_counts=True)
    if (counts > 1).any():
        both = [v for v in rows if unit[v] == units[np.argmax(counts)]]
        names = [graph.operators.name[v] for v in both]
        raise ProblemError(f"{listed(names)} are both colocated and exlocated; drop one rule")
    return rows


def _apart(
    graph: StreamGraph, cluster: Cluster, groups: Sequence[frozenset[str]], unit: Ints
) -> Ints:
    if not groups:
        return np.empty((0, 2), np.int32)
    pairs = []
    for group in groups:
        rows = rows_apart(graph, group, unit)
        units = np.unique(unit[rows])
        if len(units) > cluster.n_devices:
            raise ProblemError(
                f"{listed([graph.operators.name[v] for v in rows])} cannot be kept apart "
                f"on {cluster.n_devices} devices; add devices or drop names from exlocate"
            )
        a, b = np.triu_indices(len(units), 1)
        pairs.append(np.stack([units[a], units[b]], axis=1).astype(np.int32))
    return np.unique(np.concatenate(pairs), axis=0)


def _witness(graph: StreamGraph, unit: Ints, allowed: Bools, apart: Ints) -> Ints:
    """Find a legal device for every unit."""
    witness = np.argmax(allowed, axis=1).astype(np.int32)
    if not len(apart):
        return np.asarray(witness)
    units = np.unique(apart)
    devices = keep_apart(allowed[units], np.searchsorted(units, apart).astype(np.int32))
    if devices is None:
        first = PlacementRules(unit, allowed, apart, witness).first_operator
        names = [graph.operators.name[first[u]] for u in units]
        raise ProblemError(
            f"found no way to keep {listed(names)} apart on {allowed.shape[1]} devices; "
            "allow more devices or drop an exlocate rule"
        )
    witness[units] = devices
    return np.asarray(witness)


def _next_free(free: Bools, wish: int) -> int:
    """Return the first free device from the wished one on, cyclically."""
    return int(wish + np.argmax(np.roll(free, -wish))) % len(free)
