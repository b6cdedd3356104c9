"""Units of operators that are placed together, with loads and streams as plain arrays."""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from streamsim import _core
from streamsim.arrays import WithCoreCopy
from streamsim.equation import link_loads
from streamsim.instance import Instance, with_constants_as_loads
from streamsim.platform import Platform

from streamplace.model.arrays import Bools, Floats, Ints
from streamplace.model.keep_apart import rival_columns
from streamplace.model.memory import memory_in_use, with_slack
from streamplace.model.placement_rules import joined
from streamplace.model.problem import Problem


class _UnitsColumns(NamedTuple):
    load: Floats  # [U, D] CPU load of unit u on device d, infinite where it may not run
    core: Floats  # [U, D] load of the busiest single core
    source: Ints  # [E]
    target: Ints  # [E]
    traffic: Floats  # [E] bytes/s
    tuples: Floats  # [E] tuples/s
    start: Ints  # [U + 1] the streams of u are around[start[u]:start[u + 1]]
    around: Ints  # [2E]
    apart: Ints  # [P, 2] units that must not share a device
    rival_start: Ints  # [U + 1] the rivals of u are rivals[rival_start[u]:rival_start[u + 1]]
    rivals: Ints  # [2P]
    platform: Platform
    classes: Ints  # [D] class of each device; devices of a class are interchangeable
    memory: Floats  # [U] bytes, or [0] if memory is unlimited
    room: Floats  # [D] bytes


class Units(WithCoreCopy, _UnitsColumns):
    """Units to place (U), the merged streams between them (E), and the devices (D).

    All loads are those of the full rate, as fractions of a capacity.
    """

    @cached_property
    def compiled(self) -> _core.Units:
        """The core's copy of the arrays, made and checked at the first use."""
        return _core.Units(self)

    @property
    def n_units(self) -> int:
        """Number of units, U."""
        return len(self.load)

    @property
    def n_devices(self) -> int:
        """Number of devices, D."""
        return len(self.classes)

    @property
    def handles(self) -> bool:
        """Whether sending or receiving loads devices."""
        return self.platform.overhead > 0 or self.platform.overhead_per_byte > 0

    @property
    def quickest(self) -> float:
        """Seconds per byte of the quickest link between two devices; infinite without one."""
        distinct = ~np.eye(self.n_devices, dtype=bool)
        return float(self.platform.seconds_per_byte[distinct].min(initial=np.inf))


def units_of(problem: Problem, times: float = 1.0) -> Units:
    """Units of a problem, with ``times`` the constant loads added to the loads.

    A placement carries the full rates divided by ``times`` if and only if its peak is at most
    ``times``.
    """
    return units_with(problem, with_constants_as_loads(problem.instance, times))


def units_with(problem: Problem, instance: Instance) -> Units:
    """Units of a problem with the loads of another instance, without constant loads."""
    rules = problem.rules
    types = instance.device_type
    nobody = np.zeros(0, np.int32)
    plain = Units(
        load=instance.load[:, types],
        core=instance.core_load[:, types],
        source=instance.source,
        target=instance.target,
        traffic=instance.traffic,
        tuples=instance.tuples,
        start=nobody,
        around=nobody,
        apart=nobody.reshape(0, 2),
        rival_start=nobody,
        rivals=nobody,
        platform=instance.platform,
        classes=problem.interchangeable,
        memory=np.zeros(0),
        room=np.zeros(0),
    )
    units = merged(plain, problem.unit)
    if rules is None:
        return units
    units.load[~rules.allowed] = np.inf
    if rules.memory is not None and rules.room is not None:
        units = units._replace(memory=rules.memory, room=rules.room)
    return _linked(units._replace(apart=rules.apart))


def are_legal(units: Units, places: Ints) -> Bools:
    """Whether each placement [B, U] meets the constraints and fits into memory, [B]."""
    allowed = np.isfinite(units.load[np.arange(units.n_units), places]).all(axis=1)
    a, b = units.apart.T
    legal: Bools = allowed & (places[:, a] != places[:, b]).all(axis=1)
    if len(units.memory):
        bytes_used = memory_in_use(places, units.memory, units.n_devices)
        legal &= (bytes_used <= with_slack(units.room)).all(axis=1)
    return legal


def merged(units: Units, group: Ints) -> Units:
    """Merge units into groups; streams between the same two groups add up."""
    n = int(group.max()) + 1
    load = np.zeros((n, units.n_devices))
    core = np.zeros_like(load)
    np.add.at(load, group, units.load)
    np.maximum.at(core, group, units.core)
    tail, head = group[units.source].astype(np.int64), group[units.target]
    outside = tail != head
    pairs, row = np.unique((tail * n + head)[outside], return_inverse=True)
    source, target = np.divmod(pairs, n)
    return _linked(
        units._replace(
            load=load,
            core=core,
            source=source.astype(np.int32),
            target=target.astype(np.int32),
            traffic=np.bincount(row, units.traffic[outside], len(pairs)).astype(np.float64),
            tuples=np.bincount(row, units.tuples[outside], len(pairs)).astype(np.float64),
            apart=group[units.apart],
            memory=np.bincount(group, units.memory).astype(np.float64)
            if len(units.memory)
            else units.memory,
        )
    )


def contracted(units: Units, cut: float) -> tuple[Units, Ints] | None:
    """Merge units whose stream alone would load any link to the cut; None if that is impossible.

    Every placement with all loads below the cut keeps such units together, so none is lost. Streams
    add up by merging, which may make further ones too heavy.
    """
    group = np.arange(units.n_units, dtype=np.int32)
    quickest = units.quickest
    while True:
        heavy = units.tuples > 0
        sent, tuples = units.traffic[heavy], units.tuples[heavy]
        heavy[heavy] = link_loads(sent, tuples, quickest, units.platform.gap) >= cut
        if not heavy.any():
            break
        ends = zip(units.source[heavy].tolist(), units.target[heavy].tolist(), strict=True)
        merging = joined(units.n_units, ends)
        units, group = merged(units, merging), merging[group]
    alone = (units.apart[:, 0] != units.apart[:, 1]).all()
    open_to = (units.load < cut) & (units.core < cut)
    if len(units.memory):
        open_to &= units.memory[:, None] <= with_slack(units.room)
    return (units, group) if alone and open_to.any(axis=1).all() else None


def _linked(units: Units) -> Units:
    """Add the lists of streams and of rivals around every unit."""
    n = units.n_units
    start, ends = _core.group_by(np.concatenate((units.source, units.target)), n)
    rival_start, rivals = rival_columns(units.apart, n)
    return units._replace(
        start=start,
        around=ends % np.int32(max(1, len(units.source))),
        rival_start=rival_start.astype(np.int32),
        rivals=rivals.astype(np.int32),
    )
