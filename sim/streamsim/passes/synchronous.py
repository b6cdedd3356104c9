"""Bulk-synchronous passes, for comparison: rounds of computing, barrier, transfers, barrier."""

import numpy as np
from numpy.typing import ArrayLike

from streamsim.arrays import Floats, Ints
from streamsim.equation import link_load
from streamsim.instance import writable
from streamsim.jit import inlined_kernel, kernel
from streamsim.passes.compiled import Pass
from streamsim.passes.sending import unoccupied_seconds
from streamsim.topology import group_by


def synchronous_makespans(one_pass: Pass, placements: ArrayLike) -> Floats:
    """Makespan in seconds of one pass in lock-step, under each placement, shape [B].

    In a round every device runs all operators that wait for no transfer, in topological order, each
    on the core that is free first. When all devices are done, all outputs for other devices are
    sent: one transfer at a time on every ordered pair of devices, each output once to every device
    that needs it, within the limits of network cards. When the last has arrived, the next round
    begins. Release times, priorities and noise are ignored.

    Parameters
    ----------
    placements
        Device of every operator, shape [B, N].

    Examples
    --------
    >>> from streamsim import build_instance
    >>> from streamsim.passes import compile_pass, makespans, synchronous_makespans
    >>> instance = build_instance(rate=[100, 0, 0], seconds=[[1e-3], [1e-3], [9e-3]],
    ...                           source=[0, 0], target=[1, 2], payload=[5000, 0],
    ...                           device_type=[0, 0], seconds_per_byte=[[0, 1e-6], [1e-6, 0]])
    >>> one_pass = compile_pass(instance)
    >>> makespans(one_pass, [[0, 1, 0]]).round(6)
    array([0.01])
    >>> synchronous_makespans(one_pass, [[0, 1, 0]]).round(6)
    array([0.016])
    """
    return _all(one_pass, writable(placements))


@kernel
def _all(one_pass: Pass, placements: Ints) -> Floats:
    n, d = len(one_pass.operators), len(one_pass.devices)
    cores = 1
    for a in range(d):
        cores = max(cores, one_pass.devices[a].cores)
    core_free, done, sent = np.empty((d, cores)), np.empty(n), np.empty(d * d + 2 * d)
    rounds, along = np.empty(n, np.int32), np.empty(n, np.int32)
    out = np.empty(len(placements))
    for i in range(len(placements)):
        place = placements[i]
        last = _rounds(one_pass, place, rounds)
        for k in range(n):
            along[k] = rounds[one_pass.order[k]]
        first, by_round = group_by(along, last + 1)
        now = 0.0
        for k in range(last + 1):
            members = by_round[first[k] : first[k + 1]]
            now = _compute(one_pass, place, rounds, members, now, core_free, done)
            now += _communicate(one_pass, place, members, sent)
        out[i] = now
    return out


@inlined_kernel
def _rounds(one_pass: Pass, place: Ints, rounds: Ints) -> int:
    """Compute the round of every operator, the most transfers on a path to it; return the last."""
    last = 0
    for v in range(len(rounds)):
        rounds[v] = 0
    for e in range(len(one_pass.streams)):
        u, v = one_pass.streams[e].source, one_pass.streams[e].target
        rounds[v] = max(rounds[v], rounds[u] + (1 if place[u] != place[v] else 0))
        last = max(last, rounds[v])
    return last


@inlined_kernel
def _compute(
    one_pass: Pass,
    place: Ints,
    rounds: Ints,
    members: Ints,
    now: float,
    core_free: Floats,
    done: Floats,
) -> float:
    """Return the end of a round that begins ``now``; members are positions in the order."""
    for d in range(len(core_free)):
        for core in range(one_pass.devices[d].cores):
            core_free[d, core] = now
    for position in members:
        done[one_pass.order[position]] = now
    end = now
    for position in members:
        v = one_pass.order[position]
        d = place[v]
        core = 0
        for other in range(1, one_pass.devices[d].cores):
            if core_free[d, other] < core_free[d, core]:
                core = other
        done[v] = max(core_free[d, core], done[v]) + one_pass.work[v, one_pass.devices[d].type]
        core_free[d, core] = done[v]
        end = max(end, done[v])
        for e in range(one_pass.operators[v].out_start, one_pass.operators[v].out_end):
            w = one_pass.streams[e].target
            if rounds[w] == rounds[v]:
                done[w] = max(done[w], done[v])
    return end


@inlined_kernel
def _communicate(one_pass: Pass, place: Ints, members: Ints, sent: Floats) -> float:
    """Seconds until all outputs of these operators have arrived."""
    d = len(one_pass.devices)
    for r in range(len(sent)):
        sent[r] = 0.0
    longest = 0.0
    for position in members:
        v = one_pass.order[position]
        a = place[v]
        for e in range(one_pass.operators[v].out_start, one_pass.operators[v].out_end):
            stream = one_pass.streams[e]
            b = place[stream.target]
            if a == b or _is_sent_before(one_pass, place, e):
                continue
            link, out, into = a * d + b, d * d + a, d * d + d + b
            wire = one_pass.links[a, b]
            sent[link] += link_load(stream.size, stream.tuples, wire.link, one_pass.gap)
            sent[out] += stream.size * one_pass.devices[a].egress
            sent[into] += stream.size * one_pass.devices[b].ingress
            leaves = max(sent[link], max(sent[out], sent[into]))
            longest = max(longest, leaves + unoccupied_seconds(one_pass, wire.latency, e))
    return longest


@inlined_kernel
def _is_sent_before(one_pass: Pass, place: Ints, e: int) -> bool:
    """Whether an earlier stream carries the same output to the same device."""
    i = one_pass.streams[e].first
    while i != e:
        if place[one_pass.streams[i].target] == place[one_pass.streams[e].target]:
            return True
        i = one_pass.streams[i].more
    return False
