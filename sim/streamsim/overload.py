"""What each source of an overloaded job gets: demands filled forward, acceptance passed backward.

All amounts are shares of full rates. In a round, every operator wants what arrives at it, as far as
its outputs accept it. Devices fill the wants of their operators with CPU, links and network cards
those of their streams with time: all get the same level, or less if they want less. Backward, an
operator that cannot take in everything accepts its inputs, which wait in queues of equal times,
up to one level. Rounds move half-way from what they assumed to what they found.

With several kinds of resources such fixed points need not be unique, so the rounds are the
definition.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from streamsim.arrays import Floats, Ints
from streamsim.instance import Instance, writable
from streamsim.jit import inlined_kernel, kernel
from streamsim.loads import limits_subtasks, stream_handling, stream_loads
from streamsim.sources import at_shares
from streamsim.steady import bottleneck, resource_loads, throughput_of

#: Rounds, and the largest change in a round after which the rest would change nothing.
MOST_ROUNDS, STEADY = 50, 1e-6
#: Steps to find a level, and the share by which it may miss.
MOST_STEPS, TIE = 64, 1e-12


class Needs(NamedTuple):
    """What operators and streams need at full rate, and where; I items, resources by kind."""

    cpu: Floats  # [N] share of its device, handling of its remote streams included
    device: Ints  # [N]
    room: Floats  # [D] share of each device beside constant loads
    most: Floats  # [N] largest share by which a subtask uses its core
    wire: Floats  # [3, M] share of its link, of the sender's and the receiver's network card
    on: Ints  # [3, M] the link, by the pair of devices in use, and the two cards
    wires: Ints  # [3] numbers of links and cards


def overloaded_shares(instance: Instance, placement: ArrayLike) -> Floats:
    """Share of its rate that each source gets if all sources offer theirs, [S]."""
    place = writable(placement)
    alike = np.full(len(instance.sources), throughput_of(instance, place))
    if len(alike) < 2 or alike[0] == 1:
        return alike
    shares = _rounds(instance, _needs(instance, place), MOST_ROUNDS, STEADY)
    worst = bottleneck(resource_loads(at_shares(instance, shares), place)).load
    return shares / max(1.0, worst)


def _needs(instance: Instance, place: Ints) -> Needs:
    at, d = (np.arange(len(place)), instance.device_type[place]), instance.n_devices
    cpu, source, target = instance.load[at], place[instance.source], place[instance.target]
    pairs, link = np.unique(source.astype(np.int64) * d + target, return_inverse=True)
    wire = np.zeros((3, len(source)))
    _add_streams(instance, place, cpu, wire)
    constant = instance.constant[at] if len(instance.constant) else np.zeros(len(place))
    most = np.ones(len(place))
    if limits_subtasks(instance):
        most = 1 / np.maximum(1.0, instance.core_pressure[at])
    return Needs(
        cpu=cpu,
        device=place,
        room=np.maximum(0.0, 1.0 - np.bincount(place, constant, d)),
        most=most,
        wire=wire,
        on=np.stack((link, source, target)).astype(np.int32),
        wires=np.array([len(pairs), d, d], np.int32),
    )


@kernel
def _add_streams(instance: Instance, place: Ints, cpu: Floats, wire: Floats) -> None:
    """Write the loads of wires by remote streams; add their handling to the CPU of operators."""
    for e in range(len(instance.source)):
        u, v = instance.source[e], instance.target[e]
        a, b = place[u], place[v]
        if a != b:
            cpu[u] += stream_handling(instance, e, a, 1.0)
            cpu[v] += stream_handling(instance, e, b, 1.0)
            wire[0, e], wire[1, e], wire[2, e] = stream_loads(instance, e, a, b)


@kernel
def _rounds(instance: Instance, needs: Needs, most: int, steady: float) -> Floats:
    """Shares of the sources [S] after the rounds."""
    n, m = len(instance.rate), len(instance.source)
    cpu, wires = np.ones(n), np.ones(m)  # shares that CPU and wires would let through
    accepted, own = np.ones(m), np.ones(n)  # shares of streams, and of what sources generate
    offered, free, wanted = np.ones(m), np.ones(n), np.ones(n)
    level, left = np.ones(len(needs.room)), np.ones(n)
    for _ in range(most):
        change = 0.0
        _forward(instance, needs, cpu, wires, accepted, offered, wanted, free)
        _fill(needs.device, wanted * needs.cpu, needs.room, level)
        for v in range(n):
            share = level[needs.device[v]]
            limit = share / needs.cpu[v] if needs.cpu[v] > share else 1.0
            change = max(change, abs(limit - cpu[v]))
            cpu[v] = (cpu[v] + limit) / 2
        left = np.ones(m)
        for kind in range(3):
            room, full = np.ones(needs.wires[kind]), np.ones(needs.wires[kind])
            demand = np.minimum(offered, accepted) * needs.wire[kind]
            _fill(needs.on[kind], demand, room, full)
            for e in range(m):
                share = full[needs.on[kind, e]]
                if needs.wire[kind, e] > share:
                    left[e] = min(left[e], share / needs.wire[kind, e])
        for e in range(m):
            change = max(change, abs(left[e] - wires[e]))
            wires[e] = (wires[e] + left[e]) / 2
        change = max(change, _backward(instance, needs, cpu, wires, accepted, own, offered))
        if change < steady:
            break
    _forward(instance, needs, cpu, wires, accepted, offered, wanted, free)
    shares = np.ones(len(instance.sources))
    for k in range(len(shares)):
        v = instance.sources[k]
        shares[k] = min(own[v], free[v])
    return shares


@kernel
def _forward(
    instance: Instance,
    needs: Needs,
    cpu: Floats,
    wires: Floats,
    accepted: Floats,
    offered: Floats,
    wanted: Floats,
    free: Floats,
) -> None:
    """Write what each stream would carry if all of it was accepted, and what operators want.

    ``free`` is what an operator takes in at most by its CPU and by all of its outputs.
    """
    for v in instance.order:
        supply = _supply(instance, v, np.minimum(offered, wires))
        least, second, first = 1.0, 1.0, -1
        for e in range(instance.out_start[v], instance.out_end[v]):
            limit = min(accepted[e], wires[e])
            if limit < least:
                least, second, first = limit, least, e
            else:
                second = min(second, limit)
        wanted[v] = min(min(supply, needs.most[v]), least)
        free[v] = min(min(cpu[v], needs.most[v]), least)
        through = min(min(supply, needs.most[v]), cpu[v])
        for e in range(instance.out_start[v], instance.out_end[v]):
            offered[e] = min(through, second if e == first else least)


@inlined_kernel
def _supply(instance: Instance, v: int, brought: Floats) -> float:
    """Share of its full input that could arrive at an operator; of a join the least."""
    supply, ports = 1.0, instance.port_start[v + 1] - instance.port_start[v]
    if instance.input_rate[v] <= 0:
        return supply
    for port in range(instance.port_start[v], instance.port_start[v + 1]):
        arriving = instance.rate[v] / ports
        for i in range(instance.in_start[v], instance.in_start[v + 1]):
            e = instance.in_streams[i]
            if instance.port[e] == port:
                arriving += instance.intake[e] * brought[e]
        supply = min(supply, arriving * ports / instance.input_rate[v])
    return supply


@kernel
def _backward(
    instance: Instance,
    needs: Needs,
    cpu: Floats,
    wires: Floats,
    accepted: Floats,
    own: Floats,
    offered: Floats,
) -> float:
    """Pass on what operators accept, from the sinks to the sources; return the largest change."""
    change = 0.0
    for i in range(len(instance.order) - 1, -1, -1):
        v = instance.order[i]
        if instance.input_rate[v] <= 0:
            continue
        most = min(cpu[v], needs.most[v])
        for e in range(instance.out_start[v], instance.out_end[v]):
            most = min(most, min(accepted[e], wires[e]))
        ports = instance.port_start[v + 1] - instance.port_start[v]
        for port in range(instance.port_start[v], instance.port_start[v + 1]):
            generated = instance.rate[v] / ports
            taken = most * instance.input_rate[v] / ports
            level = _accepted_level(instance, v, port, generated, taken, offered, wires)
            for j in range(instance.in_start[v], instance.in_start[v + 1]):
                e = instance.in_streams[j]
                if instance.port[e] == port:
                    change = max(change, abs(level - accepted[e]))
                    accepted[e] = (accepted[e] + level) / 2
            if generated > 0:
                change = max(change, abs(level - own[v]))
                own[v] = (own[v] + level) / 2
    return change


@inlined_kernel
def _accepted_level(
    instance: Instance,
    v: int,
    port: int,
    generated: float,
    taken: float,
    offered: Floats,
    wires: Floats,
) -> float:
    """Level up to which inputs of a port are accepted that together are what is taken in."""
    size = generated
    for j in range(instance.in_start[v], instance.in_start[v + 1]):
        if instance.port[instance.in_streams[j]] == port:
            size += instance.intake[instance.in_streams[j]]
    if size <= 0:
        return 1.0
    level, low = taken / size, 0.0
    for _ in range(MOST_STEPS):
        total, rest = generated * min(1.0, level), generated if level < 1 else 0.0
        for j in range(instance.in_start[v], instance.in_start[v + 1]):
            e = instance.in_streams[j]
            if instance.port[e] == port:
                brought = min(offered[e], wires[e])
                total += instance.intake[e] * min(brought, level)
                rest += instance.intake[e] if brought > level else 0.0
        low = taken - total
        if low <= TIE * taken or rest <= 0.0:
            break
        level += low / rest
    return 1.0 if low > TIE * taken else min(1.0, level)


@kernel
def _fill(of: Ints, wanted: Floats, room: Floats, level: Floats) -> None:
    """Write the level up to which each resource fills what items want of it; infinite if all."""
    left, count = room.copy(), np.zeros(len(room))
    waiting = np.ones(len(of), np.bool_)
    for i in range(len(of)):
        if wanted[i] > 0:
            count[of[i]] += 1
        else:
            waiting[i] = False
    changed = True
    while changed:
        changed = False
        for r in range(len(room)):
            level[r] = left[r] / count[r] if count[r] > 0 else np.inf
        for i in range(len(of)):
            if waiting[i] and wanted[i] <= level[of[i]]:
                waiting[i] = False
                left[of[i]] -= wanted[i]
                count[of[i]] -= 1
                changed = True
