"""Proof of the least peak load, from a first placement, with the cheapest methods first.

1. A short annealing; a peak of at most 1, or at a simple lower bound, needs no further proof.
2. Streams heavier than the best peak are contracted, after which the units may not fit the devices.
3. Branch and bound for a few thousand nodes, which solves most small graphs.
4. Bounds by bisection (bin packing, hubs), and the placements that hub patterns suggest.
5. More annealing, more branch and bound, and CP-SAT for the rest of the budget.

Branch and bound goes depth first. At every node the unit with the fewest feasible devices is placed
next; a device is feasible while no load reaches its limit (forward checking), and of equal empty
devices only the first is tried. A node is pruned if some unit has no feasible device, or if the
devices cannot carry the remaining work. There is one load vector per depth, in the order of
`streamsim.equation`. A vector is always computed from the one above it, never undone, so that
rounding errors do not accumulate over millions of nodes.
"""

import operator
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from streamsim.equation import egress_at, ingress_at, link_at, n_resources, nic_load
from streamsim.jit import borrowing_kernel, inlined_kernel, kernel
from streamsim.loads import add_flow, flow_loads, handling

from streamplace.model.arrays import ROUNDING, Floats, Ints, Longs
from streamplace.model.devices import SLACK
from streamplace.model.packing import meets_rival
from streamplace.placers.exact import peak_bounds
from streamplace.placers.exact.cpsat import AssignmentModel, effort_of, too_large
from streamplace.placers.exact.peak_bounds import Limits, Patterns
from streamplace.placers.exact.units import Units, are_legal, contracted
from streamplace.placers.incumbent import Incumbent
from streamplace.placers.meter import Meter

MOVES, NODES_FIRST = 3_000, 3_000
MOVES_MORE, NODES_MORE = 50_000, 4_000_000
MOVES_NAMING = 10_000
SHARES = (0.1, 0.3, 1.0)
SLICE, SLICE_CELLS = 20_000, 20_000_000
"""Most moves or nodes between two readings of the clock, and most cells that they touch."""
HALVINGS = 12
STEPS, STEPS_MORE = 100_000, 10_000_000
SWAPS = 0.3
HOT, COLD = 0.1, 0.002
"""Share of swaps in an annealing, and its temperatures, as shares of the first energy."""
FREE = -1
EXHAUSTED, PAUSED, IMPROVED = -1, -2, -3
"""How a search ends; depths are from 0 on."""
DEPTH, NODES = 0, 1


class Prover:
    """The best placement of the units, its peak load, and a lower bound of the peak load."""

    def __init__(
        self, units: Units, start: Ints, meter: Meter, seed: int, workers: int, enough: float = 1.0
    ) -> None:
        """Peaks below ``enough`` are not distinguished."""
        self.units = units
        self._best = Incumbent[Ints](operator.lt, meter, _throughput)
        # Lower bound of the peak load
        self.least = max(enough, peak_bounds.simple_bound(units))
        self._meter, self._seed, self._workers = meter, seed, workers
        cells = n_resources(units.n_devices) + units.n_units + len(units.source)
        self._slice = min(SLICE, max(1, SLICE_CELLS // cells))
        self._adopt(start)

    @property
    def place(self) -> Ints:
        """Best placement so far."""
        return self._best.solution

    @property
    def peak(self) -> float:
        """Largest load of the best placement."""
        return self._best.value

    @property
    def done(self) -> bool:
        """Whether the best placement is proven."""
        return self.peak <= self.least * (1 + 4 * ROUNDING)

    def prove(self) -> None:
        """Apply all methods until done or out of budget."""
        self.prove_quickly()
        self._apply(partial(self.close, NODES_MORE), partial(self._bisect, STEPS_MORE), self._solve)

    def prove_quickly(self) -> None:
        """Apply the quick methods until done or out of budget."""
        self._apply(
            partial(self._warm, MOVES),
            partial(self._search, NODES_FIRST),
            partial(self._bisect, STEPS),
            partial(self._warm, MOVES_MORE),
        )

    def _apply(self, *methods: Callable[[], None]) -> None:
        for method in methods:
            if self.done or self._meter.over:
                return
            method()

    @property
    def _cut(self) -> float:
        return self.peak * (1 - ROUNDING)

    def _adopt(self, place: Ints) -> None:
        """Keep a placement of the units if it is better, and legal: relaxations may break rules."""
        if not are_legal(self.units, place[None])[0]:
            return
        loads = np.empty(n_resources(self.units.n_devices))
        self._best.offer(place, write_loads(self.units, place, loads))

    def _exclude(self, load: float) -> None:
        """Raise the bound: no placement has a peak below the load."""
        self.least = max(self.least, load * (1 - ROUNDING))

    def _warm(self, moves: int) -> None:
        """Anneal in slices from the best placement."""
        free = np.full(self.units.n_units, FREE, np.int32)
        while moves > 0 and not (self.done or self._meter.over):
            now = min(moves, self._slice)
            self._adopt(self._annealed(self.units, self.place, free, now))
            moves -= now

    def _annealed(self, units: Units, start: Ints, kind: Ints, moves: int) -> Ints:
        """Anneal a placement of units by ``moves`` moves, or as many as the budget allows."""
        self._seed = (self._seed + 1) % 2**31
        stop = self._meter.at_most(moves)
        place, _ = anneal(units, start, kind, moves, stop, self.least, self._seed)
        self._meter.spend(stop)
        return place

    def _search(self, nodes: int) -> None:
        """Branch and bound below the cut, restarted after every improvement."""
        while nodes > 0 and not (self.done or self._meter.over):
            nodes -= self._place_below(self._cut, nodes)

    def close(self, nodes: int) -> None:
        """Branch and bound from below: tight limits are quickly refuted, or met and optimal."""
        quota = nodes // 64 + 1
        while nodes > 0:
            for share in SHARES:
                if self.done or self._meter.over:
                    return
                cut = min(self._cut, self.least + share * (self.peak - self.least))
                nodes -= self._place_below(cut, min(nodes, quota))
            quota *= 2

    def _place_below(self, cut: float, nodes: int) -> int:
        """Find a placement below a cut, or prove that there is none; return the nodes used."""
        smaller = contracted(self.units, cut)
        if smaller is None:
            self._exclude(cut)
            return 1
        units, group = smaller
        limits = peak_bounds.limits_below(units, cut)
        if peak_bounds.hopeless(limits):
            self._exclude(cut)
            return 1
        search = new_search(units)
        outcome = PAUSED
        while outcome == PAUSED and search.clock[NODES] < nodes and not self._meter.over:
            before = int(search.clock[NODES])
            slice_ = self._meter.at_most(min(nodes - before, self._slice))
            outcome = run(units, limits, search, slice_)
            self._meter.spend(int(search.clock[NODES]) - before)
        if outcome == EXHAUSTED:
            self._exclude(cut)
        elif outcome == IMPROVED:
            self._adopt(search.place[group])
        return int(search.clock[NODES]) + 1

    def _bisect(self, steps: int) -> None:
        """Raise the lower bound by bisection, and try the placements that hub patterns suggest."""
        if refuted(self.units, self._cut, steps):
            return self._exclude(self._cut)
        high = self._cut
        for _ in range(HALVINGS):
            if self._meter.over or high <= self.least * (1 + ROUNDING):
                break
            middle = (self.least + high) / 2
            if refuted(self.units, middle, steps):
                self._exclude(middle)
            else:
                high = middle
        self._name_patterns(high, steps)
        if not self.done and refuted(self.units, self._cut, steps):
            self._exclude(self._cut)
        return None

    def _name_patterns(self, cut: float, steps: int) -> None:
        """Anneal from the patterns that fit the cut, swapping only units of one kind."""
        smaller = contracted(self.units, cut)
        if smaller is None:
            return
        units, group = smaller
        for hub in peak_bounds.hubs_of(units):
            answer, patterns = peak_bounds.spread(hub, cut, units.n_devices, steps)
            if answer == peak_bounds.YES and not self._meter.over:
                start = peak_bounds.placed(hub, patterns)
                place = self._annealed(units, start, hub.kind, MOVES_NAMING)
                self._adopt(place[group])

    def _solve(self) -> None:
        smaller = contracted(self.units, self._cut)
        if smaller is None:
            return self._exclude(self._cut)
        units, group = smaller
        if too_large(units):
            return None
        hint = np.zeros(units.n_units, np.int32)
        hint[group] = self.place
        limits = peak_bounds.limits_below(units, self._cut)
        model = AssignmentModel(units, limits.full, self._cut, self.least, hint)
        place, least = model.solved(effort_of(self._meter, self._seed, self._workers))
        if place is not None:
            self._adopt(place[group])
        self.least = max(self.least, min(least, self.peak))
        return None


def refuted(units: Units, cut: float, steps: int) -> bool:
    """Whether some relaxation shows that no placement has all loads below the cut."""
    smaller = contracted(units, cut)
    if smaller is None or peak_bounds.hopeless(peak_bounds.limits_below(smaller[0], cut)):
        return True
    units, _ = smaller
    return any(
        peak_bounds.spread(hub, cut, units.n_devices, steps)[0] == peak_bounds.NO
        for hub in peak_bounds.hubs_of(units)
    )


def _throughput(peak: float) -> float:
    return min(1.0, 1 / peak) if peak > 0 else 1.0


@kernel
def anneal(
    units: Units, start: Ints, kind: Ints, moves: int, stop: int, enough: float, seed: int
) -> tuple[Ints, float]:
    """Return the best legal placement found and its peak load; end early at ``enough``.

    The temperature falls over ``moves`` moves, of which at most ``stop`` are made.

    Units of kind FREE move to any device and swap with any other; units of another kind only swap
    with their own kind, so that every device keeps its number of each kind.
    """
    np.random.seed(seed)  # noqa: NPY002 - numba's generator, private to compiled code
    n, d = units.load.shape
    loads = np.empty(n_resources(d))
    place, best = start.copy(), start.copy()
    best_peak = write_loads(units, place, loads)
    energy = _energy(loads, best_peak)
    hot, cold = HOT * energy, COLD * energy
    for i in range(min(moves, stop)):
        if best_peak <= enough:
            break
        u = np.random.randint(n)  # noqa: NPY002
        old, v, new = place[u], -1, np.random.randint(d)  # noqa: NPY002
        if kind[u] != FREE or np.random.random() < SWAPS:  # noqa: NPY002
            v = np.random.randint(n)  # noqa: NPY002
            new = place[v]
            if kind[u] != kind[v]:
                continue
        if new == old:
            continue
        _exchange(place, u, v, new, old)
        if _legal(units, place, u) and (v < 0 or _legal(units, place, v)):
            peak = write_loads(units, place, loads)
            tried = _energy(loads, peak)
            heat = hot * (cold / hot) ** (i / moves)
            if np.random.random() < np.exp((energy - tried) / heat):  # noqa: NPY002
                energy = tried
                if peak < best_peak:
                    best_peak = peak
                    for w in range(n):
                        best[w] = place[w]
                continue
        _exchange(place, u, v, old, new)
    return best, best_peak


@borrowing_kernel
def _exchange(place: Ints, u: int, v: int, new: int, old: int) -> None:
    """Put unit u on the new device and, if v ≥ 0, unit v on the old one."""
    place[u] = new
    if v >= 0:
        place[v] = old


@borrowing_kernel
def write_loads(units: Units, place: Ints, loads: Floats) -> float:
    """Compute the load of every resource; return the largest, single cores included."""
    loads[:] = 0.0
    peak = 0.0
    for u in range(len(place)):
        loads[place[u]] += units.load[u, place[u]]
        peak = max(peak, units.core[u, place[u]])
    for e in range(len(units.source)):
        a, b = place[units.source[e]], place[units.target[e]]
        if a != b:
            add_flow(units.platform, loads, a, b, units.tuples[e], units.traffic[e])
    for load in loads:
        peak = max(peak, load)
    return peak


@borrowing_kernel
def _energy(loads: Floats, peak: float) -> float:
    """8-norm of the loads: the largest dominates, but the others contribute."""
    total = 0.0
    for load in loads:
        share = load / peak if peak > 0 else 0.0
        square = share * share
        total += square * square * square * square
    return peak * total**0.125


@borrowing_kernel
def _legal(units: Units, place: Ints, u: int) -> bool:
    """Whether unit u may be on its device, given the others."""
    d = place[u]
    if np.isinf(units.load[u, d]) or meets_rival(place, units.rival_start, units.rivals, u, d):
        return False
    return has_memory(units, place, u, d)


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
        t = next_depth(search.place, search.unit, search.left, clock, stop)
        if t < 0:
            return t
        _descend(units, search, t, search.unit[t], search.options[t, search.left[t]])
        if t + 1 == len(search.place):
            return IMPROVED
        clock[DEPTH] = t + 1
        _branch(units, limits, search, t + 1)


@inlined_kernel
def next_depth(place: Ints, unit: Ints, left: Ints, clock: Longs, stop: int) -> int:
    """Go back up to an option, and take it: the depth of its unit, or how the search ends."""
    while True:
        t = clock[DEPTH]
        place[unit[t]] = -1
        if left[t] > 0:
            if clock[NODES] >= stop:
                return PAUSED
            clock[NODES] += 1
            left[t] -= 1
            return t
        if t == 0:
            return EXHAUSTED
        clock[DEPTH] = t - 1


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
    platform = units.platform
    loads[d] += units.load[u, d]
    for b in range(n):
        if b == d:
            continue
        handled = tuples_out[b] + tuples_in[b]
        size = out[b] + into[b]
        loads[d] += handling(platform, handled, size, d)
        loads[b] += handling(platform, handled, size, b)
        link, egress, ingress = flow_loads(platform, tuples_out[b], out[b], d, b)
        loads[link_at(n, d, b)] += link
        loads[egress_at(n, d)] += egress
        loads[ingress_at(n, b)] += ingress
        link, egress, ingress = flow_loads(platform, tuples_in[b], into[b], b, d)
        loads[link_at(n, b, d)] += link
        loads[egress_at(n, b)] += egress
        loads[ingress_at(n, d)] += ingress
    search.place[u] = d


@borrowing_kernel
def _branch(units: Units, limits: Limits, search: Search, t: int) -> None:
    """Choose the unit with the fewest feasible devices and sort these; none to prune the node."""
    n, n_devices = units.load.shape
    find_leads(units.classes, search.place, search.lead)
    search.reach[:] = 0.0
    chosen, fewest, rank, need = -1, n_devices + 1, 0.0, 0.0
    search.left[t] = 0
    search.unit[t] = first_free(search.place)
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
def first_free(place: Ints) -> int:
    """Return the first unit that is not placed."""
    u = 0
    while place[u] >= 0:
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
def find_leads(classes: Ints, place: Ints, lead: Ints) -> None:
    """Choose representatives: every used device itself, the first empty device of every class."""
    lead[:] = -1
    for u in range(len(place)):
        if place[u] >= 0:
            lead[place[u]] = place[u]
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
    n, platform = len(full), units.platform
    out, into = search.beside[0], search.beside[1]
    tuples_out, tuples_in = search.beside[2], search.beside[3]
    sent, taken, handled = 0.0, 0.0, 0.0
    for b in range(n):
        if b == d or tuples_out[b] + tuples_in[b] + out[b] + into[b] == 0:
            continue
        link, _, ingress = flow_loads(platform, tuples_out[b], out[b], d, b)
        back, egress, _ = flow_loads(platform, tuples_in[b], into[b], b, d)
        if loads[link_at(n, d, b)] + link >= cut or loads[link_at(n, b, d)] + back >= cut:
            return False
        if loads[egress_at(n, b)] + egress >= cut:
            return False
        if loads[ingress_at(n, b)] + ingress >= cut:
            return False
        both = tuples_out[b] + tuples_in[b]
        if loads[b] + handling(platform, both, out[b] + into[b], b) >= full[b]:
            return False
        sent += out[b]
        taken += into[b]
        handled += both
    return (
        loads[d] + units.load[u, d] + handling(platform, handled, sent + taken, d) < full[d]
        and loads[egress_at(n, d)] + nic_load(sent, platform.egress[d]) < cut
        and loads[ingress_at(n, d)] + nic_load(taken, platform.ingress[d]) < cut
        and not meets_rival(search.place, units.rival_start, units.rivals, u, d)
        and has_memory(units, search.place, u, d)
    )


@borrowing_kernel
def has_memory(units: Units, place: Ints, u: int, d: int) -> bool:
    """Whether unit u fits into the memory of device d, beside the other units there."""
    if len(units.memory) == 0:
        return True
    used = units.memory[u]
    for v in range(len(place)):
        if place[v] == d and v != u:
            used += units.memory[v]
    return used <= units.room[d] * (1 + SLACK)


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
