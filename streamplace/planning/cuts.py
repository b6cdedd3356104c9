"""Cuts: inequalities that the numbers of machines of every plan satisfy, and bounds from them.

Let π(v) be a price for each operator, and z(t) the largest worth Σ π(v) · share(v) of the shares
that fit on one machine of type t. The machines of a plan hold every operator once, so

    Σ over types of  z(t) · x(t)  ≥  Σ over operators of  π(v)

for the numbers x of machines. Every bound of a plan's cost rests on such cuts. CP-SAT finds the
cheapest numbers that satisfy them; a depth-first search in integers proves that none cost less.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from streamplace.model.arrays import Bools, Floats
from streamplace.placers.exact.cpsat import Effort, solve_model
from streamplace.planning.demand import Demand, slot_groups, slots_of
from streamplace.planning.offers import Catalogue, Prices, is_place
from streamplace.planning.packing import CPU, MEMORY, RESOURCES, SLOTS, allowed, capacities
from streamplace.planning.parallelism import parallelism_on_fastest

MARGIN = 1 + Fraction(2, 10**9)
"""Factor by which cuts enlarge capacities; plans may exceed capacities by less."""
MAX_PIECES = 4
"""Largest k of the dual feasible functions that are tried."""
SCALE = 2**28
"""Worth of all operators together as an integer; the worth of each machine is rounded up."""
MAX_STEPS = 20_000
"""Steps of the depth-first search, after which the bound of single cuts stands."""
MAX_WORK = 10.0
"""Limit of the solver, in its deterministic seconds."""
MANY_TYPES, LITTLE_WORK = 32, 0.2
"""Types of machines above which the solver, which seldom ends then, may use less work."""
MAX_COST = 2**52
"""Largest cost that the solver receives; it refuses integers that add up to 2⁶³."""
A = TypeVar("A", Fraction, int)
Node = tuple[int, int, list[int], list[int]]
"""Next type of machine, the money and the needs that remain for it and later types, and the part of
each need that is lost with one of the machines so far."""


@dataclass(frozen=True, slots=True)
class Cut(Generic[A]):
    """Σ worth(t) · x(t) ≥ demand, in exact fractions or in integers."""

    worth: tuple[A, ...]  # largest worth of one machine of each type, z
    demand: A  # worth of all operators together
    # Origin of the cut: "cpu", "memory" or "slots", "cpu items" or "memory items", "network" or
    # "contents"; "machines" for the one machine of a plan that needs no resource; "rules" for
    # machines that a rule needs.
    origin: str
    # Whether the machines satisfy it without any one of them: Σ z(t) · x(t) less the largest z(t)
    # of the types in use.
    after_loss: bool = False

    def holds(self, counts: Sequence[int]) -> bool:
        """Whether numbers of machines satisfy the cut."""
        total = sum(z * x for z, x in zip(self.worth, counts, strict=True))
        used = (z for z, x in zip(self.worth, counts, strict=True) if x)
        return total - (max(used, default=0) if self.after_loss else 0) >= self.demand

    def whole(self) -> "Cut[int]":
        """Round to integers, so that the cut excludes no more than before."""
        if self.demand <= 0:
            return Cut((0,) * len(self.worth), 0, self.origin, self.after_loss)
        scale = Fraction(SCALE) / self.demand
        worth = tuple(-int(-min(z, self.demand) * scale // 1) for z in self.worth)
        return Cut(worth, SCALE, self.origin, self.after_loss)


ExactCut = Cut[Fraction]
"""An exact rational cut, for proofs."""


class ResourceNeed(NamedTuple):
    """Total need of a resource by the operators that require some tags."""

    tags: frozenset[str]
    rows: Bools  # [N] whether each operator is one of them
    runs: Bools  # [T] whether a machine of each type may run any of them
    resource: int  # `CPU`, `MEMORY` or `SLOTS`
    total: Fraction


def resource_needs(demand: Demand, catalogue: Catalogue) -> Iterator[ResourceNeed]:
    """Needs of each resource by all operators, and by those that require the same tags."""
    may_run, groups = allowed(demand, catalogue), slot_groups(demand, catalogue)
    subtasks = parallelism_on_fastest(demand, catalogue)
    for tags in sorted({frozenset[str](), *demand.requires}, key=sorted):
        rows = np.array([tags <= required for required in demand.requires])
        runs: Bools = np.asarray(may_run[:, rows].any(axis=1))
        slots = int(slots_of(groups, np.where(rows, subtasks, 0)[None])[0])
        for resource, total in (
            (CPU, sum(map(Fraction, demand.instructions[rows].tolist()), Fraction(0))),
            (MEMORY, sum(map(Fraction, demand.memory[rows].tolist()), Fraction(0))),
            (SLOTS, Fraction(slots)),
        ):
            yield ResourceNeed(tags, rows, runs, resource, total)


def resource_cuts(demand: Demand, catalogue: Catalogue) -> Iterator[ExactCut]:
    """Cuts of each resource alone, for all operators and for those that require the same tags."""
    capacity, needed = capacities(catalogue), False
    for need in resource_needs(demand, catalogue):
        available = capacity[:, need.resource]
        if need.total > 0 and np.isfinite(available[need.runs]).all():
            worth = [
                Fraction(float(c)) if r else Fraction(0)
                for c, r in zip(available, need.runs, strict=True)
            ]
            needed = True
            yield Cut(tuple(MARGIN * z for z in worth), need.total, RESOURCES[need.resource])
    if not needed:
        yield Cut((Fraction(1),) * len(catalogue.offers), Fraction(1), "machines")


def rule_cuts(demand: Demand, catalogue: Catalogue) -> Iterator[ExactCut]:
    """Cuts for operators that may not run on every machine, or not together.

    Operators of which no two share a machine need one machine each.
    """
    may_run = allowed(demand, catalogue)
    placed = {(v,) for v, tags in enumerate(demand.requires) if any(map(is_place, tags))}
    for group in sorted({*placed, *demand.apart}):
        rows = list(group)
        places = {may_run[:, v].tobytes(): may_run[:, v] for v in rows}
        places[b""] = np.asarray(may_run[:, rows].any(axis=1))
        for place in places.values():
            inside = [v for v in rows if not (may_run[:, v] & ~place).any()]
            yield Cut(tuple(Fraction(int(t)) for t in place), Fraction(len(inside)), "rules")


def item_cuts(demand: Demand, catalogue: Catalogue) -> Iterator[ExactCut]:
    """Cuts by dual feasible functions, for items that cannot be divided.

    The function of k pieces (Fekete and Schepers 2001) maps a size x to itself where (k + 1) · x is
    an integer, and to ⌊(k + 1) · x⌋ / k elsewhere, so that items that fit into one machine are
    worth at most 1.
    """
    capacity = capacities(catalogue)
    # A piece of the tuples may have less than its share of a constant load, which is divided
    # evenly; memory is divided by key groups.
    for resource, need, pieces_of in (
        (CPU, demand.least_instructions, demand.pieces),
        (MEMORY, demand.memory, demand.memory_pieces),
    ):
        available = capacity[:, resource]
        largest = float(available.max())
        if not np.isfinite(largest):
            continue
        largest_capacity = Fraction(largest) * MARGIN
        items = list(_items(need, pieces_of, largest_capacity))
        for pieces in range(1, MAX_PIECES + 1):
            scaled = ((n, size, size * (pieces + 1)) for n, size in items)
            worths = [
                (n, size, size if x.denominator == 1 else Fraction(int(x), pieces))
                for n, size, x in scaled
            ]
            total = sum((n * worth for n, _, worth in worths), Fraction(0))
            best = max((worth / size for _, size, worth in worths), default=Fraction(0))
            if total > 0 and best > 0:
                ratio = [Fraction(float(c)) * MARGIN / largest_capacity for c in available]
                worth = tuple(min(Fraction(1), best * r) for r in ratio)
                yield Cut(worth, total, f"{RESOURCES[resource]} items")


def _items(
    need: Floats, pieces_of: Callable[[int], int], largest_capacity: Fraction
) -> Iterator[tuple[int, Fraction]]:
    """Number of equal pieces of each operator, and their size as a share of a machine."""
    for v in range(len(need)):
        groups = pieces_of(v)
        size = Fraction(float(need[v])) / largest_capacity / groups if groups else Fraction(0)
        if 0 < size <= 1:
            yield groups, size


def cheapest_counts(
    cuts: Iterable[ExactCut],
    catalogue: Catalogue,
    *,
    above: int = 0,
    below: int | None = None,
    tried: Iterable[Sequence[int]] = (),
) -> tuple[int, ...] | None:
    """Return the cheapest numbers of machines of each type; None if the solver finds none.

    ``above`` is the least cost and ``below`` an exclusive upper limit, in the unit of `Prices`;
    numbers that were ``tried`` are excluded.
    """
    counts, _ = solve_counts(
        Prices.of(catalogue).numbers,
        count_limits(catalogue),
        [cut.whole() for cut in cuts],
        MAX_WORK if len(catalogue.offers) <= MANY_TYPES else LITTLE_WORK,
        above=above,
        below=below,
        tried=tried,
    )
    return counts


def count_limits(catalogue: Catalogue) -> list[tuple[int, int]]:
    """Fewest and most machines of each type to try; types that cost nothing are used in full."""
    return [(o.at_least if o.price else o.at_most, o.at_most) for o in catalogue.offers]


def solve_counts(
    prices: Sequence[int],
    limits: Sequence[tuple[int, int]],
    cuts: Iterable[Cut[int]],
    work: float,
    *,
    above: int = 0,
    below: int | None = None,
    tried: Iterable[Sequence[int]] = (),
) -> tuple[tuple[int, ...] | None, float]:
    """Cheapest numbers of machines that satisfy cuts in integers, and a bound of their cost.

    The numbers are None if CP-SAT finds none. Prices of too many digits are rounded down, so that
    the bound remains valid; the numbers may then cost slightly more than others.

    ``limits`` are the fewest and most machines of each type, and ``work`` limits the solver, in its
    deterministic seconds; for the others see `cheapest_counts`.
    """
    from ortools.sat.python import cp_model

    model: Any = cp_model.CpModel()
    x = [model.new_int_var(low, high, "") for low, high in limits]
    used = list[Any]()
    for cut in cuts:
        lost: Any = 0
        if cut.after_loss:
            used = used or [model.new_bool_var("") for _ in x]
            lost = model.new_int_var(0, max(cut.worth), "")
            for z, u in zip(cut.worth, used, strict=True):
                model.add(lost >= z * u)
        model.add(sum(z * n for z, n in zip(cut.worth, x, strict=True)) - lost >= cut.demand)
    for n, u, (_, high) in zip(x, used, limits, strict=False):
        model.add(n <= high * u)
    grain = 1 + sum(n * high for n, (_, high) in zip(prices, limits, strict=True)) // MAX_COST
    cost = sum(n // grain * y for n, y in zip(prices, x, strict=True))
    model.add(cost >= above // grain)
    if below is not None:
        model.add(cost <= (below - 1) // grain)
    for counts in tried:
        differs = [model.new_bool_var("") for _ in x]
        for y, n, d in zip(x, counts, differs, strict=True):
            model.add(y != n).only_enforce_if(d)
        model.add_bool_or(differs)
    model.minimize(cost)
    solution = solve_model(model, Effort(None, work, workers=1, seed=0))
    value_of = solution.value_of
    cheapest = None if value_of is None else tuple(value_of(y) for y in x)
    return cheapest, solution.bound * grain


def least_cost(
    cuts: Iterable[ExactCut], catalogue: Catalogue, goal: int, stop: Callable[[], bool]
) -> Fraction:
    """Return a lower bound, at most ``goal`` units, of the cost of numbers that satisfy the cuts.

    A depth-first search refutes all numbers of machines that cost less than the goal. It branches
    on one type after the other and prunes where a single cut shows that the rest costs too much.
    If it needs too many steps or is stopped, the bound is that of the best single cut, or the cost
    of the machines that ``at_least`` requires.
    """
    prices, whole = Prices.of(catalogue), [cut.whole() for cut in cuts]
    singles = [_least_cost_of(cut, prices, catalogue) for cut in whole]
    costs = (least(0, cut.demand) for least, cut in zip(singles, whole, strict=True))
    single = max([0, *(goal if cost is None else cost for cost in costs)])
    fixed = prices.cost([offer.at_least for offer in catalogue.offers])
    floor = min(goal, max(single, fixed))
    is_refuted = floor < goal and _is_refuted(goal, prices, whole, singles, catalogue, stop)
    return (goal if is_refuted else floor) * prices.unit


LeastCost = Callable[[int, int], int | None]
"""Least cost at which the types of machines from one on reach a worth; None if all are too few."""


def _least_cost_of(cut: Cut[int], prices: Prices, catalogue: Catalogue) -> LeastCost:
    """Least costs by a single cut, filled with types of the lowest price per worth first."""
    columns = zip(prices.numbers, cut.worth, catalogue.offers, strict=True)
    offers = [(t, n, z, offer.at_most) for t, (n, z, offer) in enumerate(columns) if z]
    offers.sort(key=lambda row: (Fraction(row[1], row[2]), *row[2:]))

    def least_cost(first: int, need: int) -> int | None:
        if need <= 0:
            return 0
        cost = 0
        for t, number, worth, at_most in offers:
            if t < first:
                continue
            if need <= worth * at_most:
                return cost - (-number * need // worth)
            cost, need = cost + number * at_most, need - worth * at_most
        return None

    return least_cost


def _is_refuted(
    goal: int,
    prices: Prices,
    cuts: list[Cut[int]],
    singles: list[LeastCost],
    catalogue: Catalogue,
    stop: Callable[[], bool],
) -> bool:
    """Whether a depth-first search shows that no numbers below the goal satisfy the cuts."""
    limits = count_limits(catalogue)

    def is_too_dear(t: int, money: int, needs: list[int]) -> bool:
        costs = (least(t, need) for least, need in zip(singles, needs, strict=True))
        return money < 0 or any(cost is None or cost > money for cost in costs)

    def children(t: int, money: int, needs: list[int], lost: list[int]) -> Iterator[Node]:
        """Node of the next type after each number of this type, the largest number first."""
        number = prices.numbers[t]
        low, high = limits[t]
        for n in range(min(high, money // number) if number else high, low - 1, -1):
            more = [
                max(0, cut.worth[t] - z) if n and cut.after_loss else 0
                for cut, z in zip(cuts, lost, strict=True)
            ]
            remainder = [
                need - n * cut.worth[t] + m for cut, need, m in zip(cuts, needs, more, strict=True)
            ]
            yield (
                t + 1,
                money - n * number,
                remainder,
                [z + m for z, m in zip(lost, more, strict=True)],
            )

    # A loop, since there may be more types than Python allows nested calls.
    waiting: list[Iterator[Node]]
    steps, waiting = 0, [iter([(0, goal - 1, [cut.demand for cut in cuts], [0] * len(cuts))])]
    while waiting:
        node = next(waiting[-1], None)
        if node is None:
            waiting.pop()
            continue
        steps += 1
        if steps > MAX_STEPS:
            return False
        if is_too_dear(*node[:3]):
            continue
        if node[0] == len(prices.numbers) or stop():
            return False
        waiting.append(children(*node))
    return True
