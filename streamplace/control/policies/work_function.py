"""Work function: up at once, down when staying has cost as much as moving."""

import numpy as np

from streamplace.control.policy import PlanChoice, SlotObservation, policy
from streamplace.model.arrays import Floats

OVERLOAD = 1e4
"""A plan that does not carry the rate counts as so many times the dearest plan."""
MISSED = 0.005
"""Part of the intervals in which the rate may grow by more than is allowed for."""
STEP = 0.02
"""By how much what is allowed for rises after a miss; it falls slowly otherwise."""
CATCH_UP = 300.0
"""Seconds in which a backlog is to be worked off."""
SAFETY = 0.5
"""Part of the lag that tuples may have which rates that were not foreseen may use up."""
DAY = 86_400.0
SOONER, LATER = 0.5, 2.0
"""Factors of the price of moving down where yesterday's rates say that it pays, or does not."""


@policy("work-function")
class WorkFunctionPolicy:
    """Take the plan that the best schedule so far ends in, or stay as long as that costs less.

    For each plan k the work function w(k) is the least cost of the past if the job ended there,

        w'(k) = min over plans j of (w(j) + c(j) + price(j, k)),

    with the cost c(j) of the interval, prohibitive where plan j does not carry it. The job goes to
    the plan of least w'(k) + price(present, k) of those in which the best past stays. So it goes up
    at once, and down when a plan that is too large has cost as much as moving. Whatever the rates
    do, that costs at most 2K - 1 times the cheapest schedule of K plans, plus a constant, if every
    rate is known when its interval begins (Borodin, Linial and Saks, 1992); without foresight no
    rule does better in general. Yesterday's rates halve or double the price of moving down, which
    changes the factor by no more than that.

    The rate of the last interval stands for the next, raised by what rates have grown by from one
    interval to the next: a quantile that follows the data (Gibbs and Candès, 2021), so that it is
    exceeded rarely whatever they do. A part of the lag that tuples may have is deducted.
    """

    def __init__(self, plans: PlanChoice) -> None:
        self._plans = plans
        self._work: Floats | None = None
        self._growth = 0.05
        self._rates: list[float] = []
        reaction = plans.seconds + plans.delay
        self._deficit = SAFETY * max(0.0, plans.lag - plans.outage) / (reaction + plans.lag)

    def choose(self, seen: SlotObservation) -> int:
        """The plan of least work function and price."""
        plans = self._plans
        needed = self._needed(seen)
        hours = plans.seconds / 3600.0
        fits = seen.capacity >= needed
        fits[-1] |= not fits.any()
        cost = np.where(fits, plans.cost, OVERLOAD * plans.cost[-1]) * hours
        stayed = (plans.price[seen.level] if self._work is None else self._work) + cost
        work = (stayed[:, None] + plans.price).min(axis=0)
        self._work = work - work.min()
        ends = stayed <= work + 1e-12 * abs(work.max())  # the best past does not leave these
        price = plans.price[seen.level] * self._haste(seen)
        return int(np.where(ends & fits, work + price, np.inf).argmin())

    def _needed(self, seen: SlotObservation) -> float:
        """Tuples/s that the next interval may bring, with what waits."""
        if self._rates and self._rates[-1] > 0:
            is_missed = seen.rate > self._rates[-1] * (1 + self._growth)
            self._growth += STEP * ((1 - MISSED) if is_missed else -MISSED)
            self._growth = max(0.0, self._growth)
        self._rates.append(seen.rate)
        expected = seen.rate * (1 + self._growth) * (1 - self._deficit)
        return max(seen.rate * (1 - self._deficit), expected) + seen.backlog / CATCH_UP

    def _haste(self, seen: SlotObservation) -> Floats:
        """Factor of the price of moving to each plan, by what followed at this time yesterday."""
        factor = np.ones(len(self._plans))
        day = round(DAY / self._plans.seconds)
        if len(self._rates) <= day:
            return factor
        now = len(self._rates) - 1 - day
        scale = seen.rate / max(self._rates[now], 1e-9)
        for level in range(seen.level):
            saved = self._plans.cost[seen.level] - self._plans.cost[level]
            hours = 2 * self._plans.price[seen.level, level] / saved if saved > 0 else np.inf
            steps = min(day, max(1, int(np.ceil(min(hours * 3600 / self._plans.seconds, day)))))
            coming = max(self._rates[now : now + steps]) * scale
            factor[level] = LATER if coming > seen.capacity[level] else SOONER
        return factor
