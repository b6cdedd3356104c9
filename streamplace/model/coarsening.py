"""Coarsening: levels of a placement problem, whose vertices are units that move as one.

The finest level has one unit per operator or per colocated group; coarser ones merge neighbours.
Loads are those of `streamsim.loads`: a unit loads its device, and the streams between two units
load the link between their devices. Streams inside a unit cost nothing.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from streamsim.instance import Instance, with_constants_as_loads
from streamsim.jit import kernel
from streamsim.loads import limits_subtasks
from streamsim.platform import Platform
from streamsim.steady import is_plain
from streamsim.topology import group_by

from streamplace.model.arrays import Bools, Floats, Ints, Longs
from streamplace.model.keep_apart import rival_columns

if TYPE_CHECKING:
    from streamplace.model.placement_rules import PlacementRules
    from streamplace.model.problem import Problem


class Level(NamedTuple):
    """Units and the streams between them (U units, E pairs seen from both ends, D devices).

    The neighbours of unit u are the entries ``start[u]`` to ``start[u + 1]``.
    """

    load: Floats  # [U, C] load as a fraction of a device of each type
    core: Floats  # [U, C] largest fraction of one core; [0, C] if no single core can limit
    start: Longs  # [U + 1]
    peer: Ints  # [E] the unit at the other end
    sent: Floats  # [E] bytes/s to the peer
    taken: Floats  # [E] bytes/s from the peer
    sent_tuples: Floats  # [E] tuples/s, or [0] where tuples cost no more than their bytes
    taken_tuples: Floats  # [E]
    kind: Ints  # [U] row of `allowed`
    allowed: Bools  # [K, D]
    rival_start: Longs  # [U + 1] rivals of unit u, or [0] if there are none
    rival: Ints
    device_type: Ints  # [D]
    platform: Platform
    memory: Floats  # [U] bytes, or [0] if memory does not limit
    room: Floats  # [D] bytes
    ruled: bool  # whether some unit may not use some device
    plain: bool  # whether only devices and links limit

    @property
    def n_units(self) -> int:
        """Number of units, U."""
        return len(self.load)


def finest_level(problem: "Problem", times: float = 1.0) -> Level:
    """Level of one unit per operator, or per colocated group, under the problem's rules.

    Constant loads are multiplied by ``times``. A placement carries the full rates divided by
    ``times`` if and only if its peak is at most ``times``, so a level decides about one rate
    exactly; about the full rate by default.
    """
    return level_with(problem, with_constants_as_loads(problem.instance, times))


def level_with(problem: "Problem", instance: Instance) -> Level:
    """Finest level of a problem with the loads of another instance, without constant loads.

    Without rules, parallel streams are separate entries.
    """
    rules = problem.rules
    n, d = instance.n_operators, instance.n_devices
    by_tuple = instance.overhead > 0 or instance.gap > 0
    tuples = instance.tuples if by_tuple else np.zeros(0)
    start, peer, sent, taken, sent_tuples, taken_tuples = _entries(
        n, instance.source, instance.target, instance.traffic, tuples
    )
    no_core = np.zeros((0, instance.load.shape[1]))
    level = Level(
        load=instance.load,
        core=instance.core_load if limits_subtasks(instance) else no_core,
        start=start,
        peer=peer,
        sent=sent,
        taken=taken,
        sent_tuples=sent_tuples,
        taken_tuples=taken_tuples,
        kind=np.zeros(n, np.int32),
        allowed=np.ones((1, d), np.bool_),
        rival_start=np.zeros(0, np.int64),
        rival=np.zeros(0, np.int32),
        device_type=instance.device_type,
        platform=instance.platform,
        memory=np.zeros(0),
        room=np.zeros(0),
        ruled=False,
        plain=is_plain(instance),
    )
    return level if rules is None else _ruled(level, rules)


@kernel
def _entries(
    n: int, source: Ints, target: Ints, traffic: Floats, tuples: Floats
) -> tuple[Longs, Ints, Floats, Floats, Floats, Floats]:
    """``start`` to ``taken_tuples`` of a level whose units are the n operators."""
    m = len(source)
    start = np.zeros(n + 1, np.int64)
    for e in range(m):
        start[source[e] + 1] += 1
        start[target[e] + 1] += 1
    for v in range(n):
        start[v + 1] += start[v]
    peer, at = np.empty(2 * m, np.int32), start.copy()
    sent, taken = np.zeros(2 * m), np.zeros(2 * m)
    sent_tuples, taken_tuples = np.zeros(2 * len(tuples)), np.zeros(2 * len(tuples))
    for e in range(m):
        u, v = source[e], target[e]
        i, j = at[u], at[v]
        at[u], at[v] = i + 1, j + 1
        peer[i], peer[j] = v, u
        sent[i], taken[j] = traffic[e], traffic[e]
        if len(tuples):
            sent_tuples[i], taken_tuples[j] = tuples[e], tuples[e]
    return start, peer, sent, taken, sent_tuples, taken_tuples


@kernel
def contracted(level: Level, group: Ints, n_groups: int) -> Level:
    """Merge units into groups; all streams between two groups become one pair of entries.

    A group has the rules of its first unit: merge only units with equal rules, or set the rules
    afterwards.
    """
    first, member = group_by(group, n_groups)
    load, core, kind, memory = _sums(level, n_groups, member, first)
    start = np.zeros(n_groups + 1, np.int64)
    most = len(level.peer)
    peer, entry = np.empty(most, np.int32), np.full(n_groups, -1, np.int64)
    sent, taken = np.zeros(most), np.zeros(most)
    most_tuples = len(level.sent_tuples)
    sent_tuples, taken_tuples = np.zeros(most_tuples), np.zeros(most_tuples)
    end = 0
    for g in range(n_groups):
        for k in range(first[g], first[g + 1]):
            u = member[k]
            for e in range(level.start[u], level.start[u + 1]):
                h = group[level.peer[e]]
                if h == g:
                    continue
                i = entry[h]
                if i < start[g]:
                    i, end = end, end + 1
                    entry[h], peer[i] = i, h
                sent[i] += level.sent[e]
                taken[i] += level.taken[e]
                if most_tuples:
                    sent_tuples[i] += level.sent_tuples[e]
                    taken_tuples[i] += level.taken_tuples[e]
        start[g + 1] = end
    rival_start, rival = _rivals(level, group, n_groups, member, first)
    return Level(
        load=load,
        core=core,
        start=start,
        peer=peer[:end].copy(),
        sent=sent[:end].copy(),
        taken=taken[:end].copy(),
        sent_tuples=sent_tuples[: min(end, most_tuples)].copy(),
        taken_tuples=taken_tuples[: min(end, most_tuples)].copy(),
        kind=kind,
        allowed=level.allowed,
        rival_start=rival_start,
        rival=rival,
        device_type=level.device_type,
        platform=level.platform,
        memory=memory,
        room=level.room,
        ruled=level.ruled,
        plain=level.plain,
    )


@kernel
def _sums(
    level: Level, n_groups: int, member: Ints, first: Ints
) -> tuple[Floats, Floats, Ints, Floats]:
    size = (n_groups, level.load.shape[1])
    load, core = np.zeros(size), np.zeros(size if len(level.core) else (0, size[1]))
    kind, memory = np.zeros(n_groups, np.int32), np.zeros(min(n_groups, len(level.memory)))
    for g in range(n_groups):
        for k in range(first[g], first[g + 1]):
            u = member[k]
            kind[g] = level.kind[u]
            if len(memory):
                memory[g] += level.memory[u]
            for c in range(size[1]):
                load[g, c] += level.load[u, c]
                if len(core):
                    core[g, c] = max(core[g, c], level.core[u, c])
    return load, core, kind, memory


@kernel
def _rivals(
    level: Level, group: Ints, n_groups: int, member: Ints, first: Ints
) -> tuple[Longs, Ints]:
    """Map the rivals of units to their groups."""
    if len(level.rival_start) == 0:
        return level.rival_start, level.rival
    start, rival = np.zeros(n_groups + 1, np.int64), np.empty(len(level.rival), np.int32)
    end = 0
    for g in range(n_groups):
        for k in range(first[g], first[g + 1]):
            for i in range(level.rival_start[member[k]], level.rival_start[member[k] + 1]):
                rival[end] = group[level.rival[i]]
                end += 1
        start[g + 1] = end
    return start, rival


def _ruled(level: Level, rules: "PlacementRules") -> Level:
    """Level of colocated operators as units, under the units' rules."""
    units = contracted(level, rules.unit.astype(np.int32), rules.n_units)
    rows, kind = np.unique(rules.allowed, axis=0, return_inverse=True)
    start, rivals = rival_columns(rules.apart, rules.n_units)
    return units._replace(
        allowed=np.ascontiguousarray(rows),
        kind=kind.ravel().astype(np.int32),
        rival_start=start if len(rivals) else np.zeros(0, np.int64),
        rival=rivals.astype(np.int32),
        memory=np.zeros(0) if rules.memory is None else rules.memory,
        room=np.zeros(0) if rules.room is None else rules.room.copy(),
        ruled=True,
    )
