"""Proof of the least peak load, from a first placement, with the cheapest methods first.

1. A short annealing; a peak of at most 1, or at a simple lower bound, needs no further proof.
2. Streams heavier than the best peak are contracted, after which the units may not fit the devices.
3. Branch and bound for a few thousand nodes, which solves most small graphs.
4. Bounds by bisection (bin packing, hubs), and the placements that hub patterns suggest.
5. More annealing, more branch and bound, and CP-SAT for the rest of the budget.
"""

import operator
from collections.abc import Callable

import numpy as np
from streamsim.equation import (
    egress_at,
    ingress_at,
    link_at,
    link_load,
    n_resources,
    nic_load,
)
from streamsim.jit import borrowing_kernel, kernel

from streamplace.model.arrays import ROUNDING, Floats, Ints
from streamplace.placers.exact.rate import assignment, bounds
from streamplace.placers.exact.rate.branch_and_bound import (
    EXHAUSTED,
    IMPROVED,
    NODES,
    PAUSED,
    has_memory,
    new_search,
    run,
)
from streamplace.placers.exact.rate.units import Units, are_legal, contracted, unit_handling
from streamplace.placers.exact.solver import effort_of
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


class Prover:
    """The best placement of the units, its peak load, and a lower bound of the peak load."""

    def __init__(self, units: Units, start: Ints, meter: Meter, seed: int, workers: int) -> None:
        self.units = units
        self._best = Incumbent[Ints](operator.lt, meter, _throughput)
        # Lower bound of the peak load; peaks below 1 are not distinguished.
        self.least = max(1.0, bounds.simple_bound(units))
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
        for step, effort in (
            *self._quick_methods,
            (self._close, NODES_MORE),
            (self._bisect, STEPS_MORE),
            (self._solve, 0),
        ):
            if self.done or self._meter.over:
                return
            step(effort)

    def try_full_rate(self) -> None:
        """Search for a placement without overload by the quick methods, while one may exist."""
        for step, effort in self._quick_methods:
            if self.done or self._meter.over or self.least > 1 + 4 * ROUNDING:
                return
            step(effort)

    @property
    def _quick_methods(self) -> tuple[tuple[Callable[[int], None], int], ...]:
        """The first methods, with their efforts."""
        return (
            (self._warm, MOVES),
            (self._search, NODES_FIRST),
            (self._bisect, STEPS),
            (self._warm, MOVES_MORE),
        )

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
            nodes -= self._look_below(self._cut, nodes)

    def _close(self, nodes: int) -> None:
        """Branch and bound from below: tight limits are quickly refuted, or met and optimal."""
        quota = nodes // 64 + 1
        while nodes > 0:
            for share in SHARES:
                if self.done or self._meter.over:
                    return
                cut = min(self._cut, self.least + share * (self.peak - self.least))
                nodes -= self._look_below(cut, min(nodes, quota))
            quota *= 2

    def _look_below(self, cut: float, nodes: int) -> int:
        """Find a placement below a cut, or prove that there is none; return the nodes used."""
        smaller = contracted(self.units, cut)
        if smaller is None:
            self._exclude(cut)
            return 1
        units, group = smaller
        limits = bounds.limits_below(units, cut)
        if bounds.hopeless(limits):
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
        if self._refuted(self._cut, steps):
            return self._exclude(self._cut)
        high = self._cut
        for _ in range(HALVINGS):
            if self._meter.over or high <= self.least * (1 + ROUNDING):
                break
            middle = (self.least + high) / 2
            if self._refuted(middle, steps):
                self._exclude(middle)
            else:
                high = middle
        self._name_patterns(high, steps)
        if not self.done and self._refuted(self._cut, steps):
            self._exclude(self._cut)
        return None

    def _refuted(self, cut: float, steps: int) -> bool:
        """Whether some relaxation shows that no placement has all loads below the cut."""
        smaller = contracted(self.units, cut)
        if smaller is None or bounds.hopeless(bounds.limits_below(smaller[0], cut)):
            return True
        units, _ = smaller
        return any(
            bounds.spread(hub, cut, units.n_devices, steps)[0] == bounds.NO
            for hub in bounds.hubs_of(units)
        )

    def _name_patterns(self, cut: float, steps: int) -> None:
        """Anneal from the patterns that fit the cut, swapping only units of one kind."""
        smaller = contracted(self.units, cut)
        if smaller is None:
            return
        units, group = smaller
        for hub in bounds.hubs_of(units):
            answer, patterns = bounds.spread(hub, cut, units.n_devices, steps)
            if answer == bounds.YES and not self._meter.over:
                start = bounds.placed(hub, patterns)
                place = self._annealed(units, start, hub.kind, MOVES_NAMING)
                self._adopt(place[group])

    def _solve(self, _: int) -> None:
        smaller = contracted(self.units, self._cut)
        if smaller is None:
            return self._exclude(self._cut)
        units, group = smaller
        if assignment.too_large(units):
            return None
        hint = np.zeros(units.n_units, np.int32)
        hint[group] = self.place
        limits = bounds.limits_below(units, self._cut)
        effort = effort_of(self._meter, self._seed, self._workers)
        answer = assignment.solve(
            units, assignment.Goal(limits.full, self._cut, self.least, hint), effort
        )
        if answer.place is not None:
            self._adopt(answer.place[group])
        self.least = max(self.least, min(answer.least, self.peak))
        return None


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
    n = len(units.classes)
    loads[:] = 0.0
    peak = 0.0
    for u in range(len(place)):
        loads[place[u]] += units.load[u, place[u]]
        peak = max(peak, units.core[u, place[u]])
    for e in range(len(units.source)):
        a, b = place[units.source[e]], place[units.target[e]]
        if a == b:
            continue
        traffic, tuples = units.traffic[e], units.tuples[e]
        loads[a] += unit_handling(units, tuples, traffic, a)
        loads[b] += unit_handling(units, tuples, traffic, b)
        wire = units.seconds_per_byte[a, b]
        loads[link_at(n, a, b)] += link_load(traffic, tuples, wire, units.gap)
        loads[egress_at(n, a)] += nic_load(traffic, units.egress[a])
        loads[ingress_at(n, b)] += nic_load(traffic, units.ingress[b])
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
    if np.isinf(units.load[u, place[u]]):
        return False
    for i in range(units.rival_start[u], units.rival_start[u + 1]):
        if place[units.rivals[i]] == place[u]:
            return False
    return has_memory(units, place, u, place[u])
