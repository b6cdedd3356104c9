"""Decisions of a watch, without requests and clock: one observation in, one step out.

    state, decision = decide(state, observation, rules)

A job that keeps up, or soon will, stays, unless a policy finds that fewer TaskManagers pay. A job
that falls behind, or stays late, goes to a layout whose lowest predicted rate suffices, or else to
the layout with the highest prediction. Measured capacities replace predicted ones. A model that
contradicts measurements rules out no layout, because a move is a trial: if the job carries less
than in the best measured layout, it returns.

The job is measured after a start or a move, when it begins to fall behind, and when the last
measurement is old. The measured rates of layouts are remembered for a day.
"""

import math
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import time
from typing import NamedTuple

import numpy as np

from streamplace.control.policy import MakePolicy, Policy, SlotObservation
from streamplace.control.problem import MoveTerms
from streamplace.display.report import duration, percent
from streamplace.errors import SettingError
from streamplace.flink.constants import (
    BACKOFF_SECONDS,
    CATCH_UP_SECONDS,
    DAY_SECONDS,
    HIDDEN_RATIO,
    LAG_SECONDS,
    MAX_AGE_SECONDS,
    MAX_REPEATS,
    MIN_GAIN,
)
from streamplace.flink.decide.improving import Trial
from streamplace.flink.layout import Layout
from streamplace.flink.move.savepoints import CheckpointTotals
from streamplace.flink.watches import (
    BEGUN,
    FAILED,
    MOVED,
    RETURNED,
    UNBEGUN,
    WatchDecision,
    WatchRound,
)
from streamplace.io.ledger import NOISE
from streamplace.model.message_text import counted
from streamplace.model.prediction_intervals import RateInterval
from streamplace.model.units import digits
from streamplace.planning.result import HOUR


@dataclass(frozen=True, slots=True)
class JobSample:
    """Metrics of a running job, read for some seconds."""

    at: float  # seconds by a monotonic clock
    job: str
    rate: float  # tuples/s that its sources emit
    is_limited: bool  # whether back-pressure holds a source back
    backlog: float | None  # tuples that wait for the sources; None unless all report them
    layout: Layout
    checkpoints: CheckpointTotals  # numbers of its completed and failed checkpoints
    managers: frozenset[str]  # TaskManagers of the cluster
    started: float = 0.0  # time of its last start or restart, in ms since 1970, if Flink reports it


@dataclass(frozen=True, slots=True)
class LayoutOption:
    """A present or possible layout of a job."""

    layout: Layout
    carries: RateInterval  # tuples/s: measured, otherwise predicted
    measured: float | None = None  # measured tuples/s; None without a measurement
    counts_all_cpu: bool = True  # whether the prediction includes all CPU of the job
    is_known: bool = True  # whether the model that predicts it agrees with the measurements
    moves: int = 0  # number of subtasks that a move to it moves
    order: int = 0  # position among layouts of equal predictions
    kept: float = 0.0  # tuples/s of sources that keep up while others are held back
    spread: float = 0.0  # spread of the profile behind the prediction

    @property
    def devices(self) -> list[str]:
        """TaskManagers that it uses."""
        return sorted(self.layout.devices)

    @property
    def machines(self) -> int:
        """Number of TaskManagers that it uses."""
        return len(self.devices)

    @property
    def least_rate(self) -> float:
        """Lower end of its interval; by the measured rate if the prediction omits some CPU."""
        return self.carries.low if self.counts_all_cpu else (1 - NOISE) * (self.measured or 0.0)

    def after(self, trial: Trial) -> "LayoutOption":
        """Return the layout with its measured rate, and an interval around all measured rates.

        A job that kept up may carry more than it was offered.
        """
        if trial.is_limited:
            repeats = (*trial.repeats, trial.rate)
            low, high = (1 - NOISE) * min(repeats), (1 + NOISE) * max(repeats)
            carries = RateInterval(low, trial.rate, high)
        else:
            carries = RateInterval(*(max(end, trial.rate) for end in self.carries))
        return replace(self, carries=carries, measured=trial.rate)

    def __str__(self) -> str:
        devices = ", ".join(self.devices)
        if self.measured is not None:
            return f"{devices} carried {digits(self.measured)} tuples/s (measured)"
        return f"{devices} should carry {self.carries}"


@dataclass(frozen=True, slots=True)
class JobModel:
    """A measured job, with the predicted capacities of its layouts."""

    here: LayoutOption  # the present layout
    others: tuple[LayoutOption, ...]
    sizes: tuple[int, ...]  # numbers of TaskManagers among which a policy chooses
    limit: str = ""  # the resource that limits the present layout first
    # Sustained rate of the sources divided by their rate while they drain a backlog; below 1 if
    # some of their subtasks fall behind.
    lasting: float = 1.0


class PastMove(NamedTuple):
    """A decision to move the job for its rate."""

    at: float  # time by the clock of samples
    decision: WatchDecision


@dataclass(frozen=True, slots=True)
class RoundObservation:
    """Input of the decision in a round."""

    sample: JobSample
    hour: time  # time of day
    moves: tuple[PastMove, ...] = ()  # all moves of the watch, in order
    # The model of the job, or why it has none, if it was measured since the last observation.
    measurement: JobModel | str | None = None


class LastMeasurement(NamedTuple):
    """Time and result of the last measurement of a job."""

    sample: JobSample  # right before the measurement
    at: float  # time of its end
    was_behind: bool | None  # whether the job fell behind then; None while unknown
    model: JobModel | None  # the earlier model if the measurement failed
    failure: str = ""  # why it failed

    def is_of(self, sample: JobSample) -> bool:
        """Whether the job still has the layout and the TaskManagers of the measurement."""
        facts = (sample.job, sample.layout, sample.managers)
        return facts == (self.sample.job, self.sample.layout, self.sample.managers)


class TriedLayout(NamedTuple):
    """A layout in which the job has run, or failed to run."""

    at: float
    trial: Trial


@dataclass(frozen=True, slots=True)
class WatchState:
    """State of a watch between two rounds."""

    sample: JobSample | None = None  # the last sample
    watched: float = 0.0  # duration of the watch in seconds
    checkpoints_fail: bool = False
    moved_at: float = -math.inf  # time of the last attempted move
    returning: str = ""  # job whose return from a trial has not begun yet
    last_measurement: LastMeasurement | None = None  # None if the job has changed since
    tried: tuple[TriedLayout, ...] = ()  # layouts of the last day, each once
    n_moves: int = 0  # number of moves that the state contains

    @classmethod
    def resumed(cls, watched: float, moves: Sequence[PastMove], now: float) -> "WatchState":
        """State of a process that continues a watch."""
        if not moves:
            return cls(watched=watched)
        tried = _with_moves((), moves, now)
        return cls(None, watched, False, moves[-1].at, tried=tried, n_moves=len(moves))

    def model_at(self, sample: JobSample) -> JobModel | None:
        """Model of the last measurement, if only the rate of the job has changed since.

        If only some sources were held back then, the model is not valid for a job that keeps up.
        """
        last = self.last_measurement
        model = None if last is None or not last.is_of(sample) else last.model
        return None if model is not None and model.here.kept and not sample.is_limited else model

    def sustained(self, sample: JobSample) -> float:
        """Sustained tuples/s of the layout, for a job that reads as fast as it can.

        The rate is lower if some subtasks fall behind, as measured in this layout.
        """
        model = self.model_at(sample)
        return sample.rate if model is None else model.lasting * sample.rate

    def needs_measurement(self, sample: JobSample, falls_behind: bool | None) -> bool:
        """Whether there is no valid measurement of a job.

        A measurement of a job that kept up may show less than its capacity, so it is repeated when
        the job falls behind. A failed measurement is valid until the job changes.
        """
        last = self.last_measurement
        if last is None or not last.is_of(sample):
            return True
        has_result = bool(last.failure) or self.model_at(sample) is not None
        has_fallen_behind = bool(falls_behind) and last.was_behind is False
        return not has_result or sample.at - last.at >= MAX_AGE_SECONDS or has_fallen_behind


@dataclass(frozen=True, slots=True)
class WatchChoice:
    """Chosen layout of a job, with the reason."""

    words: str
    target: LayoutOption | None = None  # None to stay
    returns: bool = False  # whether the job returns from a trial


@dataclass(frozen=True, slots=True)
class Measure:
    """Step: measure the job, and observe it again."""

    words: str  # state of the job and reason
    trials: tuple[Trial, ...]  # layouts that the measurement takes into account


@dataclass(frozen=True, slots=True)
class FinishMove:
    """Step: finish the last move, which has no outcome yet."""


@dataclass(frozen=True, slots=True)
class Conclude:
    """Step: log the round, and carry out its choice."""

    facts: WatchRound
    here: LayoutOption
    choice: WatchChoice
    moves: bool  # whether the job is moved to the target of the choice
    # The last move and the first tuples/s measured after it, to store beside the prediction.
    measured_move: tuple[WatchDecision, float] | None = None


@dataclass(frozen=True, slots=True)
class WatchRules:
    """Rules by which a watch decides."""

    guards: "Guards"
    policy: "RateJudge"  # remembers all rounds
    may_move: bool = True


def decide(
    state: WatchState, observation: RoundObservation, rules: WatchRules
) -> tuple[WatchState, Measure | FinishMove | Conclude]:
    """Decide on the next step of a watch."""
    sample, moves = observation.sample, observation.moves
    if rules.may_move and moves and moves[-1].decision.state == BEGUN:
        return state, FinishMove()
    news = _with_news(state, observation)
    state, facts = _with_sample(news, sample, rules.policy.terms.lag)
    last = state.last_measurement
    last = last if last is not None and last.is_of(sample) else None
    if observation.measurement is None:
        if state.needs_measurement(sample, facts.falls_behind):
            model, why = (None, "") if last is None else (last.model, last.failure)
            begun = LastMeasurement(sample, -math.inf, facts.falls_behind, model, why)
            trials = tuple(t for _, t in state.tried if not t.is_at(sample.layout))
            words = f"{state_words(facts)}; it is measured before the next round"
            return replace(state, last_measurement=begun), Measure(words, trials)
        if last is not None and last.was_behind is None:
            state = replace(state, last_measurement=last._replace(was_behind=facts.falls_behind))
    return _concluded(state, facts, observation, rules)


def _concluded(
    state: WatchState, facts: WatchRound, observation: RoundObservation, rules: WatchRules
) -> tuple[WatchState, Conclude]:
    """Choose a layout for a job with a valid or a failed measurement."""
    sample = observation.sample
    model = state.model_at(sample)
    here, others = _options(state, sample, model)
    if model is not None:
        facts = _with_predictions(facts, model, here, others)
    machines = rules.policy.choose(facts)
    measured_move = _measured_move(state, observation, facts) if rules.may_move else None
    ends_trial = measured_move is not None and measured_move[0].kind == WatchDecision.MOVE
    is_trial = ends_trial or state.returning == sample.job
    choice = choose(here, others, machines, facts, is_trial=is_trial)
    state = replace(state, returning=sample.job if choice.returns else "")
    moves, words = False, choice.words
    if choice.target is not None:
        held = rules.guards.hold(choice, facts, observation, state)
        moves = rules.may_move and not held
        if moves:
            state = replace(state, moved_at=sample.at)
            words = f"{'the job returns' if choice.returns else 'the job is moved'}: {words}"
        else:
            but = f"; but {held}" if rules.may_move else ""
            words = f"a move would pay: {words}{but}"
    facts = replace(facts, words=f"{state_words(facts)}; {words}")
    return state, Conclude(facts, here, choice, moves, measured_move)


def _with_news(state: WatchState, observation: RoundObservation) -> WatchState:
    """State after moves and a measurement since the last round."""
    now = observation.sample.at
    if new := observation.moves[state.n_moves :]:
        tried = _with_moves(state.tried, new, now)
        state = replace(state, tried=tried, n_moves=len(observation.moves), last_measurement=None)
    result, last = observation.measurement, state.last_measurement
    if result is None or last is None:
        return state
    if isinstance(result, str):
        return replace(state, last_measurement=last._replace(at=now, failure=result))
    return replace(state, last_measurement=last._replace(at=now, model=result, failure=""))


def _with_sample(state: WatchState, sample: JobSample, lag: float) -> tuple[WatchState, WatchRound]:
    """State after another sample, and its comparison with the last one."""
    before = state.sample
    watched = state.watched + (0.0 if before is None else sample.at - before.at)
    facts = compared(before, sample, watched, lag)
    is_same = before is not None and before.job == sample.job
    rate = min(before.rate, sample.rate) if before is not None and is_same else sample.rate
    if facts.shows_capacity:
        rate = state.sustained(sample)
    tried = _recent(state.tried, sample.at)
    if rate > 0 and facts.falls_behind is not None:
        trial = Trial("", sample.layout, rate, is_limited=facts.shows_capacity)
        tried = with_trial(tried, trial, sample.at)
    fail = _checkpoints_fail(before, sample, state.checkpoints_fail)
    return replace(state, sample=sample, watched=watched, checkpoints_fail=fail, tried=tried), facts


def compared(
    before: JobSample | None, now: JobSample, watched: float, max_lag: float
) -> WatchRound:
    """Compare a sample with the one before it: arriving tuples, and lag of the job.

    The rate in between is taken as the mean of both. A job whose sources report their lag falls
    behind if the lag grows, whatever their back-pressure says, or if its tuples are more than
    ``max_lag`` seconds late and stay so for longer than `CATCH_UP_SECONDS`. While the lag is large,
    its sources read as fast as they can.

    The growth is unknown if the earlier sample was of another job, or if the job was restarted in
    between: it read nothing while it did not run.
    """
    machines = len(now.layout.devices)
    facts = WatchRound(
        "", watched, now.job, now.rate, now.rate, now.is_limited, now.backlog or 0.0, machines
    )
    if now.backlog is None:  # only back-pressure shows it
        return replace(facts, falls_behind=now.is_limited, shows_capacity=now.is_limited)
    is_same = before is not None and (before.job, before.started) == (now.job, now.started)
    if before is None or before.backlog is None or not is_same or now.at == before.at:
        return facts
    rate = (before.rate + now.rate) / 2
    growth = (now.backlog - before.backlog) / (now.at - before.at)
    lag, arriving = LAG_SECONDS * rate, max(0.0, rate + growth)
    excess = now.backlog - max(max_lag * arriving, lag)
    is_late = excess > 0 and -growth * CATCH_UP_SECONDS < excess
    falls_behind = is_late or (growth > NOISE * rate and now.backlog > lag)
    return replace(
        facts,
        arriving=arriving,
        growth=growth,
        falls_behind=falls_behind,
        shows_capacity=falls_behind or min(before.backlog, now.backlog) > lag,
        is_known=True,
    )


def _checkpoints_fail(before: JobSample | None, now: JobSample, have_failed: bool) -> bool:
    """Whether some checkpoints have failed and none has completed since."""
    if before is None or before.job != now.job:
        return False
    if now.checkpoints.completed > before.checkpoints.completed:
        return False
    return have_failed or now.checkpoints.failed > before.checkpoints.failed


def _recent(tried: Sequence[TriedLayout], now: float) -> tuple[TriedLayout, ...]:
    return tuple(layout for layout in tried if now - layout.at < DAY_SECONDS)


def with_trial(tried: Sequence[TriedLayout], trial: Trial, at: float) -> tuple[TriedLayout, ...]:
    """Replace earlier trials of a layout by a new one, which keeps their rates as repeats.

    A job that keeps up at a lower rate does not show that the layout carries no more.
    """
    others = tuple(other for other in tried if not other.trial.is_at(trial.layout))
    earlier = next((old for _, old in tried if old.is_at(trial.layout) and old.is_limited), None)
    if earlier is not None and trial.is_limited:
        repeats = (*earlier.repeats, earlier.rate)[-MAX_REPEATS:]
        trial = replace(trial, repeats=repeats)
    had_more = any(old.rate >= trial.rate for _, old in tried if old.is_at(trial.layout))
    if had_more and not (trial.is_limited or trial.failure):
        return tuple(tried)
    return (*others, TriedLayout(at, trial))


def _with_moves(
    tried: Sequence[TriedLayout], moves: Sequence[PastMove], now: float
) -> tuple[TriedLayout, ...]:
    """Remember the results of moves."""
    for number, (at, move) in enumerate(moves):
        layout, later = Layout.from_json(move.layout), moves[number + 1 : number + 2]
        tried = _recent(tried, at)
        if move.state == MOVED and move.measured:
            has_returned = [after.decision.kind for after in later] == [move.RETURN]
            tried = with_trial(tried, Trial("", layout, move.measured, has_returned), at)
        elif move.state in (RETURNED, FAILED):
            failed = Trial("", layout, 0.0, failure=move.outcome or move.state)
            tried = with_trial(tried, failed, at)
    return _recent(tried, now)


def _options(
    state: WatchState, sample: JobSample, model: JobModel | None
) -> tuple[LayoutOption, list[LayoutOption]]:
    """Present layout, and the other known layouts whose TaskManagers are all present.

    A job without a measurement only has the layouts that it has run in.
    """
    if model is None:
        rate = RateInterval(sample.rate, sample.rate, sample.rate)
        here, others = LayoutOption(sample.layout, rate), tuple[LayoutOption, ...]()
    else:
        here, others = model.here, model.others
    here, options = known_options(here, others, [trial for _, trial in state.tried])
    return here, [option for option in options if sample.managers.issuperset(option.devices)]


def known_options(
    here: LayoutOption, others: Sequence[LayoutOption], trials: Sequence[Trial]
) -> tuple[LayoutOption, list[LayoutOption]]:
    """Present layout and the others with their measured rates, without failed layouts.

    ``trials``: layouts that the job has run in, each once, also if they have no prediction.
    """
    new = [
        LayoutOption(trial.layout, RateInterval(0.0, 0.0, 0.0))
        for trial in trials
        if trial.layout.keys() == here.layout.keys()
        and not any(trial.is_at(option.layout) for option in (here, *others))
    ]
    options: list[LayoutOption] = []
    for option in (here, *others, *new):
        trial = next((trial for trial in trials if trial.is_at(option.layout)), None)
        if trial is not None and trial.runs:
            options.append(option.after(trial))
        elif trial is None or option is here:  # the job runs here now, even if it failed earlier
            options.append(option)
    return options[0], options[1:]


def _with_predictions(
    facts: WatchRound, model: JobModel, here: LayoutOption, others: Sequence[LayoutOption]
) -> WatchRound:
    """Add the predictions for its layout and the others to a round."""
    options = (here, *others)
    return replace(
        facts,
        carries=here.carries,
        kept=here.kept,
        limit=model.limit,
        level=model.sizes.index(here.machines),
        capacity=tuple(
            max((o.least_rate for o in options if o.machines <= size), default=0.0)
            for size in model.sizes
        ),
        cost=tuple(map(float, model.sizes)),
    )


def _measured_move(
    state: WatchState, observation: RoundObservation, facts: WatchRound
) -> tuple[WatchDecision, float] | None:
    """The last move and the rate after it; None if that is recorded, or not known yet."""
    sample, decisions = observation.sample, [decision for _, decision in observation.moves]
    last = next((move for move in reversed(decisions) if move.after == sample.job), None)
    if facts.falls_behind is None or last is None:
        return None
    if last.state != MOVED or last.measured is not None:
        return None
    rate = state.sustained(sample) if facts.shows_capacity else sample.rate
    return last, rate


def choose(
    here: LayoutOption,
    others: Sequence[LayoutOption],
    machines: int,
    facts: WatchRound,
    *,
    is_trial: bool,
) -> WatchChoice:
    """Choose a layout for a job.

    ``here``, ``others``: the present layout, and the possible ones.
    ``machines``: number of TaskManagers that the policy chooses.
    ``is_trial``: whether this is the first measurement after a move.
    """
    if facts.falls_behind is None:
        return WatchChoice("the next round shows whether it keeps up")
    if not facts.falls_behind:
        return _fewer(here, others, machines, facts)
    measured = [option for option in (here, *others) if option.measured is not None]
    best = max(measured, key=lambda option: option.measured or 0.0, default=here)
    carried = best.measured or 0.0
    rate = facts.rate if here.measured is None else here.measured
    is_worse = best is not here and rate < (1 - NOISE) * carried
    if is_trial and is_worse:
        return WatchChoice(f"only {digits(rate)} tuples/s are carried here; {best}", best, True)
    allowed = [option for option in others if option.machines <= max(machines, here.machines)]
    wanted = wanted_rate(facts)
    behind = (
        f"{'it stays late' if facts.stays_late else 'it falls behind'} at {digits(wanted)} tuples/s"
    )
    if fits := [option for option in allowed if option.least_rate >= wanted]:
        target = min(fits, key=lambda o: (o.machines, o.moves, -o.carries.value))
        return WatchChoice(f"{behind}; {target}", target)
    known = [option for option in allowed if math.isfinite(option.carries.value)]
    target = max(known, key=lambda o: (o.carries.value, -o.order, -o.moves), default=here)
    if target.carries.value > (1 + MIN_GAIN) * max(carried, rate):
        return WatchChoice(f"{behind}; {target}", target)
    if unknown := [o for o in allowed if not (o.is_known or o.measured is not None)]:
        target = min(unknown, key=lambda o: (o.order, o.moves))
        devices = ", ".join(target.devices)
        return WatchChoice(
            f"{behind}; the capacity of {devices} is unknown, as the model is far off here", target
        )
    if is_worse and best in allowed:
        return WatchChoice(f"{behind}; {best}", best)
    if len(allowed) < len(others):
        return WatchChoice("stays; the policy does not move it yet")
    return WatchChoice(f"{behind} and stays, because no known layout is expected to carry more")


def _fewer(
    here: LayoutOption, others: Sequence[LayoutOption], machines: int, facts: WatchRound
) -> WatchChoice:
    """Decide whether a job that keeps up moves to fewer TaskManagers.

    They must carry the present arrival rate, even if a policy expects a lower one soon.
    """
    if machines >= here.machines:
        return WatchChoice("keeps up, stays")
    if facts.shows_capacity:
        return WatchChoice("keeps up, stays; it drains its backlog")
    fits = [o for o in others if o.machines <= machines and o.least_rate >= wanted_rate(facts)]
    if not fits:
        return WatchChoice("keeps up, stays; fewer TaskManagers may not carry the present rate")
    target = max(fits, key=lambda option: option.least_rate)
    saved = counted(here.machines - target.machines, "TaskManager")
    return WatchChoice(f"{target}, which saves {saved}", target)


def wanted_rate(facts: WatchRound) -> float:
    """Tuples/s that a layout should carry: the arriving tuples, with an allowance for unknown ones.

    A late job also needs its backlog, divided by the time in which it should catch up.
    """
    is_hidden = facts.is_limited and not facts.is_known
    held = max(0.0, facts.arriving - facts.kept) if is_hidden else 0.0
    waiting = facts.backlog / CATCH_UP_SECONDS if facts.stays_late else 0.0
    return facts.arriving + (HIDDEN_RATIO - 1) * held + waiting


def state_words(facts: WatchRound) -> str:
    """State of a job in words: rate, lag and back-pressure, and the capacity of its layout."""
    rate = f"{digits(facts.rate)} tuples/s on {counted(facts.machines, 'TaskManager')}"
    lag = f", lag {facts.backlog:.4g}" if facts.backlog else ""
    if facts.growth is not None and abs(facts.growth) >= 1:
        lag += f" ({facts.growth:+.4g}/s)"
    if facts.late >= LAG_SECONDS:
        lag += f", {duration(round(facts.late))} late"
        if facts.growth is not None and facts.growth <= -1:
            lag += f", on time in {duration(round(facts.backlog / -facts.growth))}"
    if facts.falls_behind and facts.growth is None:
        lag += ", held back"
    if (carries := facts.carries) is None:
        return rate + lag
    load = percent(min(1.0, facts.rate / carries.value) if carries.value else 1.0)
    if facts.shows_capacity:
        return f"{rate}{lag}; it carries {digits(carries.value)} tuples/s (measured)"
    return f"{rate}{lag}; it carries {carries}, limited by {facts.limit} ({load} in use)"


@dataclass(frozen=True, slots=True)
class QuietHours:
    """Hours of every day without moves, by the clock of this machine.

    >>> night = QuietHours.of("22:00-06:30")
    >>> time(23) in night, time(6, 30) in night, time(12) in night
    (True, False, False)
    """

    start: time
    end: time

    @classmethod
    def of(cls, text: str, name: str = "--not-between") -> "QuietHours":
        """Parse hours such as ``"08:00-18:00"`` of an option or an annotation of that name."""
        with suppress(ValueError):
            start, end = (time.fromisoformat(part.strip()) for part in text.split("-"))
            if start != end and not (start.tzinfo or end.tzinfo):
                return cls(start, end)
        raise SettingError(
            f"{name} is {text!r}; it must be two times of this machine's clock, such as 08:00-18:00"
        )

    def __contains__(self, now: time) -> bool:
        if self.start < self.end:
            return self.start <= now < self.end
        return now >= self.start or now < self.end

    def __str__(self) -> str:
        return f"{self.start:%H:%M} and {self.end:%H:%M}"


@dataclass(frozen=True, slots=True)
class Guards:
    """Conditions under which nothing is moved."""

    # Minimum time between the beginnings of two moves, and for which a job is watched before it is
    # moved to fewer TaskManagers. It doubles with each consecutive move without gain.
    least_seconds: float = 300.0
    quiet: tuple[QuietHours, ...] = ()  # hours of maintenance, or of much traffic

    def hold(
        self,
        choice: WatchChoice,
        facts: WatchRound,
        observation: RoundObservation,
        state: WatchState,
    ) -> str:
        """Reason to move nothing now; empty if a move is allowed.

        A job returns from a trial at any time, unless its last return has failed. A job that falls
        behind gets more TaskManagers, or a layout that should carry the arriving rate, without
        waiting for the minimum time.
        """
        decisions = [decision for _, decision in observation.moves]
        if state.checkpoints_fail:
            return "its checkpoints fail"
        last, ends = decisions[-1:], (MOVED, UNBEGUN)
        has_failed = any(d.kind == d.RETURN and d.state not in ends for d in last)
        if choice.returns and not has_failed:
            return ""
        for hours in self.quiet if not choice.returns else ():
            if observation.hour in hours:
                return f"nothing is moved between {hours}"
        failures, target = _moves_without_gain(decisions), choice.target
        is_rescue = (
            facts.falls_behind
            and target is not None
            and target.is_known
            and (target.machines > facts.machines or target.carries.value >= wanted_rate(facts))
        )
        has_moved = any(d.state == MOVED for d in last)
        pause = 0.0 if is_rescue and has_moved else self.least_seconds
        if failures:
            backoff = max(self.least_seconds, BACKOFF_SECONDS) * 2.0 ** min(failures, 9)
            pause = min(DAY_SECONDS, backoff)
        if (wait := pause - (observation.sample.at - state.moved_at)) > 0:
            return f"the next move must wait for {duration(wait)}"
        is_saving = target is not None and target.machines < facts.machines
        if is_saving and state.watched < self.least_seconds:
            return f"it has only been watched for {duration(state.watched)}"
        return ""


def _moves_without_gain(moves: Sequence[WatchDecision]) -> int:
    """Number of consecutive last moves that have failed, or after which the job returned."""
    number, has_returned = 0, False
    for move in reversed([move for move in moves if move.state != UNBEGUN]):
        if move.state == MOVED and move.kind != move.RETURN and not has_returned:
            break
        number += move.state != MOVED or has_returned
        has_returned = move.state == MOVED and move.kind == move.RETURN
    return number


@dataclass(slots=True)
class RateJudge:
    """Decides by a policy how many TaskManagers a job should use; remembers the last rounds."""

    make: MakePolicy  # makes the policy for numbers of TaskManagers
    seconds: float  # length of a round
    terms: MoveTerms = field(default_factory=MoveTerms)  # terms of moves
    _past: deque[WatchRound] = field(init=False)
    _policy: Policy | None = field(default=None, init=False)
    _cost: tuple[float, ...] = field(default=(), init=False)
    # Time of the last round that the policy has observed.
    _shown: float = field(default=-math.inf, init=False)

    def __post_init__(self) -> None:
        self._past = deque(maxlen=self.remembered)

    @property
    def remembered(self) -> int:
        """Number of rounds that are remembered: a day and an hour.

        Forecasts compare the last hour with the same hour of the day before, also in a new policy.
        """
        return math.ceil((DAY_SECONDS + HOUR) / self.seconds)

    def remember(self, facts: WatchRound) -> None:
        """Remember a round, even one without known plans, or of an earlier process."""
        self._past.append(facts)

    def choose(self, facts: WatchRound) -> int:
        """Number of TaskManagers that the job should use; the present one if no plans are known.

        If the costs of the plans have changed, a new policy observes all remembered rounds. A round
        after a gap counts once for each interval of the gap, up to `MAX_AGE_SECONDS`, so that the
        costs and forecasts of the policy keep pace with the clock.
        """
        self._past.append(facts)
        if not facts.cost:
            return facts.machines
        if self._policy is None or facts.cost != self._cost:
            choice = self.terms.choice(np.array(facts.cost), self.seconds)
            self._policy, self._cost = self.make(choice), facts.cost
            self._shown = self._past[0].time - self.seconds
        level = facts.level
        for past in self._past:
            if past.time <= self._shown:
                continue
            since = max(self._shown, past.time - MAX_AGE_SECONDS)
            number = max(1, round(past.time / self.seconds) - round(since / self.seconds))
            for back in reversed(range(number)):
                at = past.time - back * self.seconds
                level = self._policy.choose(_observation(past, facts, at))
            self._shown = past.time
        return int(facts.cost[level])


def _observation(past: WatchRound, now: WatchRound, at: float) -> SlotObservation:
    """An earlier round as the input of a policy for the present plans, at a time."""
    level, capacity = past.level, past.capacity
    if past.cost != now.cost:
        level = min(range(len(now.cost)), key=lambda i: abs(now.cost[i] - past.machines))
        capacity = now.capacity
    return SlotObservation(at, wanted_rate(past), past.backlog, level, np.array(capacity))
