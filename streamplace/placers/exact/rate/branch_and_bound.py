"""Depth-first branch and bound over placements, compiled.

At every node the unit with the fewest feasible devices is placed next; a device is feasible while
no load reaches its limit (forward checking), and of equal empty devices only the first is tried. A
node is pruned if some unit has no feasible device, or if the devices cannot carry the remaining
work.

There is one load vector per depth, in the order of `streamsim.equation`. A vector is always
computed from the one above it, never undone, so that rounding errors do not accumulate over
millions of nodes.
"""

from typing import NamedTuple

import numpy as np
from streamsim.equation import (
    egress_at,
    ingress_at,
    link_at,
    link_load,
    n_resources,
    nic_load,
)
from streamsim.jit import borrowing_kernel

from streamplace.model.arrays import ROUNDING, Floats, Ints, Longs
from streamplace.model.devices import SLACK
from streamplace.placers.exact.rate.bounds import Limits, Patterns
from streamplace.placers.exact.rate.units import Units, unit_handling

EXHAUSTED, IMPROVED, PAUSED = 0, 1, 2
DEPTH, NODES = 0, 1


class Search(NamedTuple):
    """A search that can be paused; depth t has placed t units."""

    place: Ints  # [U] device or -1
    loads: Floats  # [U + 1, R]
    unit: Ints  # [U] unit placed at each depth
    options: Ints  # [U, D] devices to try at each depth, the best last
    left: Ints  # [U] number of them still to try
    clock: Longs  # depth (-1 before the first node), nodes
    lead: Ints  # [D] representative of a device: itself, or the first equal empty device
    reach: Floats  # [D] work that could still go to a device
    held: Longs  # [D] units on each device, in the patterns' words
    most: Floats  # [D] largest work of the patterns still open to a device
    grows: Longs  # [D] fields of the kinds of which a device may still receive units
    beside: Floats  # [4, D] bytes/s out, in, tuples/s out, in between a unit and each device


def new_search(units: Units) -> Search:
    """Build a search at its root."""
    n, d = units.load.shape
    return Search(
        place=np.full(n, -1, np.int32),
        loads=np.zeros((n + 1, n_resources(d))),
        unit=np.zeros(n, np.int32),
        options=np.zeros((n, d), np.int32),
        left=np.zeros(n, np.int32),
        clock=np.array([-1, 0]),
        lead=np.zeros(d, np.int32),
        reach=np.zeros(d),
        held=np.zeros(d, np.int64),
        most=np.zeros(d),
        grows=np.zeros(d, np.int64),
        beside=np.zeros((4, d)),
    )


@borrowing_kernel
def run(units: Units, limits: Limits, search: Search, nodes: int) -> int:
    """Continue until a placement within the limits is found, none remains, or ``nodes`` are done.

    The placement found is in ``search.place``.
    """
    clock = search.clock
    stop = clock[NODES] + nodes
    if clock[DEPTH] < 0:
        clock[DEPTH] = 0
        _branch(units, limits, search, 0)
    while True:
        t = clock[DEPTH]
        u = search.unit[t]
        search.place[u] = -1
        if search.left[t] == 0:
            if t == 0:
                return EXHAUSTED
            clock[DEPTH] = t - 1
            continue
        if clock[NODES] >= stop:
            return PAUSED
        clock[NODES] += 1
        search.left[t] -= 1
        _descend(units, search, t, u, search.options[t, search.left[t]])
        if t + 1 == len(search.place):
            return IMPROVED
        clock[DEPTH] = t + 1
        _branch(units, limits, search, t + 1)


@borrowing_kernel
def _descend(units: Units, search: Search, t: int, u: int, d: int) -> None:
    """Place the unit of depth t on device d."""
    loads = search.loads[t + 1]
    for r in range(len(loads)):
        loads[r] = search.loads[t, r]
    _gather(units, search, u)
    n = len(units.classes)
    out, into = search.beside[0], search.beside[1]
    tuples_out, tuples_in = search.beside[2], search.beside[3]
    loads[d] += units.load[u, d]
    for b in range(n):
        if b == d:
            continue
        handled = tuples_out[b] + tuples_in[b]
        size = out[b] + into[b]
        loads[d] += unit_handling(units, handled, size, d)
        loads[b] += unit_handling(units, handled, size, b)
        wire, gap = units.seconds_per_byte, units.gap
        loads[link_at(n, d, b)] += link_load(out[b], tuples_out[b], wire[d, b], gap)
        loads[link_at(n, b, d)] += link_load(into[b], tuples_in[b], wire[b, d], gap)
        loads[egress_at(n, d)] += nic_load(out[b], units.egress[d])
        loads[egress_at(n, b)] += nic_load(into[b], units.egress[b])
        loads[ingress_at(n, b)] += nic_load(out[b], units.ingress[b])
        loads[ingress_at(n, d)] += nic_load(into[b], units.ingress[d])
    search.place[u] = d


@borrowing_kernel
def _branch(units: Units, limits: Limits, search: Search, t: int) -> None:
    """Choose the unit with the fewest feasible devices and sort these; none to prune the node."""
    n, n_devices = units.load.shape
    _find_leads(units, search)
    search.reach[:] = 0.0
    chosen, fewest, rank, need = -1, n_devices + 1, 0.0, 0.0
    search.left[t] = 0
    search.unit[t] = _first_free(search)
    if not _match(limits.patterns, search, ROUNDING * limits.cut):
        return
    for u in range(n):
        if search.place[u] >= 0:
            continue
        need += limits.work[u]
        _gather(units, search, u)
        count = 0
        for d in range(n_devices):
            if search.lead[d] == d and _fits(units, limits, search, t, u, d):
                count += 1
                search.reach[d] += limits.work[u]
        if count < fewest or (count == fewest and limits.rank[u] > rank):
            chosen, fewest, rank = u, count, limits.rank[u]
        if count == 0:
            break
    search.unit[t] = chosen
    if fewest > 0 and _supply(limits, search, t) >= need - ROUNDING * limits.cut:
        _order(units, limits, search, t, chosen)


@borrowing_kernel
def _first_free(search: Search) -> int:
    """Return the first unit that is not placed."""
    u = 0
    while search.place[u] >= 0:
        u += 1
    return u


@borrowing_kernel
def _match(patterns: Patterns, search: Search, margin: float) -> bool:
    """Find the patterns still open to every device.

    Return whether they can hold all the work, less a margin for rounding.
    """
    held, lead, guards = search.held, search.lead, patterns.guards
    if len(patterns.word) == 0:
        return True
    held[:] = 0
    free = 0
    for u in range(len(search.place)):
        if search.place[u] >= 0:
            held[search.place[u]] += patterns.single[u]
        else:
            free += patterns.single[u]
    whole = 0.0
    for d in range(len(lead)):
        if lead[d] == d:
            search.most[d] = -1.0
            search.grows[d] = 0
            least, room = held[d], (held[d] + free) | guards
            for p in range(len(patterns.word)):
                word = patterns.word[p]
                if ((word | guards) - least) & (room - word) & guards == guards:
                    search.grows[d] |= word - least
                    search.most[d] = max(search.most[d], patterns.work[p])
            if search.most[d] < 0:
                return False
        whole += search.most[lead[d]]
    return whole >= patterns.total - margin


@borrowing_kernel
def _supply(limits: Limits, search: Search, t: int) -> float:
    """Work that the devices can still receive."""
    supply = 0.0
    for d in range(len(limits.full)):
        room = (limits.full[d] - search.loads[t, d]) * limits.power[d]
        supply += min(room, search.reach[search.lead[d]])
    return supply


@borrowing_kernel
def _find_leads(units: Units, search: Search) -> None:
    """Choose representatives: every used device itself, the first empty device of every class."""
    lead, classes = search.lead, units.classes
    lead[:] = -1
    for u in range(len(search.place)):
        if search.place[u] >= 0:
            lead[search.place[u]] = search.place[u]
    for d in range(len(lead)):
        if lead[d] >= 0:
            continue
        lead[d] = d
        for a in range(d + 1, len(lead)):
            if lead[a] < 0 and classes[a] == classes[d]:
                lead[a] = d


@borrowing_kernel
def _gather(units: Units, search: Search, u: int) -> None:
    """Sum the streams between unit u and the units on each device."""
    beside = search.beside
    beside[:] = 0.0
    for i in range(units.start[u], units.start[u + 1]):
        e = units.around[i]
        leaves = units.source[e] == u
        d = search.place[units.target[e] if leaves else units.source[e]]
        if d >= 0:
            way = 0 if leaves else 1
            beside[way, d] += units.traffic[e]
            beside[2 + way, d] += units.tuples[e]


@borrowing_kernel
def _fits(units: Units, limits: Limits, search: Search, t: int, u: int, d: int) -> bool:
    """Whether unit u on device d keeps every load within the limits, after `_gather`."""
    loads, cut, full = search.loads[t], limits.cut, limits.full
    if units.core[u, d] >= cut or loads[d] + units.load[u, d] >= full[d]:
        return False
    if len(limits.patterns.word) and search.grows[d] & limits.patterns.field[u] == 0:
        return False
    n = len(full)
    out, into = search.beside[0], search.beside[1]
    tuples_out, tuples_in = search.beside[2], search.beside[3]
    sent, taken, handled = 0.0, 0.0, 0.0
    for b in range(n):
        if b == d or tuples_out[b] + tuples_in[b] + out[b] + into[b] == 0:
            continue
        link = link_load(out[b], tuples_out[b], units.seconds_per_byte[d, b], units.gap)
        back = link_load(into[b], tuples_in[b], units.seconds_per_byte[b, d], units.gap)
        if loads[link_at(n, d, b)] + link >= cut or loads[link_at(n, b, d)] + back >= cut:
            return False
        if loads[egress_at(n, b)] + nic_load(into[b], units.egress[b]) >= cut:
            return False
        if loads[ingress_at(n, b)] + nic_load(out[b], units.ingress[b]) >= cut:
            return False
        both = tuples_out[b] + tuples_in[b]
        if loads[b] + unit_handling(units, both, out[b] + into[b], b) >= full[b]:
            return False
        sent += out[b]
        taken += into[b]
        handled += both
    return (
        loads[d] + units.load[u, d] + unit_handling(units, handled, sent + taken, d) < full[d]
        and loads[egress_at(n, d)] + nic_load(sent, units.egress[d]) < cut
        and loads[ingress_at(n, d)] + nic_load(taken, units.ingress[d]) < cut
        and not _meets_rival(units, search, u, d)
        and has_memory(units, search.place, u, d)
    )


@borrowing_kernel
def _meets_rival(units: Units, search: Search, u: int, d: int) -> bool:
    """Whether a rival of unit u is on device d."""
    for i in range(units.rival_start[u], units.rival_start[u + 1]):
        if search.place[units.rivals[i]] == d:
            return True
    return False


@borrowing_kernel
def has_memory(units: Units, place: Ints, u: int, d: int) -> bool:
    """Whether unit u fits into the memory of device d, beside the other units there."""
    if len(units.memory) == 0:
        return True
    taken = units.memory[u]
    for v in range(len(place)):
        if place[v] == d and v != u:
            taken += units.memory[v]
    return taken <= units.room[d] * (1 + SLACK)


@borrowing_kernel
def _order(units: Units, limits: Limits, search: Search, t: int, u: int) -> None:
    """List the feasible devices of unit u by falling burden, so that the best is last."""
    _gather(units, search, u)
    options, beside = search.options[t], search.beside
    count = 0
    for d in range(len(limits.full)):
        if search.lead[d] != d or not _fits(units, limits, search, t, u, d):
            continue
        burden = _burden(units, limits, search, t, u, d)
        at = count
        while at > 0 and _burden(units, limits, search, t, u, options[at - 1]) < burden:
            options[at] = options[at - 1]
            at -= 1
        options[at] = d
        count += 1
    search.left[t] = count
    beside[:] = 0.0


@borrowing_kernel
def _burden(units: Units, limits: Limits, search: Search, t: int, u: int, d: int) -> float:
    """Load of the device with unit u on it, less the load that this saves on links."""
    spared = search.beside[0, d] + search.beside[1, d]
    return search.loads[t, d] + units.load[u, d] - spared * limits.wire
