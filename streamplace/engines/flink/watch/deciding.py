"""Decisions of a watch, without engine and clock: whether a job stays, and where it goes if not.

A job that keeps up stays, unless a policy finds that fewer TaskManagers pay. One that falls behind
goes to a layout that should carry the arriving rate, or else to the one that may carry the most.
The capacity of a layout is measured, or else predicted. An uncertain or wrong model forbids
nothing, because a move is a trial: if the job carries less there than in the best measured layout,
it returns.
"""

import math
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import time

import numpy as np

from streamplace.control.policy import MakePolicy, PlanChoice, Policy, SlotObservation
from streamplace.control.problem import MoveTerms
from streamplace.display.report import duration, percent
from streamplace.engines.flink.constants import (
    BACKOFF_SECONDS,
    DAY_SECONDS,
    HIDDEN,
    OLD_SECONDS,
    WORTHWHILE,
)
from streamplace.engines.flink.decide.improving import Trial
from streamplace.engines.flink.layout import Layout
from streamplace.errors import SettingError
from streamplace.io.ledger import NOISE
from streamplace.io.watches import (
    FAILED,
    MOVED,
    RETURNED,
    UNBEGUN,
    WatchDecision,
    WatchRound,
)
from streamplace.model.message_text import counted
from streamplace.model.prediction_intervals import RateInterval
from streamplace.model.units import digits
from streamplace.planning.result import HOUR


@dataclass(frozen=True, slots=True)
class LayoutOption:
    """A layout that a job has or may have."""

    layout: Layout
    carries: RateInterval  # tuples/s: measured, or else predicted
    measured: float | None = None  # tuples/s that were measured there; None if none were
    optimistic: float = 0.0  # tuples/s that it may carry: `Proposal.optimistic`
    is_counted: bool = True  # whether the prediction rests on all CPU of the job
    moves: int = 0  # number of subtasks that are elsewhere now
    order: int = 0  # position among layouts of equal predictions
    kept: float = 0.0  # tuples/s of sources that keep up while others are held back
    spread: float = 0.0  # spread of the profile from which it was predicted

    @property
    def devices(self) -> list[str]:
        """TaskManagers that it uses."""
        return sorted(self.layout.devices)

    @property
    def machines(self) -> int:
        """Number of TaskManagers that it uses."""
        return len(self.devices)

    @property
    def sure(self) -> float:
        """Lower end of its interval; the measured rate if the prediction lacks CPU of the job."""
        return self.carries.low if self.is_counted else (1 - NOISE) * (self.measured or 0.0)

    def tried(self, trial: Trial) -> "LayoutOption":
        """Return the same layout with its measured rate.

        A job that kept up may carry more than it was offered.
        """
        if trial.is_limited:
            low, high = (1 - NOISE) * trial.rate, (1 + NOISE) * trial.rate
            carries, optimistic = RateInterval(low, trial.rate, high), trial.rate
        else:
            carries = RateInterval(*(max(end, trial.rate) for end in self.carries))
            optimistic = max(self.optimistic, trial.rate)
        return replace(self, carries=carries, measured=trial.rate, optimistic=optimistic)

    def __str__(self) -> str:
        where = ", ".join(self.devices)
        if self.measured is not None:
            return f"{where} carried {digits(self.measured)} tuples/s (measured)"
        return f"{where} should carry {self.carries}"


def known_options(
    here: LayoutOption, others: Sequence[LayoutOption], trials: Sequence[Trial]
) -> tuple[LayoutOption, list[LayoutOption]]:
    """Present layout and the others with their measured rates, without those that failed.

    ``trials``: layouts in which the job has run, each once; some may have no prediction.
    """
    new = [
        LayoutOption(trial.layout, RateInterval(0.0, 0.0, 0.0))
        for trial in trials
        if trial.layout.keys() == here.layout.keys()
        and not any(trial.is_at(one.layout) for one in (here, *others))
    ]
    found: list[LayoutOption] = []
    for one in (here, *others, *new):
        trial = next((trial for trial in trials if trial.is_at(one.layout)), None)
        if trial is not None and trial.runs:
            found.append(one.tried(trial))
        elif trial is None or one is here:  # where it failed earlier, it may run now
            found.append(one)
    return found[0], found[1:]


@dataclass(slots=True)
class TriedLayouts:
    """Layouts of a job in the last day, with the last measured rate of each."""

    _trials: list[tuple[float, Trial]] = field(default_factory=list, init=False)

    def at(self, now: float) -> list[Trial]:
        """Layouts that are remembered, each once."""
        self._trials = [(when, one) for when, one in self._trials if now - when < DAY_SECONDS]
        return [trial for _, trial in self._trials]

    def add(self, trial: Trial, now: float) -> None:
        """Remember a trial in place of earlier ones of its layout.

        A job that keeps up at a lower rate does not show that the layout carries no more.
        """
        before = next((one for one in self.at(now) if one.is_at(trial.layout)), None)
        is_less = before is not None and before.rate >= trial.rate
        if is_less and not (trial.is_limited or trial.failure):
            return
        self._trials = [one for one in self._trials if not one[1].is_at(trial.layout)]
        self._trials.append((now, trial))

    def recall(self, moves: Sequence[tuple[float, WatchDecision]]) -> None:
        """Remember where moves have led, given when each was decided."""
        for number, (then, one) in enumerate(moves):
            layout = Layout.from_json(one.layout)
            if one.state == MOVED and one.measured:
                is_left = [later.kind for _, later in moves[number + 1 : number + 2]] == ["return"]
                self.add(Trial("", layout, one.measured, is_limited=is_left), then)
            elif one.state in (RETURNED, FAILED):
                self.add(Trial("", layout, 0.0, failure=one.outcome or one.state), then)


def wasted(moves: Sequence[WatchDecision]) -> int:
    """Number of consecutive last moves that have failed, or after which the job returned."""
    number, was_left = 0, False
    for one in reversed([one for one in moves if one.state != UNBEGUN]):
        if one.state == MOVED and one.kind != "return" and not was_left:
            break
        number += one.state != MOVED or was_left
        was_left = one.state == MOVED and one.kind == "return"
    return number


@dataclass(frozen=True, slots=True)
class WatchChoice:
    """Where a job should run, and why."""

    words: str
    target: LayoutOption | None = None  # None to stay
    returns: bool = False  # whether a try is over, and the job goes back


def choose(
    here: LayoutOption,
    others: Sequence[LayoutOption],
    most: int,
    seen: WatchRound,
    *,
    is_tried: bool,
) -> WatchChoice:
    """Decide where a job should run.

    Parameters
    ----------
    here, others
        The present layout, and those that the job may have.
    most
        Number of TaskManagers that the policy chooses.
    is_tried
        Whether this is the first measurement after a move.
    """
    if seen.falls_behind is None:
        return WatchChoice("the next round shows whether it keeps up")
    if not seen.falls_behind:
        return _fewer(here, others, most, seen)
    measured = [one for one in (here, *others) if one.measured is not None]
    best = max(measured, key=lambda one: one.measured or 0.0, default=here)
    carried = best.measured or 0.0
    rate = seen.rate if here.measured is None else here.measured
    is_worse = best is not here and rate < (1 - NOISE) * carried
    if is_tried and is_worse:
        return WatchChoice(f"only {digits(rate)} tuples/s are carried here; {best}", best, True)
    allowed = [one for one in others if one.machines <= max(most, here.machines)]
    behind = f"it falls behind at {digits(wanted_rate(seen))} tuples/s"
    if fits := [one for one in allowed if one.sure >= wanted_rate(seen)]:
        target = min(fits, key=lambda one: (one.machines, one.moves, -one.carries.value))
        return WatchChoice(f"{behind}; {target}", target)
    target = max(allowed, key=lambda one: (one.optimistic, -one.order, -one.moves), default=here)
    if target.optimistic > (1 + WORTHWHILE) * max(carried, rate):
        where = ", ".join(target.devices)
        hope = f"{where} may carry up to {digits(target.optimistic)}"
        if math.isinf(target.optimistic):
            hope = f"the capacity of {where} is unknown"
        return WatchChoice(f"{behind}; {hope}", target)
    if is_worse and best in allowed:
        return WatchChoice(f"{behind}; {best}", best)
    if len(allowed) < len(others):
        return WatchChoice("stays; the policy does not move it yet")
    return WatchChoice("stays, because no known layout may carry more")


def _fewer(
    here: LayoutOption, others: Sequence[LayoutOption], most: int, seen: WatchRound
) -> WatchChoice:
    """Decide whether a job that keeps up moves to fewer TaskManagers.

    These must carry the rate that arrives now, even if a policy expects a lower one soon.
    """
    if most >= here.machines:
        return WatchChoice("keeps up, stays")
    if seen.shows_capacity:
        return WatchChoice("keeps up, stays; it drains its backlog")
    fits = [one for one in others if one.machines <= most and one.sure >= wanted_rate(seen)]
    if not fits:
        return WatchChoice("keeps up, stays; fewer TaskManagers may not carry the present rate")
    target = max(fits, key=lambda one: one.sure)
    saved = counted(here.machines - target.machines, "TaskManager")
    return WatchChoice(f"{target}, which saves {saved}", target)


def wanted_rate(seen: WatchRound) -> float:
    """Tuples/s that a layout should carry: the arriving rate, with an allowance if it is hidden."""
    is_hidden = seen.is_limited and not seen.is_known
    held = max(0.0, seen.arriving - seen.kept) if is_hidden else 0.0
    return seen.arriving + (HIDDEN - 1) * held


def state_words(seen: WatchRound) -> str:
    """State of a job in words: rate, lag and back-pressure, and the capacity of its layout."""
    where = f"{digits(seen.rate)} tuples/s on {counted(seen.machines, 'TaskManager')}"
    lag = f", lag {seen.backlog:.4g}" if seen.backlog else ""
    if seen.growth is not None and abs(seen.growth) >= 1:
        lag += f" ({seen.growth:+.4g}/s)"
    if seen.falls_behind and seen.growth is None:
        lag += ", held back"
    if seen.value is None:
        return where + lag
    load = percent(min(1.0, seen.rate / seen.value) if seen.value else 1.0)
    if seen.shows_capacity:
        return f"{where}{lag}; it carries {digits(seen.value)} tuples/s (measured)"
    carries = RateInterval(seen.low or 0.0, seen.value, seen.high or 0.0)
    return f"{where}{lag}; it carries {carries}, limited by {seen.limit} ({load} in use)"


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
        with suppress(ValueError):
            start, end = (time.fromisoformat(part.strip()) for part in text.split("-"))
            if start != end and not (start.tzinfo or end.tzinfo):
                return cls(start, end)
        raise SettingError(
            f"--not-between is {text!r}; it must be two times of this machine's clock, such as "
            "08:00-18:00"
        )

    def __contains__(self, now: time) -> bool:
        if self.start < self.end:
            return self.start <= now < self.end
        return now >= self.start or now < self.end

    def __str__(self) -> str:
        return f"{self.start:%H:%M} and {self.end:%H:%M}"


@dataclass(frozen=True, slots=True)
class Guards:
    """Conditions under which nothing is moved, whatever would pay."""

    # Shortest time from the beginning of a move to the next, and for which a job is watched before
    # it is moved to fewer TaskManagers. It doubles with each consecutive move that was in vain.
    least_seconds: float = 300.0
    quiet: tuple[QuietHours, ...] = ()  # hours of maintenance, or of much traffic

    def hold(
        self,
        choice: WatchChoice,
        machines: int,
        hour: time,
        *,
        since_move: float = math.inf,
        failures: int = 0,
        checkpoints_fail: bool = False,
        watched: float = math.inf,
    ) -> str:
        """Why nothing is moved now; empty if something may be.

        A job returns from a trial at any time.

        Parameters
        ----------
        machines
            Number of TaskManagers on which the job is.
        hour
            Time of day.
        since_move, watched
            Seconds since a move was begun, and for which the job has been watched.
        failures
            Number of the last moves that failed, or after which the job returned.
        """
        if checkpoints_fail:
            return "its checkpoints fail"
        if choice.returns:
            return ""
        for hours in self.quiet:
            if hour in hours:
                return f"nothing is moved between {hours}"
        pause = self.least_seconds  # it doubles with each move in vain
        if failures:
            pause = min(DAY_SECONDS, max(pause, BACKOFF_SECONDS) * 2.0 ** min(failures, 9))
        if (left := pause - since_move) > 0:
            return f"the next move must wait for {duration(left)}"
        is_down = choice.target is not None and choice.target.machines < machines
        if is_down and watched < self.least_seconds:
            return f"it has only been watched for {duration(watched)}"
        return ""


@dataclass(slots=True)
class RateJudge:
    """Decides by a policy how many TaskManagers a job should use; remembers the last rounds."""

    make: MakePolicy  # makes the policy for numbers of TaskManagers
    seconds: float  # length of a round
    terms: MoveTerms = field(default_factory=MoveTerms)  # terms of moves
    _past: deque[WatchRound] = field(init=False)
    _policy: Policy | None = field(default=None, init=False)
    _cost: tuple[float, ...] = field(default=(), init=False)
    _shown: float = field(default=-math.inf, init=False)  # time of the last round that it has seen

    def __post_init__(self) -> None:
        self._past = deque(maxlen=self.remembered)

    @property
    def remembered(self) -> int:
        """Number of rounds that are remembered, those of a day and an hour.

        Forecasts compare the last hour with that of the day before, also in a new policy.
        """
        return math.ceil((DAY_SECONDS + HOUR) / self.seconds)

    def remember(self, seen: WatchRound) -> None:
        """Remember a round, even one without known plans, or of an earlier process."""
        self._past.append(seen)

    def choose(self, seen: WatchRound) -> int:
        """Number of TaskManagers that the job should use; the present one if no plans are known.

        A new policy is made if the costs of the plans have changed. It replays all rounds that are
        new to it, each once per interval that it lasted (`OLD_SECONDS` at most), so that its costs
        and forecasts keep pace with the clock.
        """
        self._past.append(seen)
        if not seen.cost:
            return seen.machines
        if self._policy is None or seen.cost != self._cost:
            self._policy, self._cost = self.make(self._choice(seen.cost)), seen.cost
            self._shown = self._past[0].time - self.seconds
        level = seen.level
        for one in self._past:
            if one.time <= self._shown:
                continue
            since = max(self._shown, one.time - OLD_SECONDS)
            number = max(1, round(one.time / self.seconds) - round(since / self.seconds))
            for left in reversed(range(number)):
                at = one.time - left * self.seconds
                level = self._policy.choose(_observation(one, seen, at))
            self._shown = one.time
        return int(seen.cost[level])

    def _choice(self, cost: tuple[float, ...]) -> PlanChoice:
        terms, costs = self.terms, np.array(cost)
        price = terms.price / HOUR * (costs[:, None] + costs[None, :]) / 2
        np.fill_diagonal(price, 0.0)
        return PlanChoice(costs, price, self.seconds, terms.delay, terms.interruption, terms.lag)


def _observation(past: WatchRound, now: WatchRound, at: float) -> SlotObservation:
    """An earlier round as the input of a policy for the present plans, at a time."""
    level, capacity = past.level, past.capacity
    if past.cost != now.cost:
        level = min(range(len(now.cost)), key=lambda i: abs(now.cost[i] - past.machines))
        capacity = now.capacity
    return SlotObservation(at, wanted_rate(past), past.backlog, level, np.array(capacity))
