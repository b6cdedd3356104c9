"""Branch and bound for max–min fair rates of several groups of sources.

At the fair point of a placement, groups stop rising one after the other. An *order* says which
groups stop at each of k levels t₁ ≤ … ≤ t_k ≤ 1. With their shares W of the sources' rate, the
value is W·t. Every resource gives a row c + a·t ≤ 1 with constant loads c; as units are placed, its
terms only grow. The *region* of a node has all rates that its rows leave and whose value is above a
goal. It is a polytope with few corners, and a row that cuts off all of them cuts off the region.

Fairness: what stops a level, and lets later ones rise, is a resource that is full and has no load
of later levels. Such a resource must still be possible at every node, and the least rate at which
it can be full is a lower bound of the level, which cuts the region, too.

Depth first as in `prover`, with the same order of units and devices.
"""

from typing import NamedTuple

import numpy as np
from streamsim.equation import egress_at, ingress_at, link_at, n_resources, nic_load
from streamsim.jit import borrowing_kernel, inlined_kernel
from streamsim.loads import flow_loads, handling

from streamplace.model.arrays import ROUNDING, Bools, Floats, Ints, Longs
from streamplace.model.packing import meets_rival
from streamplace.placers.exact.prover import (
    DEPTH,
    IMPROVED,
    NODES,
    find_leads,
    first_free,
    has_memory,
    next_depth,
)
from streamplace.placers.exact.units import Units

MOST_CORNERS = 48
"""Most corners of a region; a row that would make more does not cut."""
LAST_SIDE = 1 << 60
FULL = 1 - ROUNDING
"""Least load of a full resource, but for rounding."""


class LevelLoads(NamedTuple):
    """Loads of units and streams by column: constant loads, then one column for each level.

    K columns; N operators in the order of the units, C types of devices.
    """

    units: Units  # streams, rules and devices; its loads are those of all columns together
    load: Floats  # [U, D, K] 0 where a unit may not run
    allowed: Bools  # [U, D]
    core: Floats  # [N, C, K] of the operators that may fill a core; none if cores cannot be full
    core_start: Ints  # [U + 1] the rows of unit u in `core` are core_start[u]:core_start[u + 1]
    device_type: Ints  # [D]
    traffic: Floats  # [E, K] bytes/s
    tuples: Floats  # [E, K] tuples/s
    power: Floats  # [D] work that a device does
    work: Floats  # [U, K] at most load · power on every device
    rank: Floats  # [U] which of the units with equally few devices is placed first
    wire: float  # seconds per byte of the slowest link


class Region(NamedTuple):
    """A polytope of rates by its corners, and how it is cut depth after depth."""

    corners: Floats  # [depths, MOST_CORNERS, K] a one, and the rate of every level
    on: Longs  # [depths, MOST_CORNERS] sides that each corner is on, as bits
    size: Ints  # [depths] number of corners
    over: Floats  # [MOST_CORNERS] by which a corner exceeds a row


class OrderSearch(NamedTuple):
    """A search that can be paused; depth t has placed t units."""

    place: Ints  # [U] device or -1
    loads: Floats  # [U + 1, R, K]
    region: Region  # after each of U + 1 depths
    unit: Ints  # [U] unit placed at each depth
    options: Ints  # [U, D] devices to try at each depth, the best last
    left: Ints  # [U] number of them still to try
    clock: Longs  # depth (-1 before the first node), nodes
    lead: Ints  # [D] representative of a device: itself, or the first equal empty device
    reach: Floats  # [D, K] work that could still go to a device
    beside: Floats  # [4, D, K] bytes/s out, in, tuples/s out, in between a unit and each device
    row: Floats  # [6, K] rows of resources
    could: Floats  # [D + 2, 4, K] bytes/s out, in, tuples/s out, in that could still load links


def region_within(rows: Floats) -> Region:
    """Region of rates 0 ≤ t₁ ≤ … ≤ t_k ≤ 1 within some rows [rows, 1 + k]."""
    k = rows.shape[1]
    region = _empty_region(1, k)
    for j in range(k):
        region.corners[0, j] = 1.0
        region.corners[0, j, 1 : 1 + j] = 0.0
    # Corner j is on all sides but one, that of t_j ≤ t_j+1.
    region.on[0, :k] = ((1 << k) - 1) ^ (1 << np.arange(k))
    region.size[0] = k
    for row in rows:
        cut(region, 0, row)
    return region


def _empty_region(depths: int, k: int) -> Region:
    return Region(
        corners=np.zeros((depths, MOST_CORNERS, k)),
        on=np.zeros((depths, MOST_CORNERS), np.int64),
        size=np.zeros(depths, np.int32),
        over=np.zeros(MOST_CORNERS),
    )


def new_search(flows: LevelLoads, within: Region) -> OrderSearch:
    """Build a search at its root, in a region."""
    n, d, k = flows.load.shape
    region = _empty_region(n + 1, k)
    region.corners[0], region.on[0], region.size[0] = (part[0] for part in within[:3])
    return OrderSearch(
        place=np.full(n, -1, np.int32),
        loads=np.zeros((n + 1, n_resources(d), k)),
        region=region,
        unit=np.zeros(n, np.int32),
        options=np.zeros((n, d), np.int32),
        left=np.zeros(n, np.int32),
        clock=np.array([-1, 0]),
        lead=np.zeros(d, np.int32),
        reach=np.zeros((d, k)),
        beside=np.zeros((4, d, k)),
        row=np.zeros((6, k)),
        could=np.zeros((d + 2, 4, k)),
    )


@borrowing_kernel
def run(flows: LevelLoads, search: OrderSearch, nodes: int) -> int:
    """Continue until a placement lies in the region, none remains, or ``nodes`` are done.

    The placement found, ``search.place``, may still be unfair there; another call goes on behind.
    """
    clock = search.clock
    stop = clock[NODES] + nodes
    if clock[DEPTH] < 0:
        clock[DEPTH] = 0
        _branch(flows, search, 0)
    while True:
        t = next_depth(search.place, search.unit, search.left, clock, stop)
        if t < 0:
            return t
        _descend(flows, search, t, search.unit[t], search.options[t, search.left[t]])
        if t + 1 < len(search.place):
            clock[DEPTH] = t + 1
            _branch(flows, search, t + 1)
        elif search.region.size[t + 1]:
            return IMPROVED


@inlined_kernel
def _at(row: Floats, corner: Floats) -> float:
    """Load of a resource in a corner."""
    load = 0.0
    for c in range(len(row)):
        load += row[c] * corner[c]
    return load


@borrowing_kernel
def _fits_row(region: Region, t: int, row: Floats) -> bool:
    """Whether a row leaves a corner of the region."""
    left = False
    for i in range(region.size[t]):
        left |= _at(row, region.corners[t, i]) <= 1.0 + ROUNDING
    return left


@borrowing_kernel
def cut(region: Region, t: int, row: Floats) -> None:
    """Cut off the part of the region of depth t that exceeds a row.

    New corners lie on the edges that it crosses. The ends of an edge are on as many sides in common
    as there are levels, less one; further pairs of corners for which that is true do no harm.
    """
    corners, on, over, n = region.corners[t], region.on[t], region.over, region.size[t]
    outside = 0
    for i in range(n):
        over[i] = _at(row, corners[i]) - (1.0 + ROUNDING)
        outside += over[i] > 0.0
    side = _free_side(on, n)
    if outside == 0 or side > LAST_SIDE:
        return
    size = n
    for i in range(n):
        for j in range(n):
            crossed = over[i] <= 0.0 and over[j] > 0.0
            if not crossed or _count(on[i] & on[j]) < len(row) - 2:
                continue
            if size == len(corners):
                return
            share = over[i] / (over[i] - over[j])
            for c in range(len(row)):
                corners[size, c] = corners[i, c] + share * (corners[j, c] - corners[i, c])
            on[size], over[size] = (on[i] & on[j]) | side, 0.0
            size += 1
    _keep_inside(region, t, size)


@borrowing_kernel
def _keep_inside(region: Region, t: int, size: int) -> None:
    """Drop the corners that exceed the row."""
    corners, kept = region.corners[t], 0
    for i in range(size):
        if region.over[i] <= 0.0:
            for c in range(corners.shape[1]):
                corners[kept, c] = corners[i, c]
            region.on[t, kept] = region.on[t, i]
            kept += 1
    region.size[t] = kept


@inlined_kernel
def _free_side(on: Longs, n: int) -> int:
    """Return a bit that no corner uses."""
    sides, side = 0, 1
    for i in range(n):
        sides |= on[i]
    while sides & side:
        side <<= 1
    return side


@inlined_kernel
def _count(sides: int) -> int:
    """Return the number of sides in a word."""
    count = 0
    while sides:
        sides &= sides - 1
        count += 1
    return count


@borrowing_kernel
def _descend(flows: LevelLoads, search: OrderSearch, t: int, u: int, d: int) -> None:
    """Place the unit of depth t on device d, and cut the region."""
    loads, region = search.loads[t + 1], search.region
    n, k = len(flows.device_type), flows.load.shape[2]
    for r in range(len(loads)):
        for c in range(k):
            loads[r, c] = search.loads[t, r, c]
    region.size[t + 1] = region.size[t]
    for i in range(region.size[t]):
        region.on[t + 1, i] = region.on[t, i]
        for c in range(k):
            region.corners[t + 1, i, c] = region.corners[t, i, c]
    _gather(flows, search, u)
    for c in range(k):
        loads[d, c] += flows.load[u, d, c]
    for b in range(n):
        if b != d and _any(search.beside, b):
            _send(flows, search, t + 1, d, b)
    cut(region, t + 1, loads[d])
    cut(region, t + 1, loads[egress_at(n, d)])
    cut(region, t + 1, loads[ingress_at(n, d)])
    for v in range(flows.core_start[u], flows.core_start[u + 1]):
        cut(region, t + 1, flows.core[v, flows.device_type[d]])
    search.place[u] = d


@borrowing_kernel
def _send(flows: LevelLoads, search: OrderSearch, t: int, d: int, b: int) -> None:
    """Add the gathered streams between device d and device b, and cut the region."""
    beside, loads, platform = search.beside, search.loads[t], flows.units.platform
    n = len(flows.device_type)
    for c in range(loads.shape[1]):
        size, back = beside[0, b, c], beside[1, b, c]
        tuples, tuples_back = beside[2, b, c], beside[3, b, c]
        loads[d, c] += handling(platform, tuples + tuples_back, size + back, d)
        loads[b, c] += handling(platform, tuples + tuples_back, size + back, b)
        link, egress, ingress = flow_loads(platform, tuples, size, d, b)
        loads[link_at(n, d, b), c] += link
        loads[egress_at(n, d), c] += egress
        loads[ingress_at(n, b), c] += ingress
        link, egress, ingress = flow_loads(platform, tuples_back, back, b, d)
        loads[link_at(n, b, d), c] += link
        loads[egress_at(n, b), c] += egress
        loads[ingress_at(n, d), c] += ingress
    cut(search.region, t, loads[link_at(n, d, b)])
    cut(search.region, t, loads[link_at(n, b, d)])
    cut(search.region, t, loads[egress_at(n, b)])
    cut(search.region, t, loads[ingress_at(n, b)])
    cut(search.region, t, loads[b])


@borrowing_kernel
def _branch(flows: LevelLoads, search: OrderSearch, t: int) -> None:
    """Choose the unit with the fewest feasible devices and sort these; none to prune the node."""
    n, n_devices = flows.allowed.shape
    search.left[t] = 0
    search.unit[t] = first_free(search.place)
    if search.region.size[t] == 0 or not _is_held(flows, search, t):
        return
    find_leads(flows.units.classes, search.place, search.lead)
    search.reach[:] = 0.0
    chosen, fewest, rank = -1, n_devices + 1, 0.0
    for u in range(n):
        if search.place[u] >= 0:
            continue
        _gather(flows, search, u)
        count = 0
        for d in range(n_devices):
            if search.lead[d] == d and _fits(flows, search, t, u, d):
                count += 1
                for c in range(len(search.reach[d])):
                    search.reach[d, c] += flows.work[u, c]
        if count < fewest or (count == fewest and flows.rank[u] > rank):
            chosen, fewest, rank = u, count, flows.rank[u]
        if count == 0:
            break
    search.unit[t] = chosen
    if fewest > 0 and _has_supply(flows, search, t):
        _order(flows, search, t, chosen)


@borrowing_kernel
def _has_supply(flows: LevelLoads, search: OrderSearch, t: int) -> bool:
    """Cut off where all devices together cannot do the remaining work; False if all is cut off.

    What a device can do is limited by its room, or else by the work that fits it: by whichever is
    less in the middle of the region, since one of them must be used in all corners.
    """
    need, middle, region, room = search.row[0], search.row[1], search.region, 0.0
    n = region.size[t]
    for c in range(len(need)):
        need[c], middle[c] = 0.0, 0.0
        for u in range(len(search.place)):
            if search.place[u] < 0:
                need[c] += flows.work[u, c]
        for i in range(n):
            middle[c] += region.corners[t, i, c] / n
    for d in range(len(flows.power)):
        reach, loads, power = search.reach[search.lead[d]], search.loads[t, d], flows.power[d]
        fits = _at(reach, middle) < power * (1.0 - _at(loads, middle))
        room += 0.0 if fits else power
        for c in range(len(need)):
            need[c] += -reach[c] if fits else power * loads[c]
    if room > 0.0:  # or else all that is left fits each device
        for c in range(len(need)):
            need[c] /= room
        cut(region, t, need)
    return region.size[t] > 0


@borrowing_kernel
def _gather(flows: LevelLoads, search: OrderSearch, u: int) -> None:
    """Sum the streams between unit u and the units on each device."""
    beside, units = search.beside, flows.units
    beside[:] = 0.0
    for i in range(units.start[u], units.start[u + 1]):
        e = units.around[i]
        leaves = units.source[e] == u
        d = search.place[units.target[e] if leaves else units.source[e]]
        if d >= 0:
            way = 0 if leaves else 1
            for c in range(beside.shape[2]):
                beside[way, d, c] += flows.traffic[e, c]
                beside[2 + way, d, c] += flows.tuples[e, c]


@inlined_kernel
def _any(beside: Floats, b: int) -> bool:
    """Whether there are streams between the gathered unit and device b."""
    total = 0.0
    for way in range(4):
        for c in range(beside.shape[2]):
            total += beside[way, b, c]
    return total > 0.0


@borrowing_kernel
def _fits(flows: LevelLoads, search: OrderSearch, t: int, u: int, d: int) -> bool:
    """Whether each load with unit u on device d leaves a corner, after `_gather`."""
    region, loads, n = search.region, search.loads[t], len(flows.device_type)
    own, sent, taken = search.row[0], search.row[1], search.row[2]
    for c in range(len(own)):
        own[c] = loads[d, c] + flows.load[u, d, c]
        sent[c] = loads[egress_at(n, d), c]
        taken[c] = loads[ingress_at(n, d), c]
    if not _may(flows, search, t, u, d) or not _fits_row(region, t, own):
        return False
    for b in range(n):
        if b != d and _any(search.beside, b) and not _fits_streams(flows, search, t, d, b):
            return False
    return _fits_row(region, t, own) and _fits_row(region, t, sent) and _fits_row(region, t, taken)


@borrowing_kernel
def _may(flows: LevelLoads, search: OrderSearch, t: int, u: int, d: int) -> bool:
    """Whether unit u may run on device d, and its subtasks fit a core there."""
    units, place = flows.units, search.place
    fits = flows.allowed[u, d] and has_memory(units, place, u, d)
    fits &= not meets_rival(place, units.rival_start, units.rivals, u, d)
    for v in range(flows.core_start[u], flows.core_start[u + 1]):
        fits &= _fits_row(search.region, t, flows.core[v, flows.device_type[d]])
    return fits


@borrowing_kernel
def _fits_streams(flows: LevelLoads, search: OrderSearch, t: int, d: int, b: int) -> bool:
    """Whether the gathered streams between device d and device b fit their links and b.

    Adds their loads to the rows of device d and of its cards.
    """
    beside, loads, platform = search.beside, search.loads[t], flows.units.platform
    own, sent, taken = search.row[0], search.row[1], search.row[2]
    out, back, there = search.row[3], search.row[4], search.row[5]
    n, fits = len(flows.device_type), True
    for c in range(len(own)):
        link, egress, ingress = flow_loads(platform, beside[2, b, c], beside[0, b, c], d, b)
        out[c], sent[c] = loads[link_at(n, d, b), c] + link, sent[c] + egress
        there[c] = loads[ingress_at(n, b), c] + ingress
    fits &= _fits_row(search.region, t, out) and _fits_row(search.region, t, there)
    for c in range(len(own)):
        link, egress, ingress = flow_loads(platform, beside[3, b, c], beside[1, b, c], b, d)
        back[c], taken[c] = loads[link_at(n, b, d), c] + link, taken[c] + ingress
        there[c] = loads[egress_at(n, b), c] + egress
    fits &= _fits_row(search.region, t, back) and _fits_row(search.region, t, there)
    for c in range(len(own)):
        tuples, size = beside[2, b, c] + beside[3, b, c], beside[0, b, c] + beside[1, b, c]
        own[c] += handling(platform, tuples, size, d)
        there[c] = loads[b, c] + handling(platform, tuples, size, b)
    return fits and _fits_row(search.region, t, there)


@borrowing_kernel
def _order(flows: LevelLoads, search: OrderSearch, t: int, u: int) -> None:
    """List the feasible devices of unit u by falling burden, so that the best is last."""
    _gather(flows, search, u)
    options, count = search.options[t], 0
    for d in range(len(flows.power)):
        if search.lead[d] != d or not _fits(flows, search, t, u, d):
            continue
        burden = _burden(flows, search, t, u, d)
        at = count
        while at > 0 and _burden(flows, search, t, u, options[at - 1]) < burden:
            options[at] = options[at - 1]
            at -= 1
        options[at] = d
        count += 1
    search.left[t] = count


@borrowing_kernel
def _burden(flows: LevelLoads, search: OrderSearch, t: int, u: int, d: int) -> float:
    """Load of the device with unit u on it, less the load that this saves on links."""
    burden, corner = 0.0, search.region.corners[t, 0]
    for c in range(flows.load.shape[2]):
        spared = search.beside[0, d, c] + search.beside[1, d, c]
        load = search.loads[t, d, c] + flows.load[u, d, c]
        burden += (load - spared * flows.wire) * corner[c]
    return burden


@borrowing_kernel
def _is_held(flows: LevelLoads, search: OrderSearch, t: int) -> bool:
    """Cut off levels at which no resource could be full without later levels; False if all are."""
    row = search.row[5]
    for level in range(1, flows.load.shape[2] - 1):
        least = min(
            _device_holds(flows, search, t, level),
            _core_holds(flows, search, t, level),
            _network_holds(flows, search, t, level),
        )
        if least > 1.0 + ROUNDING:
            return False
        if least > 0.0:
            row[:] = 0.0
            row[0], row[level] = 2.0, -1.0 / least
            cut(search.region, t, row)
        if search.region.size[t] == 0:
            return False
    return True


@inlined_kernel
def _is_early(row: Floats, level: int) -> bool:
    """Whether a row has no load of later levels."""
    early = True
    for c in range(level + 1, len(row)):
        early &= row[c] == 0.0
    return early


@inlined_kernel
def _filled_at(row: Floats, level: int) -> float:
    """Least rate of this level at which a resource is full; infinite with later ones, or without.

    Earlier levels have at most the same rate.
    """
    load = 0.0
    for c in range(1, level + 1):
        load += row[c]
    if row[level] <= 0.0 or not _is_early(row, level):
        return np.inf
    rate: float = max(0.0, FULL - row[0]) / load
    return rate


@borrowing_kernel
def _device_holds(flows: LevelLoads, search: OrderSearch, t: int, level: int) -> float:
    """Least rate of a level at which a device could be full without later levels."""
    row, least = search.row[0], np.inf
    for d in range(len(flows.power)):
        for c in range(len(row)):
            row[c] = search.loads[t, d, c]
        for u in range(len(search.place)):
            if search.place[u] < 0 and flows.allowed[u, d] and _is_early(flows.load[u, d], level):
                for c in range(len(row)):
                    row[c] += flows.load[u, d, c]
        _add_handling(flows, search, level, d, row)
        least = min(least, _filled_at(row, level))
    return least


@borrowing_kernel
def _add_handling(flows: LevelLoads, search: OrderSearch, level: int, d: int, row: Floats) -> None:
    """Add what streams without later levels could still cost on device d."""
    units, platform, place = flows.units, flows.units.platform, search.place
    if platform.overhead <= 0.0 and platform.overhead_per_byte <= 0.0:
        return
    for e in range(len(units.source)):
        early = platform.overhead <= 0.0 or _is_early(flows.tuples[e], level)
        early &= platform.overhead_per_byte <= 0.0 or _is_early(flows.traffic[e], level)
        if early and (place[units.source[e]] < 0 or place[units.target[e]] < 0):
            for c in range(len(row)):
                row[c] += handling(platform, flows.tuples[e, c], flows.traffic[e, c], d)


@borrowing_kernel
def _core_holds(flows: LevelLoads, search: OrderSearch, t: int, level: int) -> float:
    """Least rate of a level at which the core of a subtask could be full without later levels."""
    least = np.inf
    for u in range(len(search.place)):
        for v in range(flows.core_start[u], flows.core_start[u + 1]):
            for d in range(len(flows.device_type)):
                if search.place[u] >= 0 and search.place[u] != d:
                    continue
                row = flows.core[v, flows.device_type[d]]
                least = min(least, _filled_at(row, level))
    return least


@borrowing_kernel
def _network_holds(flows: LevelLoads, search: OrderSearch, t: int, level: int) -> float:
    """Least rate of a level at which a link or card could be full without later levels."""
    could, platform, loads = search.could, flows.units.platform, search.loads[t]
    link, egress, ingress, least = search.row[0], search.row[1], search.row[2], np.inf
    n, k = len(flows.device_type), flows.load.shape[2]
    _count_streams(flows, search, level)
    for a in range(n):
        for c in range(k):
            out = could[a, 0, c] + could[n, 1, c] + could[n + 1, 0, c]
            into = could[a, 1, c] + could[n, 0, c] + could[n + 1, 0, c]
            egress[c] = loads[egress_at(n, a), c] + nic_load(out, platform.egress[a])
            ingress[c] = loads[ingress_at(n, a), c] + nic_load(into, platform.ingress[a])
        least = min(least, _filled_at(egress, level), _filled_at(ingress, level))
        for b in range(n):
            for c in range(k):
                traffic = could[a, 0, c] + could[b, 1, c] + could[n + 1, 0, c]
                tuples = could[a, 2, c] + could[b, 3, c] + could[n + 1, 2, c]
                more, _, _ = flow_loads(platform, tuples, traffic, a, b)
                link[c] = loads[link_at(n, a, b), c] + more
            if a != b:
                least = min(least, _filled_at(link, level))
    return least


@borrowing_kernel
def _count_streams(flows: LevelLoads, search: OrderSearch, level: int) -> None:
    """Sum the streams without later levels that could still be between devices, by their ends.

    The sender is on a, or else the receiver on b, or else neither is placed, the last row; in the
    row before it are the sums over all a and over all b.
    """
    units, could, n = flows.units, search.could, len(flows.device_type)
    could[:] = 0.0
    for e in range(len(units.source)):
        a, b = search.place[units.source[e]], search.place[units.target[e]]
        early = _is_early(flows.traffic[e], level)
        early &= units.platform.gap <= 0.0 or _is_early(flows.tuples[e], level)
        if (a >= 0 and b >= 0) or not early:
            continue
        way = 1 if a < 0 <= b else 0
        row = n + 1 if a < 0 and b < 0 else max(a, b)
        for c in range(could.shape[2]):
            could[row, way, c] += flows.traffic[e, c]
            could[row, 2 + way, c] += flows.tuples[e, c]
            if row < n:
                could[n, way, c] += flows.traffic[e, c]
