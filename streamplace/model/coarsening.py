"""Coarsening: levels of a placement problem, whose vertices are units that move as one.

The finest level has one unit per operator or per colocated group; coarser ones merge neighbours.
Loads are as in `streamsim.loads`: a unit loads its device, and the streams between two units
load the link between their devices. Streams inside a unit cost nothing.
"""

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from streamsim import _core
from streamsim.arrays import WithCoreCopy
from streamsim.instance import Instance, with_constants_as_loads
from streamsim.loads import limits_subtasks
from streamsim.platform import Platform
from streamsim.steady import is_plain

from streamplace.model.arrays import Bools, Floats, Ints, Longs
from streamplace.model.keep_apart import rival_columns

if TYPE_CHECKING:
    from streamplace.model.placement_rules import PlacementRules
    from streamplace.model.problem import Problem


class _LevelColumns(NamedTuple):
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
    rivals: Ints
    device_type: Ints  # [D]
    platform: Platform
    memory: Floats  # [U] bytes, or [0] if memory does not limit
    room: Floats  # [D] bytes
    ruled: bool  # whether some unit may not use some device
    plain: bool  # whether only devices and links limit


class Level(WithCoreCopy, _LevelColumns):
    """Units and the streams between them (U units, E pairs seen from both ends, D devices).

    The neighbours of unit u are the entries ``start[u]`` to ``start[u + 1]``.
    """

    @cached_property
    def compiled(self) -> _core.Level:
        """The core's copy of the arrays, made and checked at the first use."""
        return _core.Level(self)

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
    ends = instance.source, instance.target
    no_core = np.zeros((0, instance.load.shape[1]))
    level = Level(
        load=instance.load,
        core=instance.core_load if limits_subtasks(instance) else no_core,
        **_core.level_entries(n, *ends, instance.traffic, tuples),
        kind=np.zeros(n, np.int32),
        allowed=np.ones((1, d), np.bool_),
        rival_start=np.zeros(0, np.int64),
        rivals=np.zeros(0, np.int32),
        device_type=instance.device_type,
        platform=instance.platform,
        memory=np.zeros(0),
        room=np.zeros(0),
        ruled=False,
        plain=is_plain(instance),
    )
    return level if rules is None else _ruled(level, rules)


def contracted(level: Level, group: Ints, n_groups: int) -> Level:
    """Merge units into groups; all streams between two groups become one pair of entries.

    A group has the rules of its units: merge only units with equal rules, or set the rules
    afterwards.
    """
    compiled, columns = level.compiled.contracted(group, n_groups)
    coarse = level._replace(**columns)
    vars(coarse)["compiled"] = compiled  # the core has made it already
    return coarse


def _ruled(level: Level, rules: "PlacementRules") -> Level:
    """Level of colocated operators as units, under the units' rules."""
    units = contracted(level, rules.unit.astype(np.int32), rules.n_units)
    rows, kind = np.unique(rules.allowed, axis=0, return_inverse=True)
    start, rivals = rival_columns(rules.apart, rules.n_units)
    return units._replace(
        allowed=np.ascontiguousarray(rows),
        kind=kind.ravel().astype(np.int32),
        rival_start=start if len(rivals) else np.zeros(0, np.int64),
        rivals=rivals.astype(np.int32),
        memory=np.zeros(0) if rules.memory is None else rules.memory,
        room=np.zeros(0) if rules.room is None else rules.room.copy(),
        ruled=True,
    )
