"""The bulk-synchronous contrast: rounds of computing, a barrier, all transfers, a barrier."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamsim.instance import writable
from streamsim.jit import inlined_kernel, kernel
from streamsim.passes.compiled import Pass
from streamsim.topology import group_by

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


def synchronous_makespans(one: Pass, placements: ArrayLike) -> Floats:
    """Makespan in seconds of one pass in lock-step, under each placement, shape [B].

    In a round every device runs what it can without anything that is still to be sent: operators
    in topological order, each on the core that is free first. When all are done, everything that
    must go elsewhere is sent: one transfer at a time on every ordered pair of devices, each output
    once to every device that needs it, and no network card passes more than it can. When the last
    has arrived, the next round begins. Release times, priorities and noise do not count.

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
    >>> one = compile_pass(instance)
    >>> makespans(one, [[0, 1, 0]]).round(6), synchronous_makespans(one, [[0, 1, 0]]).round(6)
    (array([0.01]), array([0.016]))
    """
    return _all(one, writable(placements))


@kernel
def _all(one: Pass, placements: Ints) -> Floats:
    n, d = len(one.operators), len(one.devices)
    cores = 1
    for a in range(d):
        cores = max(cores, one.devices[a].cores)
    core_free, done, sent = np.empty((d, cores)), np.empty(n), np.empty(d * d + 2 * d)
    rounds, along = np.empty(n, np.int32), np.empty(n, np.int32)
    out = np.empty(len(placements))
    for i in range(len(placements)):
        place = placements[i]
        last = _rounds(one, place, rounds)
        for k in range(n):
            along[k] = rounds[one.order[k]]
        first, by_round = group_by(along, last + 1)
        now = 0.0
        for k in range(last + 1):
            members = by_round[first[k] : first[k + 1]]
            now = _compute(one, place, rounds, members, now, core_free, done)
            now += _communicate(one, place, members, sent)
        out[i] = now
    return out


@inlined_kernel
def _rounds(one: Pass, place: Ints, rounds: Ints) -> int:
    """Round of every operator: transfers in a row that it has to wait for; the last round."""
    last = 0
    for v in range(len(rounds)):
        rounds[v] = 0
    for e in range(len(one.streams)):
        u, v = one.streams[e].source, one.streams[e].target
        rounds[v] = max(rounds[v], rounds[u] + (1 if place[u] != place[v] else 0))
        last = max(last, rounds[v])
    return last


@inlined_kernel
def _compute(
    one: Pass,
    place: Ints,
    rounds: Ints,
    members: Ints,
    now: float,
    core_free: Floats,
    done: Floats,
) -> float:
    """When a round is done that begins ``now``; members are positions in topological order."""
    for d in range(len(core_free)):
        for core in range(one.devices[d].cores):
            core_free[d, core] = now
    for position in members:
        done[one.order[position]] = now
    end = now
    for position in members:
        v = one.order[position]
        d = place[v]
        core = 0
        for other in range(1, one.devices[d].cores):
            if core_free[d, other] < core_free[d, core]:
                core = other
        done[v] = max(core_free[d, core], done[v]) + one.work[v, one.devices[d].type]
        core_free[d, core] = done[v]
        end = max(end, done[v])
        for e in range(one.operators[v].out_start, one.operators[v].out_end):
            w = one.streams[e].target
            if rounds[w] == rounds[v]:
                done[w] = max(done[w], done[v])
    return end


@inlined_kernel
def _communicate(one: Pass, place: Ints, members: Ints, sent: Floats) -> float:
    """Seconds until all that these operators have to send has arrived."""
    d = len(one.devices)
    for r in range(len(sent)):
        sent[r] = 0.0
    longest, besides = 0.0, 0.0
    for position in members:
        v = one.order[position]
        a = place[v]
        for e in range(one.operators[v].out_start, one.operators[v].out_end):
            stream = one.streams[e]
            b = place[stream.target]
            if a == b or _is_sent_before(one, place, e):
                continue
            besides = max(besides, one.links[a, b].latency + stream.tuples * 2.0 * one.overhead)
            sent[a * d + b] += stream.size * one.links[a, b].link + stream.tuples * one.gap
            sent[d * d + a] += stream.size * one.devices[a].egress
            sent[d * d + d + b] += stream.size * one.devices[b].ingress
    for r in range(len(sent)):
        longest = max(longest, sent[r])
    return longest + besides


@inlined_kernel
def _is_sent_before(one: Pass, place: Ints, e: int) -> bool:
    """Whether an earlier stream takes the same output to the same device."""
    i = one.streams[e].first
    while i != e:
        if place[one.streams[i].target] == place[one.streams[e].target]:
            return True
        i = one.streams[i].more
    return False
