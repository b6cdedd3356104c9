"""Costs of machines at the rates that a job had: for percentiles, the peak, and each hour."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np

from streamplace.display.report import Sheet
from streamplace.errors import ProblemError
from streamplace.flink.advise.equal_pods import EqualPods
from streamplace.flink.prometheus.job_history import JobHistory
from streamplace.model.units import digits
from streamplace.planning.problem import PlannerSettings
from streamplace.planning.result import PlanResult, machines_in_words
from streamplace.planning.traces import TOTAL, RateTrace

SHARES = (0.5, 0.95, 0.99, 1.0)
"""Shares of the time in which the planned machines carry the rate."""
LEVELS = 12
"""Rates of hours are rounded up to twelfths of the peak, so that few plans are needed."""
MAX_PLANS = len(SHARES) + LEVELS
"""Maximum number of plans, among which the budget is divided."""


class RateCost(NamedTuple):
    """Cost per hour of the machines for a rate."""

    time: str  # share of the time in which the rate is not exceeded, in words
    rate: float  # tuples/s; the mean of the hours, if each has its own machines
    cost: float | None  # None if no plan was found
    machines: str


def costs_of_history(
    history: JobHistory,
    plan_at: Callable[[float, PlannerSettings], tuple[EqualPods | None, PlanResult]],
    settings: PlannerSettings,
) -> tuple[RateCost, ...]:
    """Costs of machines for shares of the time, and of machines for each hour alone.

    ``plan_at``: returns the plan for a rate. All plans together get the budget of one.
    """
    seconds = settings.budget.seconds
    budget = replace(settings.budget, seconds=seconds and seconds / MAX_PLANS)

    @cache
    def plan(rate: float) -> PlanResult | None:
        with suppress(ProblemError):
            return plan_at(rate, replace(settings, budget=budget))[1]
        return None

    return (*_shares(history, plan), *_hours(history, plan))


def _shares(history: JobHistory, plan: Callable[[float], PlanResult | None]) -> Iterator[RateCost]:
    for share in SHARES:
        rate = history.peak if share == 1 else history.level(share)
        cost, machines = None, "no plan was found"
        if (result := plan(rate)) is not None:
            cost, machines = result.cost, machines_in_words(result.machines)
        words = "peak" if share == 1 else f"{share:.0%} of the time"
        yield RateCost(words, rate, cost, machines)


def _hours(history: JobHistory, plan: Callable[[float], PlanResult | None]) -> Iterator[RateCost]:
    known = history.complete
    total = history.total[known].reshape(-1, 1)
    trace = RateTrace(history.grid.ends[known] - history.grid.step, (TOTAL,), total)
    highest = np.array([float(rates[0]) for _, rates in trace.hours()])
    levels = np.ceil(np.maximum(highest / history.peak, 1e-9) * LEVELS * (1 - 1e-9)).astype(int)
    plans = {level: plan(history.peak * level / LEVELS) for level in np.unique(levels).tolist()}
    cost = {level: result.cost for level, result in plans.items() if result is not None}
    if len(highest) > 1 and len(cost) == len(plans):
        mean = float(np.mean([cost[level] for level in levels.tolist()]))
        yield RateCost("each hour alone", float(highest.mean()), mean, "machines of its own")


def costs_sheet(costs: tuple[RateCost, ...]) -> Sheet:
    """Table of costs."""
    rows = tuple(
        (
            row.time,
            digits(row.rate),
            "—" if row.cost is None else f"{row.cost:.4g}",
            row.machines,
        )
        for row in costs
    )
    return Sheet(("for", "tuples/s", "per hour", "machines"), rows)
