"""Max–min fair rates of several sources by progressive filling.

All sources rise together; when a resource is full, the sources that use it stop and the others rise
further. Sources whose tuples meet in a join form a group and stop together. A round costs one pass
forward and one pass backward over the streams, so no matrix of sources × operators is needed.
"""

from typing import NamedTuple

import numpy as np

from streamsim.arrays import Bools, Floats, Ints
from streamsim.equation import OVERFULL, egress_at, ingress_at, link_at, n_resources
from streamsim.instance import Instance
from streamsim.jit import borrowing_kernel, inlined_kernel, kernel
from streamsim.loads import (
    add_operator,
    add_stream,
    core_constant,
    core_load,
    n_constants,
    stream_handling,
    stream_loads,
)

#: Relative tolerance within which resources fill up at the same level.
TIE = 1e-12


class Scratch(NamedTuple):
    """Buffers of `fill`, which allocates nothing; S sources, N operators, R resources."""

    rates: Floats  # [S] result: fraction of its nominal rate that each source reaches
    stopped: Bools  # [S]
    ending: Bools  # [groups] whether a group stops in this round
    moving: Floats  # [N] fraction of an operator's full input that comes from rising sources
    frozen: Floats  # [N] the same from stopped sources
    rising: Floats  # [R] load at full rate due to rising sources
    used: Floats  # [R] load due to stopped sources, at the level where they stopped
    full: Bools  # [R]
    touched: Bools  # [N] operators whose flow reaches a full resource
    constants: Floats  # [D] constant loads of the devices; [0] if there are none


def scratch(instance: Instance) -> Scratch:
    """Allocate buffers for filling; those by operator are empty for one group, which needs none."""
    s = len(instance.sources)
    n = len(instance.rate) if instance.n_groups > 1 else 0
    r = n_resources(len(instance.device_type))
    return Scratch(
        np.zeros(s),
        np.zeros(s, np.bool_),
        np.zeros(instance.n_groups, np.bool_),
        np.zeros(n),
        np.zeros(n),
        np.zeros(r),
        np.zeros(r),
        np.zeros(r, np.bool_),
        np.zeros(n, np.bool_),
        np.zeros(n_constants(instance)),
    )


@kernel
def flow_shares(instance: Instance) -> Floats:
    """Fraction of every operator's full input that comes from each source, shape [S, N]."""
    shares = np.zeros((len(instance.sources), len(instance.rate)))
    for k in range(len(shares)):
        flow = shares[k]
        flow[instance.sources[k]] = instance.rate[instance.sources[k]]
        for v in instance.order:
            if instance.input_rate[v] > 0:
                flow[v] /= instance.input_rate[v]
            for e in range(instance.out_start[v], instance.out_end[v]):
                flow[instance.target[e]] += instance.intake[e] * flow[v]
    return shares


@kernel
def work_of_sources(instance: Instance, work: Floats) -> Floats:
    """Part of the work of all operators [N] at full rate that each source causes, [S].

    Downstream work is attributed to operators backward along the streams, so that no matrix of
    sources × operators is needed.
    """
    caused = np.zeros(len(work))
    for i in range(len(work) - 1, -1, -1):
        v = instance.order[i]
        caused[v] = work[v] if instance.input_rate[v] > 0 else 0.0
        for e in range(instance.out_start[v], instance.out_end[v]):
            target = instance.target[e]
            if instance.input_rate[target] > 0:
                caused[v] += instance.intake[e] / instance.input_rate[target] * caused[target]
    parts = np.zeros(len(instance.sources))
    for k in range(len(parts)):
        v = instance.sources[k]
        parts[k] = instance.rate[v] / instance.input_rate[v] * caused[v]
    return parts


@borrowing_kernel
def fill(instance: Instance, placement: Ints, per_core: bool, work: Scratch) -> float:
    """Relative throughput of several groups of sources; writes each one's rate to ``work.rates``.

    ``work.rising`` must hold the load of every resource at full rate, and ``work.constants`` the
    constant loads of devices; ``per_core`` says whether a single core may limit a subtask
    (`streamsim.loads.limits_subtasks`).
    """
    _begin(instance, work)
    rising = len(work.rates)
    while rising > 0:
        level = _level(instance, placement, per_core, work)
        if level < 1.0:
            _touch(instance, placement, level, per_core, work)
        stops = _freeze(instance, level, work)
        rising -= stops
        if stops == 0:  # impossible, since a rising source filled a resource; prevents a hang
            break
        if rising > 0:
            _flow(instance, placement, work)
    return _mean_rate(instance, work)


@inlined_kernel
def _begin(instance: Instance, work: Scratch) -> None:
    """Let every source rise from 0."""
    for k in range(len(work.rates)):
        work.stopped[k] = False
        work.rates[k] = 0.0
    for v in range(len(work.moving)):
        work.moving[v] = 1.0 if instance.input_rate[v] > 0 else 0.0
        work.frozen[v] = 0.0
    for r in range(len(work.used)):
        work.used[r] = 0.0
    _take_constants(work)


@inlined_kernel
def _take_constants(work: Scratch) -> None:
    """Add the constant loads to the used capacity."""
    for d in range(len(work.constants)):
        work.used[d] += work.constants[d]


@inlined_kernel
def _level(instance: Instance, placement: Ints, per_core: bool, work: Scratch) -> float:
    """Level, at most 1, at which the next resources become full; marks these."""
    level = 1.0
    for r in range(len(work.rising)):
        rising = work.rising[r]
        if rising > 0 and 1.0 - work.used[r] < level * rising:
            level = max(0.0, 1.0 - work.used[r]) / rising
    if per_core:
        for v in range(len(placement)):
            core = core_load(instance, v, placement[v])
            rising = core * work.moving[v]
            room = _core_room(instance, placement, v, work)
            if rising > 0 and room < level * rising:
                level = max(0.0, room) / rising
    if len(work.constants):
        for v in range(len(placement)):
            if _is_overfull(instance, placement, v, per_core, work):
                level = 0.0
    near = level * (1 + TIE)
    for r in range(len(work.rising)):
        room = max(0.0, 1.0 - work.used[r])
        work.full[r] = work.rising[r] > 0 and room <= near * work.rising[r]
    return level


@inlined_kernel
def _touch(
    instance: Instance, placement: Ints, level: float, per_core: bool, work: Scratch
) -> None:
    """Mark the operators whose flow reaches a full resource, from the sinks backward."""
    for i in range(len(placement) - 1, -1, -1):
        v = instance.order[i]
        work.touched[v] = work.moving[v] > 0 and (
            (work.full[placement[v]] and instance.load[v, instance.device_type[placement[v]]] > 0)
            or _is_overfull(instance, placement, v, per_core, work)
            or (per_core and _fills_core(instance, placement, v, level, work))
            or _feeds_full(instance, placement, v, work)
        )


@inlined_kernel
def _core_room(instance: Instance, placement: Ints, v: int, work: Scratch) -> float:
    """Fraction of a core free for the rising flow of a subtask of operator v."""
    a = placement[v]
    room = 1.0 - core_load(instance, v, a) * work.frozen[v]
    if len(work.constants):
        room -= core_constant(instance, v, a)
    return room


@inlined_kernel
def _is_overfull(
    instance: Instance, placement: Ints, v: int, per_core: bool, work: Scratch
) -> bool:
    """Whether constant loads exceed the device or core of a rising operator."""
    if len(work.constants) == 0 or work.moving[v] <= 0:
        return False
    a = placement[v]
    if work.constants[a] > 1.0 + OVERFULL:
        return True
    return per_core and core_constant(instance, v, a) > 1.0 + OVERFULL


@inlined_kernel
def _fills_core(instance: Instance, placement: Ints, v: int, level: float, work: Scratch) -> bool:
    """Whether a subtask of operator v fills its core at this level."""
    core = core_load(instance, v, placement[v])
    room = max(0.0, _core_room(instance, placement, v, work))
    moving: float = core * work.moving[v]
    return moving > 0 and room <= level * (1 + TIE) * moving


@inlined_kernel
def _feeds_full(instance: Instance, placement: Ints, v: int, work: Scratch) -> bool:
    """Whether a stream out of v loads a full resource or leads to a marked operator."""
    for e in range(instance.out_start[v], instance.out_end[v]):
        if instance.tuples[e] > 0:
            target = instance.target[e]
            if work.touched[target]:
                return True
            if _meets_full(instance, e, placement[v], placement[target], work.full):
                return True
    return False


@inlined_kernel
def _meets_full(instance: Instance, e: int, a: int, b: int, full: Bools) -> bool:
    """Whether stream e loads a full link, NIC or (through its overhead) device."""
    if a == b:
        return False
    d = len(instance.device_type)
    link, egress, ingress = stream_loads(instance, e, a, b)
    return (
        (full[link_at(d, a, b)] and link > 0)
        or (full[egress_at(d, a)] and egress > 0)
        or (full[ingress_at(d, b)] and ingress > 0)
        or (full[a] and stream_handling(instance, e, a, 1.0) > 0)
        or (full[b] and stream_handling(instance, e, b, 1.0) > 0)
    )


@inlined_kernel
def _freeze(instance: Instance, level: float, work: Scratch) -> int:
    """Stop the groups of sources that cannot rise further; return their number of sources."""
    for g in range(len(work.ending)):
        work.ending[g] = level >= 1.0
    for k in range(len(work.rates)):
        if work.touched[instance.sources[k]]:
            work.ending[instance.group[k]] = True
    stops = 0
    for k in range(len(work.rates)):
        if not work.stopped[k] and work.ending[instance.group[k]]:
            work.stopped[k] = True
            work.rates[k] = level
            stops += 1
    return stops


@inlined_kernel
def _flow(instance: Instance, placement: Ints, work: Scratch) -> None:
    """Split every flow and load into parts of rising and of stopped sources."""
    for r in range(len(work.rising)):
        work.rising[r] = 0.0
        work.used[r] = 0.0
    _take_constants(work)
    for v in range(len(placement)):
        work.moving[v] = 0.0
        work.frozen[v] = 0.0
    for k in range(len(work.rates)):
        v = instance.sources[k]
        if work.stopped[k]:
            work.frozen[v] = instance.rate[v] * work.rates[k]
        else:
            work.moving[v] = instance.rate[v]
    for v in instance.order:
        if instance.input_rate[v] <= 0:
            continue
        moving = work.moving[v] / instance.input_rate[v]
        frozen = work.frozen[v] / instance.input_rate[v]
        work.moving[v] = moving
        work.frozen[v] = frozen
        a = placement[v]
        add_operator(instance, work.rising, v, a, moving)
        add_operator(instance, work.used, v, a, frozen)
        for e in range(instance.out_start[v], instance.out_end[v]):
            target = instance.target[e]
            b = placement[target]
            add_stream(instance, work.rising, e, a, b, moving)
            add_stream(instance, work.used, e, a, b, frozen)
            work.moving[target] += instance.intake[e] * moving
            work.frozen[target] += instance.intake[e] * frozen


@inlined_kernel
def _mean_rate(instance: Instance, work: Scratch) -> float:
    """Σ x_s R_s / Σ R_s over the sources."""
    flowing, nominal = 0.0, 0.0
    for k in range(len(work.rates)):
        rate = instance.rate[instance.sources[k]]
        flowing += work.rates[k] * rate
        nominal += rate
    return flowing / nominal
