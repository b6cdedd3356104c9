"""Counts: the cheapest numbers of machines that satisfy cuts.

CP-SAT finds them; a depth-first search in integers proves that none cost less.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from streamplace.placers.exact.solver import Effort, solve_model
from streamplace.planning.cuts import Cut
from streamplace.planning.offers import Catalogue, Prices

SCALE = 2**28
"""Worth of all operators together as an integer; the worth of each machine is rounded up."""
MOST_STEPS = 20_000
MOST_WORK = 10.0
"""Limit of the solver, in its deterministic seconds."""
MANY_TYPES, LITTLE_WORK = 32, 0.2
"""Types of machines above which the solver may use less: it would seldom end, many times over."""
MOST_COST = 2**52
"""Largest cost that the solver receives; it refuses integers that add up to 2⁶³."""


@dataclass(frozen=True, slots=True)
class WholeCut:
    """A cut in integers: Σ worth(t) · x(t) ≥ demand."""

    worth: tuple[int, ...]
    demand: int

    @classmethod
    def of(cls, cut: Cut) -> "WholeCut":
        """Round a cut so that it excludes no more than before."""
        if cut.demand <= 0:
            return cls((0,) * len(cut.worth), 0)
        scale = SCALE / cut.demand
        worth = tuple(-int(-min(z, cut.demand) * scale // 1) for z in cut.worth)
        return cls(worth, SCALE)


class CheapestCounts(NamedTuple):
    """Numbers of machines of each type, None where there are none, and a bound of their cost."""

    counts: tuple[int, ...] | None
    bound: float


def cheapest_counts(
    cuts: Iterable[Cut],
    catalogue: Catalogue,
    *,
    above: int = 0,
    below: int | None = None,
    tried: Iterable[Sequence[int]] = (),
) -> tuple[int, ...] | None:
    """Return the cheapest numbers of machines of each type; None where the solver finds none.

    ``above`` is the least cost and ``below`` an exclusive upper limit, in the unit of `Prices`;
    numbers that were ``tried`` are excluded.
    """
    cheapest = solve_counts(
        Prices.of(catalogue).numbers,
        [(offer.at_least, offer.at_most) for offer in catalogue.offers],
        [WholeCut.of(cut) for cut in cuts],
        MOST_WORK if len(catalogue.offers) <= MANY_TYPES else LITTLE_WORK,
        above=above,
        below=below,
        tried=tried,
    )
    return cheapest.counts


def enough(cuts: Iterable[Cut], catalogue: Catalogue) -> bool:
    """Whether all machines of the offers together satisfy the cuts; none has a worth below 0."""
    return all(
        sum(z * offer.at_most for z, offer in zip(cut.worth, catalogue.offers, strict=True))
        >= cut.demand
        for cut in map(WholeCut.of, cuts)
    )


def solve_counts(
    prices: Sequence[int],
    limits: Sequence[tuple[int, int]],
    cuts: Iterable[WholeCut],
    work: float,
    *,
    above: int = 0,
    below: int | None = None,
    tried: Iterable[Sequence[int]] = (),
) -> CheapestCounts:
    """Minimise the cost of the numbers of machines that satisfy cuts, by CP-SAT.

    Prices of too many digits are rounded down for the solver, so that its bound remains one; the
    numbers that it finds may then cost slightly more than others.

    ``limits`` are the fewest and most machines of each type, and ``work`` is that of the solver in
    its deterministic seconds; for the others see `cheapest_counts`.
    """
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    x = [model.new_int_var(low, high, "") for low, high in limits]
    for cut in cuts:
        model.add(sum(z * n for z, n in zip(cut.worth, x, strict=True)) >= cut.demand)
    grain = 1 + sum(n * high for n, (_, high) in zip(prices, limits, strict=True)) // MOST_COST
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
    return CheapestCounts(cheapest, solution.bound * grain)


def least_cost(
    cuts: Iterable[Cut], catalogue: Catalogue, goal: int, stop: Callable[[], bool] = lambda: False
) -> Fraction:
    """Return a lower bound, at most ``goal`` units, of the cost of numbers that satisfy the cuts.

    A depth-first search refutes all numbers of machines that cost less than the goal. It branches
    on one type after the other and prunes where a single cut shows that the rest costs too much.
    If it needs too many steps or is stopped, the bound is that of the best single cut, or the cost
    of the machines that ``at_least`` requires.
    """
    prices = Prices.of(catalogue)
    singles = [_SingleCut.of(WholeCut.of(cut), prices, catalogue) for cut in cuts]
    costs = (cut.least_cost(0, cut.demand) for cut in singles)
    single = max([0, *(goal if cost is None else cost for cost in costs)])
    fixed = prices.cost([offer.at_least for offer in catalogue.offers])
    floor = min(goal, max(single, fixed))
    search = _Refutation(prices, singles, catalogue, stop)
    low = goal if floor < goal and search.refutes(goal) else floor
    return low * prices.unit


@dataclass(frozen=True, slots=True)
class _SingleCut:
    """A cut, and the types with positive worth, lowest price per worth first."""

    worth: tuple[int, ...]
    demand: int
    # Index, price, worth and ``at_most`` of each of these types.
    offers: tuple[tuple[int, int, int, int], ...]

    @classmethod
    def of(cls, cut: WholeCut, prices: Prices, catalogue: Catalogue) -> "_SingleCut":
        """Sort the types of a cut by price per worth."""
        columns = zip(prices.numbers, cut.worth, catalogue.offers, strict=True)
        offers = [(t, n, z, offer.at_most) for t, (n, z, offer) in enumerate(columns) if z]
        offers.sort(key=lambda row: (Fraction(row[1], row[2]), *row[2:]))
        return cls(cut.worth, cut.demand, tuple(offers))

    def least_cost(self, first: int, need: int) -> int | None:
        """Least cost at which the types from ``first`` on reach the remaining worth ``need``.

        None if all of their machines together do not reach it.
        """
        if need <= 0:
            return 0
        cost = 0
        for t, number, worth, most in self.offers:
            if t < first:
                continue
            if need <= worth * most:
                return cost - (-number * need // worth)
            cost, need = cost + number * most, need - worth * most
        return None


class _Rest(NamedTuple):
    """Money and needs that remain for the types of machines from ``first`` on."""

    first: int
    money: int
    needs: list[int]


class _Refutation:
    """Depth-first search for numbers of machines that cost less than a goal."""

    def __init__(
        self,
        prices: Prices,
        cuts: list[_SingleCut],
        catalogue: Catalogue,
        stop: Callable[[], bool],
    ) -> None:
        self._prices, self._cuts, self._catalogue = prices, cuts, catalogue
        self._stop, self._steps = stop, 0

    def refutes(self, goal: int) -> bool:
        """Whether no numbers of machines satisfy the cuts below the goal."""
        # A loop, since there may be more types than Python allows calls within calls.
        self._steps = 0
        whole = _Rest(0, goal - 1, [cut.demand for cut in self._cuts])
        waiting: list[Iterator[_Rest]] = [iter([whole])]
        while waiting:
            rest = next(waiting[-1], None)
            if rest is None:
                waiting.pop()
                continue
            self._steps += 1
            if self._steps > MOST_STEPS:
                return False
            if self._is_too_dear(rest):
                continue
            if rest.first == len(self._prices.numbers) or self._stop():
                return False
            waiting.append(self._parts(rest))
        return True

    def _is_too_dear(self, rest: _Rest) -> bool:
        """Whether a single cut shows that the rest costs more than is left."""
        if rest.money < 0:
            return True
        each = zip(self._cuts, rest.needs, strict=True)
        costs = (cut.least_cost(rest.first, need) for cut, need in each)
        return any(cost is None or cost > rest.money for cost in costs)

    def _parts(self, rest: _Rest) -> Iterator[_Rest]:
        """Remainders after each number of machines of the next type, the largest number first."""
        t, money, needs = rest
        offer, number = self._catalogue.offers[t], self._prices.numbers[t]
        for n in range(min(offer.at_most, money // number), offer.at_least - 1, -1):
            left = [need - n * cut.worth[t] for cut, need in zip(self._cuts, needs, strict=True)]
            yield _Rest(t + 1, money - n * number, left)
