"""Proof of the least peak load, from a first placement, with the cheapest methods first.

1. A short annealing; a peak of at most 1, or at a simple lower bound, needs no further proof.
2. Streams heavier than the best peak are contracted, after which the units may not fit the devices.
3. Branch and bound for a few thousand nodes, which solves most small graphs.
4. Bounds by bisection (bin packing, hubs), and the placements that hub patterns suggest.
5. More annealing, more branch and bound, and CP-SAT for the rest of the budget.

The annealing and the branch and bound are in `core/src/exact`.
"""

import operator
from collections.abc import Callable
from functools import partial

import numpy as np
from streamsim import _core
from streamsim.equation import n_resources

from streamplace.model.arrays import ROUNDING, Ints
from streamplace.placers.exact import peak_bounds
from streamplace.placers.exact.cpsat import AssignmentModel, effort_of, is_too_large
from streamplace.placers.exact.units import Units, are_legal, contracted
from streamplace.placers.incumbent import Incumbent
from streamplace.placers.meter import Meter

MOVES, NODES_FIRST = 3_000, 3_000
MOVES_MORE, NODES_MORE = 50_000, 4_000_000
MOVES_NAMING = 10_000
SHARES = (0.1, 0.3, 1.0)
SLICE, SLICE_CELLS = 20_000, 20_000_000
"""Most moves of an annealing, and most cells that they touch."""
HALVINGS = 12
STEPS, STEPS_MORE = 100_000, 10_000_000
FREE = -1
"""Kind of units that an annealing moves to any device."""


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
        self._best.offer(place, self.units.compiled.loads(place)[1])

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
        place, _, spent = units.compiled.anneal(
            start, kind, moves, self.least, self._seed, self._meter.remaining
        )
        self._meter.spend(spent)
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
        limits = peak_bounds.limits_below(units, cut, self._meter.remaining)
        if peak_bounds.exceeds_capacity(limits, self._meter.remaining):
            self._exclude(cut)
            return 1
        nodes = max(0, nodes)  # the tries before may have used more
        place, refuted, spent = units.compiled.place_below(limits, nodes, self._meter.remaining)
        self._meter.spend(spent)
        if refuted:
            self._exclude(cut)
        elif place is not None:
            self._adopt(place[group])
        return spent + 1

    def _bisect(self, steps: int) -> None:
        """Raise the lower bound by bisection, and try the placements that hub patterns suggest."""
        if self._is_refuted(self._cut, steps):
            return self._exclude(self._cut)
        high = self._cut
        for _ in range(HALVINGS):
            if self._meter.over or high <= self.least * (1 + ROUNDING):
                break
            middle = (self.least + high) / 2
            if self._is_refuted(middle, steps):
                self._exclude(middle)
            else:
                high = middle
        self._name_patterns(high, steps)
        if not self.done and self._is_refuted(self._cut, steps):
            self._exclude(self._cut)
        return None

    def _is_refuted(self, cut: float, steps: int) -> bool:
        """Whether some relaxation shows that no placement has all loads below the cut."""
        smaller, meter = contracted(self.units, cut), self._meter
        if smaller is None:
            return True
        units, _ = smaller
        limits = peak_bounds.limits_below(units, cut, meter.remaining)
        return peak_bounds.exceeds_capacity(limits, meter.remaining) or any(
            _core.spread(hub, cut, units.n_devices, steps, meter.remaining)[0] is False
            for hub in peak_bounds.hubs_of(units)
        )

    def _name_patterns(self, cut: float, steps: int) -> None:
        """Anneal from the patterns that fit the cut, swapping only units of one kind."""
        smaller = contracted(self.units, cut)
        if smaller is None:
            return
        units, group = smaller
        for hub in peak_bounds.hubs_of(units):
            patterns = _core.spread(hub, cut, units.n_devices, steps, self._meter.remaining)[1]
            if patterns is not None and not self._meter.over:
                start = peak_bounds.placed(hub, patterns)
                place = self._annealed(units, start, hub.kind, MOVES_NAMING)
                self._adopt(place[group])

    def _solve(self) -> None:
        smaller = contracted(self.units, self._cut)
        if smaller is None:
            return self._exclude(self._cut)
        units, group = smaller
        if is_too_large(units):
            return None
        hint = np.zeros(units.n_units, np.int32)
        hint[group] = self.place
        limits = peak_bounds.limits_below(units, self._cut, self._meter.remaining)
        model = AssignmentModel(units, limits.full, self._cut, self.least, hint)
        place, least = model.solved(effort_of(self._meter, self._seed, self._workers))
        if place is not None:
            self._adopt(place[group])
        self.least = max(self.least, min(least, self.peak))
        return None


def _throughput(peak: float) -> float:
    return min(1.0, 1 / peak) if peak > 0 else 1.0
