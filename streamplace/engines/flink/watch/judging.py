"""Judgements of a watch, without engine and clock: what pays, and what keeps it from being done."""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import time

import numpy as np

from streamplace.control.day import HOUR, MoveTerms
from streamplace.control.policy import MakePolicy, PlanChoice, Policy, SlotObservation
from streamplace.engines.flink.watch.plans import CLEAR, JobModel, WatchPlan
from streamplace.errors import SettingError
from streamplace.io.watch_store import WatchRound
from streamplace.model.messages import counted
from streamplace.model.report import duration, percent
from streamplace.model.units import digits

RECALLED_SECONDS, LEAST_RECALLED, MOST_RECALLED = 90_000.0, 3000, 10_000
"""Time that is remembered for the policy, with the least and the largest number of rounds.

Forecasts compare the rates of now with those of the day before.
"""
LONGEST_SECONDS = 600.0
"""Longest time for which what is seen in a round counts; one look says little about hours."""
HIDDEN = 1.2
"""Assumed ratio of what arrives for held-back sources to what they emit, if that is unknown."""
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
        if start.tzinfo or end.tzinfo:
            raise SettingError(
                f"--not-between is {text!r}; its times are those of this machine's clock, so drop "
                "the time zone"
            )
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
    """Facts that guards look at besides the job's rate."""

    hour: time  # time of day
    since_move: float | None = None  # seconds since the last move was begun; None if there was none
    checkpoints_fail: bool = False  # whether checkpoints fail
    others: str = ""  # changes to the job by other controllers; empty if there are none
    watched: float = math.inf  # seconds for which the job has been watched
    is_down: bool = False  # whether the move would free TaskManagers
    # Seconds since the last move was begun, if it was one to fewer TaskManagers; else infinite.
    since_fewer: float = math.inf
    # Whether the move would take more TaskManagers although the present ones carry what arrives.
    is_ahead: bool = False
    # Seconds since a move could not be begun; infinite if the last one could.
    since_failure: float = math.inf


@dataclass(frozen=True, slots=True)
class Guards:
    """Conditions under which nothing is moved, whatever would pay."""

    # Least time between the beginnings of two moves, and for which a job is watched before it is
    # moved to fewer TaskManagers. For twice this time after such a move, a forecast alone takes
    # none back, because it still follows the higher rates of before.
    least_seconds: float = 300.0
    quiet: tuple[QuietHours, ...] = ()  # hours of maintenance, or of much traffic

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
        if now.since_failure < self.least_seconds:
            left = duration(self.least_seconds - now.since_failure)
            return f"the last move failed to begin, and is tried again in {left}"
        if now.is_ahead and now.since_fewer < 2 * self.least_seconds:
            return f"it has left TaskManagers only {duration(now.since_fewer)} ago"
        if now.is_down and now.watched < self.least_seconds:
            return f"it has been watched for {duration(now.watched)} only"
        return ""


@dataclass(slots=True)
class RateJudge:
    """Decides by a policy which plan a job should run; it remembers what it has seen."""

    make: MakePolicy  # makes the policy for plans
    seconds: float  # length of a round
    terms: MoveTerms = field(default_factory=MoveTerms)  # terms of moves
    _policy: Policy | None = field(default=None, init=False)
    _cost: tuple[float, ...] = field(default=(), init=False)
    _past: deque[WatchRound] = field(init=False)
    _unseen: deque[WatchRound] = field(init=False)
    _shown: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        most = recalled(self.seconds)
        self._past, self._unseen = deque(maxlen=most), deque(maxlen=most)

    def choose(self, seen: WatchRound) -> int:
        """Number of the plan that the job should run from now on.

        When there are other plans than before, by their costs, a new policy is made for them, and
        shown the rates of the past.
        """
        self.remember(seen)
        policy, unseen = self._policy, self._unseen
        if policy is None or seen.cost != self._cost:
            policy, unseen = self.make(self._choice(seen.cost)), self._past
            self._policy, self._cost, self._shown = policy, seen.cost, None
        level = seen.level
        for one in unseen:
            level = self._show(policy, one, seen)
        self._unseen.clear()
        return level

    def remember(self, seen: WatchRound) -> None:
        """Remember a round, also one in which no plans are known."""
        self._past.append(seen)
        self._unseen.append(seen)

    def recall(self, rounds: Sequence[WatchRound]) -> None:
        """Remember the rounds that an earlier process has seen."""
        for seen in rounds:
            self.remember(seen)

    def _show(self, policy: Policy, past: WatchRound, now: WatchRound) -> int:
        """Show a round to a policy, once for each interval that it has lasted; return its choice.

        So costs and forecasts keep pace with the clock, although a round may take longer.
        """
        number = 1 if self._shown is None else intervals(self._shown, past.time, self.seconds)
        self._shown = past.time
        choices = [
            policy.choose(_observation(past, now, past.time - left * self.seconds))
            for left in reversed(range(number))
        ]
        return choices[-1]

    def _choice(self, cost: tuple[float, ...]) -> PlanChoice:
        terms, costs = self.terms, np.array(cost)
        price = terms.price / HOUR * (costs[:, None] + costs[None, :]) / 2
        np.fill_diagonal(price, 0.0)
        return PlanChoice(costs, price, self.seconds, terms.delay, terms.outage, terms.lag)


def recalled(seconds: float) -> int:
    """Return the number of rounds of some length that are remembered.

    >>> recalled(10.0), recalled(60.0)
    (9000, 3000)
    """
    return min(MOST_RECALLED, max(LEAST_RECALLED, math.ceil(RECALLED_SECONDS / seconds)))


def intervals(before: float, now: float, seconds: float) -> int:
    """Return the number of intervals of some length that end between two rounds, at least one.

    Those of all rounds together are as many as have passed, however long each round takes.

    >>> [intervals(at - 66.0, at, 60.0) for at in (66.0, 264.0, 330.0, 660.0)]
    [1, 1, 2, 1]
    >>> intervals(0.0, 7200.0, 60.0)
    10
    """
    return max(1, round(now / seconds) - round(max(before, now - LONGEST_SECONDS) / seconds))


def _observation(past: WatchRound, now: WatchRound, at: float) -> SlotObservation:
    """An earlier round as a policy for the plans of now would have seen it at a time."""
    level, capacity = past.level, past.capacity
    if past.cost != now.cost:
        level = min(range(len(now.cost)), key=lambda i: abs(now.cost[i] - past.machines))
        capacity = now.capacity
    return SlotObservation(at, wanted_rate(past), past.backlog, level, np.array(capacity))


def wanted_rate(seen: WatchRound) -> float:
    """Tuples/s that a plan should carry: what arrives, or more where that is hidden."""
    is_hidden = seen.is_limited and not seen.is_known
    held = max(0.0, seen.arriving - seen.kept) if is_hidden else 0.0
    return seen.arriving + (HIDDEN - 1) * held


def contradicts(model: JobModel, rate: float, *, is_limited: bool) -> bool:
    """Whether a rate shows that the model of the present layout is wrong."""
    carries = model.present.carries
    is_less = is_limited and rate < carries.low * (1 - EDGE)
    return is_less or rate > carries.high * (1 + EDGE)


def target_of(model: JobModel, level: int, seen: WatchRound) -> WatchPlan | None:
    """Plan to move to, given the policy's choice; None if the job should stay.

    Fewer TaskManagers must carry what arrives now, even if a policy expects less of it soon, and
    all CPU of the job and of the TaskManagers must be known. Where the policy keeps their number, a
    better layout on as many of them is taken only if the present one does not carry the rate. A
    plan that uses no fewer TaskManagers must carry more, beyond the error with which layouts are
    compared: where no plan carries the rate, policies choose the largest one, which may be no
    better than the present layout.
    """
    plan, present = model.plans[level], model.present
    if plan.layout == present.layout:
        return None
    if plan.machines < present.machines:
        fits = plan.carries.low >= wanted_rate(seen) and not model.uncounted
        return plan if fits else None
    if level == model.level and present.carries.low >= wanted_rate(seen):
        return None
    found, now = (one.carries.value - model.kept for one in (plan, present))
    return plan if found > (1 + CLEAR) * now else None


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
    return f"{text}; it carries {carries}, limited by {model.limit} ({percent(load)} in use)"


def stay_words(model: JobModel, level: int, seen: WatchRound) -> str:
    """That a job stays, and why if its layout may not carry the rate."""
    if level < model.level and model.uncounted:
        return f"stays; fewer TaskManagers are not chosen, because {model.uncounted}"
    if level < model.level:
        return "stays; fewer TaskManagers may not carry what arrives now"
    if model.present.carries.low >= wanted_rate(seen):
        return "stays"
    if level == model.level < len(model.plans) - 1:
        return "stays; the policy does not move it yet"
    return "stays, because no layout is known that surely carries more"


def reason_words(model: JobModel, target: WatchPlan, seen: WatchRound) -> str:
    """Why a job should move, in words."""
    rate, carries, where = wanted_rate(seen), target.carries, ", ".join(target.devices)
    if target.machines < model.present.machines:
        fewer = model.present.machines - target.machines
        return f"{where} alone should carry {carries}, which saves {counted(fewer, 'TaskManager')}"
    if model.present.carries.low >= rate:
        return f"the rate may soon exceed what is carried; {where} should carry {carries}"
    return (
        f"the present layout may carry only {digits(model.present.carries.low)} of {digits(rate)} "
        f"tuples/s; {where} should carry {carries}"
    )
