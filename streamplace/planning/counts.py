"""Counts: the cheapest numbers of machines that satisfy cuts.

CP-SAT finds them; a search of this file's own, in whole numbers, proves them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm
from typing import NamedTuple

from streamplace.placers.exact.solver import Effort, solve_model
from streamplace.planning.cuts import Cut
from streamplace.planning.offers import Catalogue

SCALE = 2**28
"""What all operators are worth in whole numbers; worths of machines are rounded up."""
MOST_STEPS = 20_000
MOST_WORK = 10.0
"""Deterministic seconds of the solver."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices in whole numbers of a unit."""

    numbers: tuple[int, ...]
    unit: Fraction

    @classmethod
    def of(cls, catalogue: Catalogue) -> "Prices":
        """Prices of the offers, exactly as they are written in decimals."""
        exact = [Fraction(repr(float(offer.price))) for offer in catalogue.offers]
        common = lcm(*(price.denominator for price in exact))
        whole = [int(price * common) for price in exact]
        step = gcd(*whole)
        return cls(tuple(number // step for number in whole), Fraction(step, common))

    def cost(self, counts: Sequence[int]) -> int:
        """Cost of so many machines of each type, in units."""
        return sum(n * x for n, x in zip(self.numbers, counts, strict=True))


@dataclass(frozen=True, slots=True)
class WholeCut:
    """A cut in whole numbers: Σ worth(t) · x(t) ≥ demand."""

    worth: tuple[int, ...]
    demand: int

    @classmethod
    def of(cls, cut: Cut) -> "WholeCut":
        """Round a cut, such that it excludes no more than before."""
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
    """Return the cheapest numbers of machines of each type; None where none satisfies the cuts.

    Parameters
    ----------
    above, below
        Least cost, and the cost that must not be reached, in units.
    tried
        Numbers that are not wanted.
    """
    cheapest = solve_counts(
        Prices.of(catalogue).numbers,
        [(offer.at_least, offer.at_most) for offer in catalogue.offers],
        [WholeCut.of(cut) for cut in cuts],
        MOST_WORK,
        above=above,
        below=below,
        tried=tried,
    )
    return cheapest.counts


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

    Parameters
    ----------
    limits
        Fewest and most machines of each type.
    work
        Deterministic seconds of the solver.
    above, below, tried
        As for `cheapest_counts`.
    """
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    x = [model.new_int_var(low, high, "") for low, high in limits]
    for cut in cuts:
        model.add(sum(z * n for z, n in zip(cut.worth, x, strict=True)) >= cut.demand)
    cost = sum(n * y for n, y in zip(prices, x, strict=True))
    model.add(cost >= above)
    if below is not None:
        model.add(cost < below)
    for counts in tried:
        differs = [model.new_bool_var("") for _ in x]
        for y, n, d in zip(x, counts, differs, strict=True):
            model.add(y != n).only_enforce_if(d)
        model.add_bool_or(differs)
    model.minimize(cost)
    solution = solve_model(model, Effort(None, work, workers=1, seed=0))
    value_of = solution.value_of
    cheapest = None if value_of is None else tuple(value_of(y) for y in x)
    return CheapestCounts(cheapest, solution.bound)


def least_cost(cuts: Iterable[Cut], catalogue: Catalogue, goal: int) -> Fraction:
    """Return a cost, at most ``goal`` units, that no numbers that satisfy the cuts are below.

    Every number of machines is refuted of which the cost is below the goal: one type after the
    other, as long as no cut alone shows that the rest costs too much. Where that takes too many
    steps, the bound is that of the best cut.
    """
    prices, whole = Prices.of(catalogue), [WholeCut.of(cut) for cut in cuts]
    single = max([0, *(_rest(cut, prices, catalogue, 0, cut.demand) for cut in whole)])
    fixed = prices.cost([offer.at_least for offer in catalogue.offers])
    floor = min(goal, max(single, fixed))
    search = _Refutation(prices, whole, catalogue)
    low = goal if floor < goal and search.refutes(goal) else floor
    return low * prices.unit


class _Refutation:
    """Depth-first search for numbers of machines below a cost."""

    def __init__(self, prices: Prices, cuts: list[WholeCut], catalogue: Catalogue) -> None:
        self._prices, self._cuts, self._catalogue = prices, cuts, catalogue
        self._steps = 0

    def refutes(self, goal: int) -> bool:
        """Whether no numbers of machines satisfy the cuts below the goal."""
        self._steps = 0
        return self._refuted(0, goal - 1, [cut.demand for cut in self._cuts])

    def _refuted(self, t: int, money: int, needs: list[int]) -> bool:
        self._steps += 1
        if self._steps > MOST_STEPS or money < 0:
            return money < 0
        rests = (
            _rest(cut, self._prices, self._catalogue, t, need)
            for cut, need in zip(self._cuts, needs, strict=True)
        )
        if any(rest > money for rest in rests):
            return True
        if t == len(self._prices.numbers):
            return False
        offer, number = self._catalogue.offers[t], self._prices.numbers[t]
        most = min(offer.at_most, money // number)
        return all(
            self._refuted(
                t + 1,
                money - n * number,
                [need - n * cut.worth[t] for cut, need in zip(self._cuts, needs, strict=True)],
            )
            for n in range(most, offer.at_least - 1, -1)
        )


def _rest(cut: WholeCut, prices: Prices, catalogue: Catalogue, first: int, need: int) -> int:
    """Least cost at which the types from ``first`` on satisfy what is left of a cut."""
    if need <= 0:
        return 0
    offers = sorted(
        (Fraction(prices.numbers[t], cut.worth[t]), cut.worth[t], catalogue.offers[t].at_most)
        for t in range(first, len(prices.numbers))
        if cut.worth[t]
    )
    cost, left = Fraction(0), need
    for ratio, worth, most in offers:
        taken = min(left, worth * most)
        cost, left = cost + ratio * taken, left - taken
        if left <= 0:
            return -int(-cost // 1)
    return 2**62
