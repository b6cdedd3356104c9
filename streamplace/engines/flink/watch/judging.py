"""Judgements of a watch, without engine and clock: what pays, and what keeps it from being done."""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import time

import numpy as np

from streamplace.control.day import HOUR, MoveTerms
from streamplace.control.policy import MakePolicy, PlanChoice, Policy, SlotObservation
from streamplace.engines.flink.decide.decision import is_better
from streamplace.engines.flink.watch.plans import JobModel, WatchPlan
from streamplace.errors import SettingError
from streamplace.io.watch_store import WatchRound
from streamplace.model.messages import counted
from streamplace.model.report import duration, percent
from streamplace.model.units import digits

RECALLED = 3000
"""Rounds that are remembered for the policy."""
HIDDEN = 1.2
"""Assumed ratio of what arrives for held-back sources to what they emit."""
EDGE = 0.05
"""A rate that is further above what the present layout should carry contradicts the model."""


@dataclass(frozen=True, slots=True)
class QuietHours:
    """Hours of every day in which nothing is moved, by the clock of this machine.

    >>> night = QuietHours.of("22:00-06:30")
    >>> time(23) in night, time(6, 30) in night, time(12) in night
    (True, False, False)
    """

    start: time
    end: time

    @classmethod
    def of(cls, text: str) -> "QuietHours":
        """Parse hours such as ``"08:00-18:00"``."""
        try:
            start, end = (time.fromisoformat(part.strip()) for part in text.split("-"))
        except ValueError:
            raise SettingError(
                f"--not-between is {text!r}; it must be two times, such as 08:00-18:00"
            ) from None
        if start == end:
            raise SettingError(f"--not-between is {text!r}; its times must differ")
        return cls(start, end)

    def __contains__(self, now: time) -> bool:
        if self.start < self.end:
            return self.start <= now < self.end
        return now >= self.start or now < self.end

    def __str__(self) -> str:
        return f"{self.start:%H:%M}-{self.end:%H:%M}"


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Facts that guards look at besides the job's rate.

    Attributes
    ----------
    hour
        Time of day.
    since_move
        Seconds since the last move was begun; None if there was none.
    checkpoints_fail
        Whether checkpoints fail.
    others
        What others have changed about the job; empty if nothing.
    watched
        Seconds for which the job has been watched.
    is_down
        Whether the move would leave TaskManagers.
    """

    hour: time
    since_move: float | None = None
    checkpoints_fail: bool = False
    others: str = ""
    watched: float = math.inf
    is_down: bool = False


@dataclass(frozen=True, slots=True)
class Guards:
    """Conditions under which nothing is moved, whatever would pay.

    Attributes
    ----------
    least_seconds
        Least time between the beginnings of two moves, and for which a job is watched before it is
        moved to fewer TaskManagers.
    quiet
        Hours of maintenance, or of much traffic.
    """

    least_seconds: float = 300.0
    quiet: tuple[QuietHours, ...] = ()

    def hold(self, now: Circumstances) -> str:
        """Why nothing is moved now; empty if something may be."""
        if now.others:
            return f"another controller acts on this job: {now.others}"
        if now.checkpoints_fail:
            return "its checkpoints fail"
        for hours in self.quiet:
            if now.hour in hours:
                return f"nothing is moved between {hours.start:%H:%M} and {hours.end:%H:%M}"
        if now.since_move is not None and now.since_move < self.least_seconds:
            left = duration(self.least_seconds - now.since_move)
            return f"the last move is too recent (for {left} more)"
        if now.is_down and now.watched < self.least_seconds:
            return f"it has been watched for {duration(now.watched)} only"
        return ""


@dataclass(slots=True)
class RateJudge:
    """Decides by a policy which plan a job should run; it remembers what it has seen.

    Attributes
    ----------
    make
        Makes the policy for plans.
    seconds
        Length of a round.
    terms
        Terms of moves.
    """

    make: MakePolicy
    seconds: float
    terms: MoveTerms = field(default_factory=MoveTerms)
    _policy: Policy | None = None
    _cost: tuple[float, ...] = ()
    _past: deque[WatchRound] = field(default_factory=lambda: deque(maxlen=RECALLED))

    def choose(self, seen: WatchRound) -> int:
        """Number of the plan that the job should run from now on.

        When there are other plans than before, by their costs, a new policy is made for them, and
        shown the rates of the past.
        """
        if self._policy is None or seen.cost != self._cost:
            self._policy, self._cost = self.make(self._choice(seen.cost)), seen.cost
            for past in self._past:
                self._policy.choose(_observation(past, seen))
        self._past.append(seen)
        return self._policy.choose(_observation(seen, seen))

    def recall(self, rounds: Sequence[WatchRound]) -> None:
        """Remember the rounds that an earlier process has seen."""
        self._past.extend(seen for seen in rounds if seen.level >= 0)

    def _choice(self, cost: tuple[float, ...]) -> PlanChoice:
        terms, costs = self.terms, np.array(cost)
        price = terms.price / HOUR * (costs[:, None] + costs[None, :]) / 2
        np.fill_diagonal(price, 0.0)
        return PlanChoice(costs, price, self.seconds, terms.delay, terms.outage, terms.lag)


def _observation(past: WatchRound, now: WatchRound) -> SlotObservation:
    """An earlier round as a policy for the plans of now would have seen it."""
    level, capacity = past.level, past.capacity
    if past.cost != now.cost:
        machines = past.cost[past.level]
        level = min(range(len(now.cost)), key=lambda i: abs(now.cost[i] - machines))
        capacity = now.capacity
    return SlotObservation(past.time, wanted_rate(past), past.backlog, level, np.array(capacity))


def wanted_rate(seen: WatchRound) -> float:
    """Tuples/s that a plan should carry: what arrives, or more where that is hidden."""
    held = max(0.0, seen.arriving - seen.kept) if seen.is_limited else 0.0
    return seen.arriving + (HIDDEN - 1) * held


def contradicts(model: JobModel, rate: float, *, is_limited: bool) -> bool:
    """Whether a rate shows that the model of the present layout is wrong."""
    carries = model.present.carries
    is_less = is_limited and rate < carries.low * (1 - EDGE)
    return is_less or rate > carries.high * (1 + EDGE)


def target_of(model: JobModel, level: int, seen: WatchRound) -> WatchPlan | None:
    """Plan to move to, given the policy's choice; None if the job should stay.

    Fewer TaskManagers must carry what arrives now, even if a policy expects less of it soon. Where
    the policy keeps their number, a better layout on as many of them is taken only if the present
    one does not carry the rate. A plan that uses no fewer TaskManagers
    must carry more, beyond the error with which layouts are compared: where no plan carries the
    rate, policies choose the largest one, which may be no better than the present layout.
    """
    plan, present = model.plans[level], model.present
    if plan.layout == present.layout:
        return None
    if plan.machines < present.machines:
        return plan if plan.carries.low >= wanted_rate(seen) else None
    if level == model.level and present.carries.low >= wanted_rate(seen):
        return None
    found, now = (one.carries.value - model.kept for one in (plan, present))
    return plan if is_better(found, now) else None


def state_words(seen: WatchRound, model: JobModel | None) -> str:
    """Rate of a job, and the load of what limits it, in words."""
    blocked = ", held back" if seen.is_limited else ""
    waits = f", {seen.backlog:.4g} wait" if seen.backlog else ""
    text = (
        f"{digits(seen.rate)} tuples/s{blocked}{waits} on {counted(seen.machines, 'TaskManager')}"
    )
    if model is None:
        return text
    carries = model.present.carries
    load = min(1.0, seen.rate / carries.value) if carries.value else 1.0
    return f"{text}; {model.limit} is used to {percent(load)}, and carries {carries}"


def stay_words(model: JobModel, level: int, seen: WatchRound) -> str:
    """That a job stays, and why if its layout may not carry the rate."""
    if level < model.level:
        return "stays; fewer TaskManagers may not carry what arrives now"
    if model.present.carries.low >= wanted_rate(seen):
        return "stays"
    if level == model.level < len(model.plans) - 1:
        return "stays; the policy does not move it yet"
    return "stays, because no layout is known that surely carries more"


def reason_words(model: JobModel, target: WatchPlan, seen: WatchRound) -> str:
    """Why a job should move, in words."""
    rate, carries = wanted_rate(seen), target.carries
    where = ", ".join(target.devices)
    if target.machines < model.present.machines:
        fewer = model.present.machines - target.machines
        return f"{where} alone should carry {carries}, which saves {counted(fewer, 'TaskManager')}"
    if model.present.carries.low >= rate:
        return f"the rate may soon exceed what is carried; {where} should carry {carries}"
    return (
        f"the present layout may carry only {digits(model.present.carries.low)} of {digits(rate)} "
        f"tuples/s; {where} should carry {carries}"
    )
