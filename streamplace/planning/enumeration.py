"""Enumeration: all plans of a small problem, the cheapest first, if search and cuts leave a gap.

The machines that no cut excludes are tried from the cheapest on, at all parallelisms, with all
contents. Machines that do not carry the rate are excluded as well, so the first that do are the
cheapest. With too many parallelisms or contents, some machines remain open, and the bound is the
cost of the cheapest of these.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from math import inf, prod

import numpy as np

from streamplace.model.arrays import Bools, Floats, Ints, Longs
from streamplace.model.devices import SLACK
from streamplace.planning.bounds import CostBound
from streamplace.planning.cuts import count_limits
from streamplace.planning.demand import Demand, slot_groups, slots_of
from streamplace.planning.offers import Prices
from streamplace.planning.packing import (
    CPU,
    MEMORY,
    SLOTS,
    Accept,
    PackedMachines,
    Packing,
    is_whole,
    machine_kinds,
    packing_of,
    uses,
)
from streamplace.planning.parallelism import parallelism_on_fastest
from streamplace.planning.problem import PlanProblem

MAX_OPERATORS, MAX_TYPES, MAX_MACHINES = 6, 3, 8
"""Size up to which all plans are tried (judgement: about a second, see `MAX_COMPARISONS`)."""
MAX_COUNTS = 20_000
"""Most numbers of machines to sort by cost."""
MAX_VECTORS = 2_000
"""Most vectors of parallelisms for some numbers of machines."""
MAX_PARALLELISM = 64
"""Largest parallelism to try of an operator that may have any."""
MAX_CONTENTS = 6_000
"""Most contents of a machine at some parallelisms."""
MAX_PAIRS = 4_000_000
"""Most pairs of contents and remainders that are compared at once."""
MAX_COMPARISONS = 200_000_000
"""Comparisons after which the enumeration ends, about a second."""
COMPARISONS_PER_VECTOR = 50_000
"""Comparisons that take as long as the arrays for one vector of parallelisms."""


def is_small(problem: PlanProblem) -> bool:
    """Whether there are few enough operators and types of machines to try all plans."""
    types = len(problem.catalogue.offers)
    return problem.demand.n_operators <= MAX_OPERATORS and types <= MAX_TYPES


class Enumeration:
    """All plans of a small problem that are cheaper than the known plan, if there is one."""

    def __init__(
        self,
        problem: PlanProblem,
        accept: Accept,
        stop: Callable[[], bool],
        demand: Demand | None = None,
    ) -> None:
        self._demand, self._catalogue = demand or problem.demand, problem.catalogue
        self._prices = Prices.of(problem.catalogue)
        self._accept, self._stop, self._work = accept, stop, MAX_COMPARISONS
        # Plans for the machines that remain after a loss, wherever all subtasks are then.
        self._after_loss: Enumeration | None = None
        if demand is None and problem.after_loss is not None:
            self._after_loss = Enumeration(problem, lambda p: p, stop, problem.after_loss)

    def run(
        self, bound: CostBound, below: int | None
    ) -> tuple[PackedMachines | None, CostBound | None]:
        """Return the cheapest plan that costs less than ``below`` units, and a higher bound.

        The plan is None if there is none; the bound is None if it is proven that there is no plan.
        """
        offers, numbers = self._catalogue.offers, self._prices.numbers
        limits = count_limits(self._catalogue)
        highest = [
            min(high, MAX_MACHINES if below is None else (below - 1) // n) if n else high
            for (_, high), n in zip(limits, numbers, strict=True)
        ]
        ranges = [range(low, h + 1) for (low, _), h in zip(limits, highest, strict=True)]
        if prod(map(len, ranges)) > MAX_COUNTS:
            return None, bound
        # Without a known plan, more machines of a type are not tried: they remain open.
        beyond = [
            self._prices.cost(tuple(h + 1 if u == t else limits[u][0] for u in range(len(offers))))
            for t, h in enumerate(highest)
            if below is None and h < offers[t].at_most
        ]
        untried = min(beyond, default=None)
        cuts = [cut.whole() for cut in bound.cuts]
        least_open: int | None = None
        for cost, counts in sorted((self._prices.cost(c), c) for c in product(*ranges)):
            if below is not None and cost >= below:
                break
            if untried is not None and cost >= untried and least_open is None:
                least_open = untried
            if least_open is not None and (self._work <= 0 or self._stop()):
                break
            if not sum(counts) or not all(cut.holds(counts) for cut in cuts):
                continue
            if self._after_loss is not None and self._after_loss.excludes_rest_of(counts):
                continue
            packed, is_excluded = self._try(counts)
            if packed is not None:
                least = cost if least_open is None else least_open
                return packed, self._raised(bound, least)
            if not is_excluded and least_open is None:
                least_open = cost
        costs = (cost for cost in (least_open, untried, below) if cost is not None)
        cheapest = next(costs, None)
        return None, None if cheapest is None else self._raised(bound, cheapest)

    def excludes_rest_of(self, counts: tuple[int, ...]) -> bool:
        """Whether it is proven that the loss of some machine leaves too few."""
        rests = [(*counts[:t], n - 1, *counts[t + 1 :]) for t, n in enumerate(counts) if n]
        return any(not sum(rest) or self._try(rest)[1] for rest in rests)

    def _raised(self, bound: CostBound, cost: int) -> CostBound:
        """Bound that is at least a cost in units."""
        value = cost * self._prices.unit
        if value <= bound.value:
            return bound
        return replace(bound, value=value, by_strength={**bound.by_strength, "enumeration": value})

    def _try(self, counts: tuple[int, ...]) -> tuple[PackedMachines | None, bool]:
        """Plan on these numbers of machines, and whether it is proven that there is none."""
        vectors, every = self._vectors(counts)
        if vectors and sum(counts) > MAX_MACHINES:
            return None, False
        kinds = machine_kinds(self._catalogue, counts)
        for vector in vectors:
            if self._work <= 0 or self._stop():
                return None, False
            packing = packing_of(self._demand, self._catalogue, vector)
            rows, is_complete = self._contents(packing, kinds)
            packed = None if rows is None else self._accept(PackedMachines(kinds, vector, rows))
            if packed is not None:
                return packed, False
            # Plans are charged for the worst of all distributions, which no single one may reach.
            least = self._least(packing) if every and is_complete and rows is None else packing
            if least is not packing:
                rows, is_complete = self._contents(least, kinds)
            every = every and is_complete and rows is None
        return None, every

    def _vectors(self, counts: tuple[int, ...]) -> tuple[list[Ints], bool]:
        """Parallelisms to try, fewest subtasks first, and whether all others are impossible."""
        demand, slots = self._demand, self._catalogue.slots(counts)
        lowest = parallelism_on_fastest(demand, self._catalogue, counts)
        low, high = [], []
        for group in range(int(demand.tied.max()) + 1):
            members = np.flatnonzero(demand.tied == group).tolist()
            limit = min(slots, *(int(demand.parallelism_limit[v]) or inf for v in members))
            kept = [int(demand.parallelism_limit[v]) for v in members if demand.keeps[v]]
            low.append(max([1, *lowest[members].tolist(), *kept]))
            high.append(limit if lowest[members].all() else 0)
        top = float(MAX_PARALLELISM)
        while prod(max(0.0, min(h, top) - n + 1) for n, h in zip(low, high, strict=True)) > (
            MAX_VECTORS
        ):
            top -= 1
        groups = slot_groups(demand, self._catalogue)
        vectors = [
            vector
            for p in product(
                *(range(n, int(min(h, top)) + 1) for n, h in zip(low, high, strict=True))
            )
            for vector in [np.array(p, np.int32)[demand.tied]]
            if slots_of(groups, vector[None])[0] <= slots
        ]
        every = all(h <= top or n > h for n, h in zip(low, high, strict=True))
        return sorted(vectors, key=lambda vector: int(vector.sum())), every

    def _contents(self, packing: Packing, kinds: Ints) -> tuple[Ints | None, bool]:
        """Contents of the machines that fit, [D, N], and whether all were tried.

        Machine after machine takes contents that fit on it from each remaining set of subtasks.
        """
        self._work -= COMPARISONS_PER_VECTOR
        sizes = packing.parallelism + 1
        if prod(sizes.tolist()) > MAX_CONTENTS:
            return None, False
        rows = np.indices(tuple(sizes.tolist())).reshape(len(sizes), -1).T.astype(np.int32).copy()
        fitting = {t: _fitting(packing, t, rows) for t in np.unique(kinds).tolist()}
        remaining = [np.array([len(rows) - 1])]
        for machine, kind in enumerate(kinds.tolist()):
            remainders, fits = remaining[-1], fitting[kind]
            if len(remainders) * len(fits) > MAX_PAIRS:
                return None, False
            self._work -= len(remainders) * len(fits) * len(sizes)
            if machine == len(kinds) - 1:  # it takes all that remains
                remainders = remaining[-1] = np.intersect1d(remainders, fits)
                after = np.array([0])
            else:
                fine = (rows[remainders][:, None] >= rows[fits][None]).all(axis=2)
                after = np.unique((remainders[:, None] - fits[None])[fine])
                after = after[_may_fit(packing, kinds[machine + 1 :], rows[after])]
            if not len(remainders) or not len(after):
                return None, True
            remaining.append(after)
        return _chosen_contents(rows, remaining, [fitting[kind] for kind in kinds.tolist()]), True

    def _least(self, packing: Packing) -> Packing:
        """Arrays with the least use of the busiest subtasks, for which plans are charged more.

        Constant loads and messages are divided evenly, perhaps to less than a share of the tuples.
        """
        demand, parallelism = self._demand, packing.parallelism
        even = np.minimum(np.arange(packing.most.shape[1]) / parallelism[:, None], 1.0)
        several = np.array([len(counts) > 1 for counts in demand.group_counts])[:, None]
        most: Floats = np.where(several, even, packing.most)
        part = (even[:, 1:] / most[:, 1:]).min(axis=1)
        instructions = packing.instructions - (packing.instructions - demand.flowing) * (1 - part)
        network = packing.network and not demand.uneven.any() and (most == packing.least).all()
        same = (most == packing.most).all() and (part == 1).all()
        if same and network == packing.network:
            return packing
        return packing._replace(instructions=instructions, most=most, network=bool(network))


def _fitting(packing: Packing, kind: int, rows: Ints) -> Longs:
    """Numbers of the contents that fit on a machine of a type."""
    use = np.asarray(uses(packing, np.full(len(rows), kind, np.int32), rows))
    fits: Bools = use.max(axis=1) <= 1 + SLACK
    return np.flatnonzero(fits & is_whole(packing, rows))


def _may_fit(packing: Packing, kinds: Ints, rows: Ints) -> Longs:
    """Numbers of the remainders that the remaining machines can hold together."""
    v = np.arange(rows.shape[1])
    slots = slots_of(packing.slot_group, rows)
    needs = {
        CPU: (packing.instructions * packing.most[v, rows]).sum(axis=1),
        MEMORY: (packing.memory * packing.stored[v, rows]).sum(axis=1),
        SLOTS: slots.astype(np.float64),
    }
    capacity = packing.capacity[kinds].sum(axis=0)
    fine = [need <= capacity[r] * (1 + 2 * SLACK) for r, need in needs.items()]
    return np.flatnonzero(np.logical_and.reduce(fine))


def _chosen_contents(rows: Ints, remaining: list[Longs], fitting: list[Longs]) -> Ints:
    """Contents of each machine, from the remainders that each of them may leave, [D, N]."""
    contents, target = [], 0
    for before, fits in zip(reversed(remaining[:-1]), reversed(fitting), strict=True):
        possible = np.intersect1d(before - target, fits)
        fine = (rows[possible] + rows[target] <= rows[-1]).all(axis=1)
        chosen = int(possible[fine][0])
        contents.append(rows[chosen])
        target += chosen
    return np.array(contents[::-1], np.int32)
