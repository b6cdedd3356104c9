"""Search: the cheapest machines, parallelisms and contents that carry the rate.

Numbers of machines come from the cuts, cheapest first, or from the best plan so far with one
machine removed or replaced by a cheaper one. For each, operators are packed at several levels of
parallelism.

Then the plan improves at the same cost: fewer subtasks, and contents that carry a larger rate.
Fewer subtasks save threads, memory and connections, which the model does not count; spare resources
help if costs are higher than the graph states. The search for the cheapest machines neglects both:
it tries few parallelisms, with one factor for all operators, and ends as soon as the rate is
carried.
"""

from collections.abc import Callable, Iterator, Sequence
from math import inf

import numpy as np

from streamplace.model.arrays import Bools, Ints
from streamplace.placers.meter import Remaining
from streamplace.planning.bounds import CostBound
from streamplace.planning.cuts import cheapest_counts, count_limits
from streamplace.planning.demand import Demand
from streamplace.planning.deployment import acceptor
from streamplace.planning.offers import Catalogue, Prices
from streamplace.planning.packing import (
    Accept,
    PackedMachines,
    Packing,
    anneal,
    deal,
    first_fit,
    first_fit_until,
    force,
    is_whole,
    machine_kinds,
    packing_of,
    uses,
    without_idle,
)
from streamplace.planning.parallelism import (
    chains_of,
    choices,
    parallelism_on_slowest,
    parallelisms,
    streams_between,
)
from streamplace.planning.problem import PlanProblem
from streamplace.planning.survival import survivor

MAX_FIRST_STREAMS = 17_000_000
"""Most streams between subtasks in the plan of first fit, with which the search begins."""
STEPS = 4_000
"""Moves of an annealing run in the first round; every round has four times as many."""
ROUNDS, TRIES = 4, 12
"""Rounds, and most numbers of machines to try in each (judgement)."""
MAX_SPARES = 100
"""Most idle machines of a type to remove from a plan that survives a loss."""
FACTORS = 1, 1.5, 2, 3, 4, 6
"""Multiples of the least parallelism to try instead of a higher one, in order."""
IMPROVING_STEPS = 16_000
"""Moves of each annealing run that improves a plan."""
MAX_RATE_FACTOR, RATE_PROBES = 1.5, 6
"""Largest multiple of the rate to improve a plan for, and number of bisection steps."""


class PlanSearch:
    """A search for the cheapest machines that carry the rate of a problem.

    It ends with the best plan so far when no time is ``remaining`` or after ``max_moves`` moves of
    all runs together. It tries plans with at most ``max_streams`` between subtasks, because the
    check of a plan takes time for each.
    """

    def __init__(
        self,
        problem: PlanProblem,
        remaining: Callable[[], Remaining],
        max_moves: int | None,
        max_streams: float = inf,
    ) -> None:
        self._problem = problem
        self._demand, self._catalogue = problem.demand, problem.catalogue
        self._seed = problem.settings.seed
        self._remaining, self._max_moves = remaining, max_moves
        self._max_streams = max_streams
        self.moves = 0  # so far
        self.accept = acceptor(problem) if problem.after_loss is None else survivor(problem)
        self._prices = Prices.of(problem.catalogue)
        self.best: PackedMachines | None = None

    @property
    def cost(self) -> int | None:
        """Cost of the best machines so far, in units of the prices."""
        return None if self.best is None else self._cost(self.best)

    def is_late(self) -> bool:
        """Whether the time is used up."""
        return self._remaining().seconds == 0

    def run(self, bound: CostBound) -> PackedMachines | None:
        """Search until the bound is reached, or the rounds or the time are over."""
        goal = self._prices.cost(bound.counts)
        max_streams = min(MAX_FIRST_STREAMS, self._max_streams)
        arguments = self._demand, self._catalogue, self.is_late, self.accept, max_streams
        self.offer(first_fit_machines(*arguments))
        for level in range(ROUNDS):
            for counts in self._candidates(bound, goal):
                if self.is_over or (self.cost is not None and self.cost <= goal):
                    return self.best
                self.offer(self.pack(counts, STEPS * 4**level))
            self.shrink(STEPS * 4**level)
        return self.best

    def pack(self, counts: Sequence[int], steps: int) -> PackedMachines | None:
        """Pack the operators onto these numbers of machines; None if that fails."""
        kinds = machine_kinds(self._catalogue, counts)
        for vector in parallelisms(self._demand, self._catalogue, counts):
            if streams_between(self._demand, vector) > self._max_streams:
                continue
            packing = packing_of(self._demand, self._catalogue, vector)
            filled = first_fit_until(packing, kinds, self._remaining())
            if filled is None:
                return None
            rows, unplaced = filled
            force(packing, kinds, rows, unplaced, self._remaining())
            if unplaced.any():
                return None
            for start in (rows, deal(packing, kinds)):
                packed = self.annealed(packing, kinds, start, steps)
                if packed is not None or self.is_late():
                    return packed  # without moves, first fit alone is tried
        return None

    def annealed(
        self, packing: Packing, kinds: Ints, rows: Ints, steps: int
    ) -> PackedMachines | None:
        """Move subtasks until the machines carry the rate; None if that takes too many moves."""
        if self._demand.units and not is_whole(packing, rows).all():
            return None
        if self._max_moves is not None:
            steps = min(steps, self._max_moves - self.moves)
        self.moves += steps
        rows, excess = anneal(packing, kinds, rows, self._seed, steps, self._remaining())
        if excess > 0:
            return None
        return self.accept(PackedMachines(kinds, packing.parallelism, rows))

    @property
    def is_over(self) -> bool:
        """Whether the moves or the time are used up."""
        return self.moves == self._max_moves or self.is_late()

    def offer(self, packed: PackedMachines | None) -> bool:
        """Keep a plan if it is cheaper than the best so far; return whether it is."""
        if packed is None:
            return False
        packed = self.trimmed(packed)
        cheaper = self.cost is None or self._cost(packed) < self.cost
        if cheaper:
            self.best = packed
        return cheaper

    def trimmed(self, packed: PackedMachines) -> PackedMachines:
        """Remove idle machines, the dearest first, except spares for a loss."""
        if self._problem.after_loss is None:
            return without_idle(packed, self._catalogue)
        offers = self._catalogue.offers
        for t in sorted(range(len(offers)), key=lambda t: -offers[t].price):
            for _ in range(MAX_SPARES):
                idle = np.flatnonzero((packed.kinds == t) & ~packed.rows.any(axis=1))
                fewer = None
                if len(idle) and (packed.kinds == t).sum() > offers[t].at_least:
                    fewer = self.accept(packed.of(np.arange(len(packed.kinds)) != idle[-1]))
                if fewer is None:
                    break
                packed = fewer
        return packed

    def _cost(self, packed: PackedMachines) -> int:
        return self._prices.cost(packed.counts(len(self._catalogue.offers)))

    def _candidates(self, bound: CostBound, goal: int) -> Iterator[tuple[int, ...]]:
        """Numbers of machines to try: the cheapest, then by bisection of the cost."""
        tried = [bound.counts]
        yield bound.counts
        low = goal
        while len(tried) < TRIES and (self.cost is None or low < self.cost):
            high = 2 * low + 2 if self.cost is None else self.cost
            # Costs from the middle on; every third time, or if there are none, the lowest costs.
            floors = ((low + high) // 2, goal) if len(tried) % 3 else (low,)
            for floor in floors if self.cost is not None else floors[:1]:
                counts = cheapest_counts(
                    bound.cuts, self._catalogue, above=floor, below=self.cost, tried=tried
                )
                if counts is not None:
                    break
            else:
                return
            tried.append(counts)
            cost = self._prices.cost(counts)
            yield counts
            if self.cost is None or self.cost > cost:
                low = max(low, cost)

    def shrink(self, steps: int) -> None:
        """Remove machines from the best plan or replace them by cheaper ones while that works."""
        while self.best is not None and not self.is_over:
            best = self.best
            packing = packing_of(self._demand, self._catalogue, best.parallelism)
            if not any(
                self.offer(self._changed(packing, best, machine, kind, steps))
                for machine, kind in self._changes(packing, best)
            ):
                return

    def _changes(self, packing: Packing, best: PackedMachines) -> Iterator[tuple[int, int]]:
        """Least used machine of each type, and the types that may replace it; -1 to remove it."""
        offers, numbers = self._catalogue.offers, self._prices.numbers
        counts = best.counts(len(offers))
        busy = uses(packing, best.kinds, best.rows).max(axis=1)
        for t, count in enumerate(counts):
            if count <= offers[t].at_least or not numbers[t]:
                continue
            machine = min(np.flatnonzero(best.kinds == t).tolist(), key=lambda m: busy[m])
            cheaper = [
                s
                for s in range(len(offers))
                if numbers[s] < numbers[t] and counts[s] < offers[s].at_most
            ]
            for kind in [-1, *sorted(cheaper, key=lambda s: numbers[s])]:
                yield machine, kind

    def _changed(
        self, packing: Packing, best: PackedMachines, machine: int, kind: int, steps: int
    ) -> PackedMachines | None:
        kinds, rows = best.kinds.copy(), best.rows.copy()
        if kind >= 0:
            kinds[machine] = kind
        else:
            unplaced = rows[machine].copy()
            kinds, rows = np.delete(kinds, machine), np.delete(rows, machine, axis=0)
            if not len(kinds):
                return None
            force(packing, kinds, rows, unplaced, self._remaining())
        return None if self.is_over else self.annealed(packing, kinds, rows, steps)

    def with_fewer_subtasks(
        self, packed: PackedMachines, stop: Callable[[], bool]
    ) -> PackedMachines:
        """Return the same machines with as few subtasks as are found before ``stop``."""
        demand, catalogue = self._demand, self._catalogue
        least = parallelism_on_slowest(demand, catalogue, packed.counts(len(catalogue.offers)))
        subtasks = inf
        while packed.parallelism.sum() < subtasks:
            subtasks = packed.parallelism.sum()
            for members in _changing_together(demand, packed.parallelism):
                lowest = int(least[members].max())
                for vector in _coarser(demand, packed.parallelism, members, lowest):
                    if stop():
                        return packed
                    rows = merged_rows(packed.rows, packed.parallelism, vector)
                    packing = packing_of(demand, catalogue, vector)
                    merged = self.annealed(packing, packed.kinds, rows, IMPROVING_STEPS)
                    if merged is not None:
                        packed = merged
                        break
        return packed

    def with_highest_rate(self, packed: PackedMachines, stop: Callable[[], bool]) -> PackedMachines:
        """Return the same machines and subtasks, placed to carry the largest rate that is found."""
        problem = self._problem
        low, high = 1.0, min(MAX_RATE_FACTOR, problem.rate_limit / problem.rate)
        for _ in range(RATE_PROBES):
            if stop():
                break
            middle = (low + high) / 2
            demand = problem.at_rate(middle * problem.rate).demand
            packing = packing_of(demand, self._catalogue, packed.parallelism)
            faster = self.annealed(packing, packed.kinds, packed.rows, IMPROVING_STEPS)
            if faster is None:
                high = middle
            else:
                low, packed = middle, faster
        return packed


def first_fit_machines(
    demand: Demand,
    catalogue: Catalogue,
    stop: Callable[[], bool] = lambda: False,
    accept: Accept | None = None,
    max_streams: float = MAX_FIRST_STREAMS,
) -> PackedMachines | None:
    """Return the cheapest plan that first fit makes with machines of one type.

    The machines that ``at_least`` requires of other types are filled as well. Parallelisms are the
    least that the cores allow, as in DS2. ``accept`` is called on the cheapest plan first and on
    others only if it refuses: it takes much longer than filling thousands of machines.
    """
    prices, filled = Prices.of(catalogue), list[PackedMachines]()
    for t in range(len(catalogue.offers)):
        machines = None if stop() and filled else _first_fit_of_type(demand, catalogue, t)
        if machines is not None and streams_between(demand, machines.parallelism) <= max_streams:
            filled.append(without_idle(machines, catalogue))
    for machines in sorted(filled, key=lambda m: prices.cost(m.counts(len(catalogue.offers)))):
        packed = machines if accept is None else accept(machines)
        if packed is not None:
            return packed
    return None


def _first_fit_of_type(demand: Demand, catalogue: Catalogue, t: int) -> PackedMachines | None:
    counts = [low for low, _ in count_limits(catalogue)]
    limit = catalogue.offers[t].at_most
    number = max(1, counts[t])
    while True:
        counts[t] = min(number, limit)
        vector = parallelism_on_slowest(demand, catalogue, counts)
        packing = packing_of(demand, catalogue, vector)
        kinds = machine_kinds(catalogue, counts)
        rows, unplaced = first_fit(packing, kinds)
        if not unplaced.any():
            return PackedMachines(kinds, vector, rows)
        if counts[t] == limit or number > 8 * int(vector.sum()):
            return None
        number *= 2


def merged_rows(rows: Ints, before: Ints, after: Ints) -> Ints:
    """Scale the subtasks on every machine [D, N] to other parallelisms, in proportion.

    >>> merged_rows(np.array([[4], [3], [1]]), np.array([8]), np.array([3])).ravel().tolist()
    [2, 1, 0]
    """
    quota = rows * (after / before)
    merged = np.floor(quota + 1e-9).astype(np.int32)
    for v in np.flatnonzero(before != after):
        order = np.argsort(merged[:, v] - quota[:, v], kind="stable")
        merged[order[: after[v] - merged[:, v].sum()], v] += 1
    return merged


def _changing_together(demand: Demand, vector: Ints) -> Iterator[Bools]:
    """Operators whose parallelisms change together, groups with the most subtasks first.

    Operators of equal parallelism that are connected one to one keep equal parallelism.
    """
    chain, tied = demand.together(chains_of(demand)), demand.together(demand.tied)
    is_even = [len(np.unique(vector[chain == g])) == 1 for g in range(chain.max() + 1)]
    group = np.where(np.array(is_even)[chain], chain, len(chain) + tied)
    numbers = np.unique(group).tolist()
    for g in sorted(numbers, key=lambda g: -int(vector[group == g].sum())):
        yield group == g


def _coarser(demand: Demand, vector: Ints, members: Bools, least: int) -> Iterator[Ints]:
    """Vectors in which some operators have a lower parallelism, the lowest first."""
    highest = int(vector[members].max())
    possible = [set(choices(demand, v, highest)) for v in np.flatnonzero(members).tolist()]
    tried = set[int]()
    for factor in FACTORS:
        lower = [p for p in set.intersection(*possible) if least * factor <= p < highest]
        if lower and min(lower) not in tried:
            tried.add(min(lower))
            yield np.where(members, min(lower), vector).astype(np.int32)
