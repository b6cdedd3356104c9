"""Work function: a rule with a proven ratio, and a forecast that may deviate within a budget."""

import numpy as np

from streamplace.control.forecast import NeedForecast
from streamplace.control.policy import PlanChoice, SlotObservation, policy
from streamplace.model.arrays import Bools, Floats

OVERLOAD = 1e4
"""Cost of a plan that does not carry the need, as a multiple of the most expensive plan."""
CATCH_UP = 300.0
"""Seconds in which a backlog should be drained."""
PATIENCE = 4.0
"""Factor of move prices in decisions by the forecast, because it is often wrong."""
HORIZON_FACTOR = 24.0
"""Horizon, as a multiple of the longest time whose machines cost as much as a move."""
FACTOR, MOVES = 1.5, 4.0
"""The forecast may cost at most FACTOR times the rule plus MOVES times the largest move price."""


@policy("work-function")
class WorkFunctionPolicy:
    """Follow a forecast, as long as that costs little more than the best rule without foresight.

    For each plan k the work function w(k) is the least cost of the past if the job ended there,

        w'(k) = min over plans j of (w(j) + c(j) + price(j, k)),

    with the cost c(j) of the interval, prohibitive if plan j does not carry the need. Among the
    plans that the best past does not leave, the rule chooses the one with the least
    w'(k) + price(present, k). Whatever the rates are, that costs at most 2K - 1 times the cheapest
    schedule of K plans, plus a constant, if the need is known when its interval begins (Borodin,
    Linial and Saks, 1992); without foresight no rule is better in general.

    The job follows the cheapest sequence of plans for the needs that `NeedForecast` predicts for
    the next twelve hours or more, decided anew after each interval. The rule decides beside it
    without moving the job. As soon as the job, after a move to the plan of the rule, would have
    cost more than `FACTOR` times the rule and `MOVES` of the dearest moves, it takes the plan of
    the rule.

    So the job never costs more than this limit. If the limit held one interval ago, it holds for
    the plan of the rule now: as prices obey the triangle inequality, the job then pays at most what
    the rule pays now. The cost is at most `FACTOR` (2K - 1) times the cost of the cheapest schedule
    for the predicted needs of each next interval, plus a constant, whatever the forecast says of
    later intervals. The time of moves, in which both plans cost, is not counted.
    """

    def __init__(self, plans: PlanChoice) -> None:
        self._plans = plans
        self._forecast = NeedForecast(plans.seconds, max(0.0, plans.lag - plans.interruption))
        self._hours = plans.seconds / 3600.0
        self._lengths = self._period_hours()
        self._work: Floats | None = None
        self._rule, self._rule_cost, self._cost = -1, 0.0, 0.0
        self._allowed = MOVES * float(plans.price.max())
        self._counted: tuple[int, int, Floats] | None = None

    def choose(self, observed: SlotObservation) -> int:
        """The plan by the forecast, or if that is too expensive, by the rule."""
        plans = self._plans
        needs = self._forecast.after(observed.rate)  # tuples/s in the periods to come
        needs[0] += observed.backlog / CATCH_UP
        fits = _fitting(observed.capacity, float(needs[0]))
        cost = self._costs(fits) * self._hours
        before, self._rule = self._rule, self._level_by_rule(observed, cost, fits)
        moved = 0.0 if before < 0 else float(plans.price[before, self._rule])
        self._rule_cost += moved + float(cost[self._rule])
        self._cost -= self._unspent(observed.level)
        level = self._level_by_forecast(observed, needs, fits)
        spent = self._cost + plans.price[observed.level, level] + cost[level]
        if spent + plans.price[level, self._rule] > FACTOR * self._rule_cost + self._allowed:
            level = self._rule
            spent = self._cost + plans.price[observed.level, level] + cost[level]
        self._cost, self._counted = float(spent), (observed.level, level, cost)
        return level

    def _unspent(self, level: int) -> float:
        """Cost that was counted for the last decision, less the cost of where the job is."""
        if self._counted is None:
            return 0.0
        (before, after, cost), price = self._counted, self._plans.price
        return float(price[before, after] + cost[after] - price[before, level] - cost[level])

    def _period_hours(self) -> Floats:
        """Hours for which each period of the forecast counts; the last one includes later time."""
        plans = self._plans
        mean_cost = (plans.cost[:, None] + plans.cost[None, :]) / 2
        worth = round(float((plans.price / np.maximum(mean_cost, 1e-300)).max()), 9)
        hours = np.asarray(self._forecast.lengths * self._hours, np.float64)
        hours[-1] += max(0.0, HORIZON_FACTOR * worth - float(hours.sum()))
        return hours

    def _costs(self, fits: Bools) -> Floats:
        """Cost of each plan per hour, prohibitive if it does not carry the need."""
        return np.where(fits, self._plans.cost, OVERLOAD * self._plans.cost[-1])

    def _level_by_rule(self, observed: SlotObservation, cost: Floats, fits: Bools) -> int:
        """The plan with the least work function and price from where the rule is."""
        price = self._plans.price
        at = observed.level if self._rule < 0 else self._rule
        stayed = (price[at] if self._work is None else self._work) + cost
        work = (stayed[:, None] + price).min(axis=0)
        self._work = work - work.min()
        ends = stayed <= work + 1e-12 * abs(work.max())  # the best past does not leave these
        return int(np.where(ends & fits, work + price[at], np.inf).argmin())

    def _level_by_forecast(self, observed: SlotObservation, needs: Floats, fits: Bools) -> int:
        """The first plan of the cheapest sequence for the periods to come."""
        price = PATIENCE * self._plans.price
        hours = self._lengths
        later_cost = np.zeros(len(self._plans))
        for need, length in zip(needs[:0:-1].tolist(), hours[:0:-1].tolist(), strict=True):
            carried = _fitting(observed.capacity, need)
            later_cost = (price + (self._costs(carried) * length + later_cost)[None, :]).min(axis=1)
        total = price[observed.level] + self._costs(fits) * float(hours[0]) + later_cost
        best = int(total.argmin())
        return observed.level if total[observed.level] <= total[best] * (1 + 1e-12) else best


def _fitting(capacity: Floats, need: float) -> Bools:
    """Whether each plan carries the need; if none does, the largest counts as carrying it."""
    fits = capacity >= need
    fits[-1] |= not fits.any()
    return fits
