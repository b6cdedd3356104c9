"""Rounds of a watch: look at a job, decide what would pay, and do it if that is wanted and allowed.

A round reads metrics for some seconds, and says in one line what it saw and what it decides. The
job is measured only where nothing is known of its layout: after a start or a move, when it has
begun to fall behind, and now and then (`Measuring`). That takes a minute or two, which is told, and
the job is looked at again afterwards.

What layouts were measured to carry is remembered for a day. The decision after a move ends a try:
the job stays, or returns to the best layout that was measured.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

from streamplace.engines.flink.decide.proposal import Trial
from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.measure.fit import Observed
from streamplace.engines.flink.measure.sources import SourceFlow
from streamplace.engines.flink.move.journal import MoveUnderWay
from streamplace.engines.flink.rest.client import FlinkError, NoAnswer, Rest
from streamplace.engines.flink.watch.acting import WatchMover
from streamplace.engines.flink.watch.deciding import (
    DAY_SECONDS,
    Circumstances,
    Guards,
    LayoutOption,
    RateJudge,
    WatchChoice,
    choose,
    known_options,
    recalled,
    state_words,
)
from streamplace.engines.flink.watch.log import JobWatched, WatchLog
from streamplace.engines.flink.watch.look import JobLook, changed_shape, lag_of, look_at, still_fail
from streamplace.engines.flink.watch.modelling import (
    JobModel,
    Measuring,
)
from streamplace.errors import StreamplaceError
from streamplace.io.store import StoreError
from streamplace.io.watches import (
    FAILED,
    MOVED,
    RETURNED,
    UNBEGUN,
    WatchDecision,
    WatchRound,
    seconds_since,
    utc_now,
)
from streamplace.model.intervals import RateInterval

LOG = logging.getLogger(__name__)


def _ignore(_: WatchRound) -> None:
    """Ignore a round."""


@dataclass(slots=True)
class TriedLayouts:
    """Layouts that a job has had in the last day, with what was measured there last."""

    _trials: list[tuple[float, Trial]] = field(default_factory=list, init=False)

    def at(self, now: float) -> list[Trial]:
        """Layouts that are remembered, each once."""
        self._trials = [(when, one) for when, one in self._trials if now - when < DAY_SECONDS]
        return [trial for _, trial in self._trials]

    def add(self, trial: Trial, now: float) -> None:
        """Remember a layout in place of what was known of it.

        A job that keeps up at a lower rate does not show that the layout carries no more.
        """
        before = next((one for one in self.at(now) if one.is_at(trial.layout)), None)
        is_less = before is not None and before.rate >= trial.rate
        if is_less and not (trial.is_limited or trial.failure):
            return
        self._trials = [one for one in self._trials if not one[1].is_at(trial.layout)]
        self._trials.append((now, trial))

    def recall(self, decisions: Sequence[WatchDecision], now: float) -> None:
        """Remember the layouts to which an earlier process has moved the job."""
        for number, one in enumerate(decisions):
            layout, then = Layout.from_json(one.layout).by_operator(), now - seconds_since(one.at)
            if one.state == MOVED and one.measured:
                is_left = [later.kind for later in decisions[number + 1 : number + 2]] == ["return"]
                self.add(Trial("", layout, one.measured, is_limited=is_left), then)
            elif one.kind != "replace" and one.state in (RETURNED, FAILED):
                self.add(Trial("", layout, 0.0, failure=one.outcome or one.state), then)


def wasted(decisions: Sequence[WatchDecision]) -> int:
    """Number of the last moves in a row that have failed, or after which the job returned."""
    number, was_left = 0, False
    for one in reversed(decisions):
        if one.kind == "replace" or one.state == UNBEGUN:
            continue
        if one.state == MOVED and one.kind != "return" and not was_left:
            break
        number += one.state != MOVED or was_left
        was_left = one.state == MOVED and one.kind == "return"
    return number


@dataclass(slots=True)
class JobRounds:
    """Rounds of one watched job."""

    rest: Rest
    log: WatchLog
    judge: RateJudge
    guards: Guards
    # Measures a job that was looked at, given what was observed and tried in earlier layouts.
    model_of: Callable[[JobLook, Observed, Sequence[Trial]], JobModel]
    mover: WatchMover | None  # moves the job; None only looks
    tell: Callable[[str], None]
    every: float = 60.0  # seconds from the beginning of one round to that of the next
    # Clock for waiting; a clock that is set does not affect it.
    monotonic: Callable[[], float] = time.monotonic
    local: Callable[[], datetime] = datetime.now  # clock for hours of the day
    observe: Callable[[WatchRound], None] = _ignore  # function that receives every round
    _due: float = field(default=-1.0, init=False)
    _passed: float = field(default=0.0, init=False)
    _looked: float = field(default=-1.0, init=False)
    _last: JobLook | None = field(default=None, init=False)
    _fails: bool = field(default=False, init=False)
    _others: str = field(default="", init=False)
    _measuring: Measuring = field(init=False)
    _memory: TriedLayouts = field(default_factory=TriedLayouts, init=False)
    _moved: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._measuring = Measuring(self.model_of, self.tell, self.monotonic)

    def recall(self) -> None:
        """Continue after an earlier process, from what it has written."""
        rounds = self.log.rounds(recalled(self.every))
        for one in rounds:
            self.judge.remember(one)
        if rounds:
            self._passed = rounds[-1].time
        moves, now = [*self._moves.values()], self.monotonic()
        self._memory.recall(moves, now)
        if moves:
            self._moved = now - seconds_since(moves[-1].at)

    @property
    def is_due(self) -> bool:
        """Whether the next round should begin."""
        return self.monotonic() >= self._due

    def pass_round(self, job: str) -> str:
        """Pass one round; return the id of the job, which may have been moved.

        Raises NoAnswer when Flink does not answer. Raises FlinkError when the job does not run.
        Raises JobWatched when another process has taken over the watch.
        """
        look, seen = self._look(job)
        measuring, there = self._measuring, look.layout.by_operator()
        trials = [one for one in self._memory.at(self.monotonic()) if not one.is_at(there)]
        if measuring.is_due(look, falls_behind=seen.falls_behind):
            self._say(f"{state_words(seen)}; it is measured, and the next round comes afterwards")
            measuring.measure(look, trials, falls_behind=seen.falls_behind)
            look, seen = self._look(job)
        model = measuring.known(look)
        here, others = self._options(look, seen, model)
        seen = _modelled(seen, model, here, others)
        most = int(seen.cost[self.judge.choose(seen)]) if model else here.machines
        if model is None:
            self.judge.remember(seen)
        choice = choose(here, others, most, seen, is_tried=self._judged(look, seen))
        return self._done(seen, here, choice)

    def _look(self, job: str) -> tuple[JobLook, WatchRound]:
        """Look at the job, and note what has changed and arrived since the last look.

        The next round is due `every` seconds later; one without an answer is passed again at once.
        """
        now, last = self.monotonic(), self._last
        try:
            look = look_at(self.rest, job)
        except NoAnswer:
            raise
        except FlinkError:
            self._due = now + self.every
            raise
        self._due = now + self.every
        self._notice(look)
        passed = self.every if last is None else now - self._looked
        self._passed += passed
        self._last, self._looked = look, now
        lag = lag_of(last, look, passed)
        seen = WatchRound(
            utc_now(),
            self._passed,
            look.job,
            look.rate,
            lag.arriving,
            look.is_limited,
            look.backlog or 0.0,
            look.machines,
            growth=lag.growth,
            falls_behind=lag.falls_behind,
            shows_capacity=lag.shows_capacity,
            is_known=lag.growth is not None,
        )
        kept_rate = look.rate if last is None or last.job != look.job else min(last.rate, look.rate)
        rate = self._sustained(look) if lag.shows_capacity else kept_rate
        if rate > 0 and lag.falls_behind is not None:
            trial = Trial("", look.layout.by_operator(), rate, is_limited=lag.shows_capacity)
            self._memory.add(trial, now)
        return look, seen

    def _sustained(self, look: JobLook) -> float:
        """Tuples/s that the layout sustains, of a job that reads as fast as it can.

        As far as it was measured there how unevenly its subtasks do so.
        """
        model = self._measuring.known(look)
        return look.rate if model is None else model.lasting * look.rate

    def _options(
        self, look: JobLook, seen: WatchRound, model: JobModel | None
    ) -> tuple[LayoutOption, list[LayoutOption]]:
        """Present layout and the others, as far as they are known and their TaskManagers are there.

        Where the job was not measured, those are known in which it has run.
        """
        trials = self._memory.at(self.monotonic())
        if model is None:
            rate = RateInterval(seen.rate, seen.rate, seen.rate)
            here, others = known_options(LayoutOption(look.layout.by_operator(), rate), [], trials)
        else:
            here, others = known_options(model.here, model.others, trials)
        return here, [one for one in others if look.managers.issuperset(one.devices)]

    def _judged(self, look: JobLook, seen: WatchRound) -> bool:
        """Note what the last move has brought; return whether that was not known before."""
        if seen.falls_behind is None:
            return False
        found = [(number, one) for number, one in self._moves.items() if one.after == look.job]
        number, decision = found[-1] if found else (0, None)
        if self.mover is None or decision is None or decision.state != MOVED:
            return False
        if decision.measured is not None:
            return False
        rate = self._sustained(look) if seen.shows_capacity else look.rate
        flow = SourceFlow(rate, is_limited=seen.shows_capacity)
        self.mover.note_rate(number, decision, flow)
        return decision.kind == "move"

    @property
    def _moves(self) -> Mapping[int, WatchDecision]:
        """Decisions for the rate of the job, also of earlier processes; none if unreadable."""
        with suppress(StoreError):
            decisions = self.log.decisions.items()
            return {n: one for n, one in decisions if one.kind != "replace"}
        return {}

    def _done(self, seen: WatchRound, here: LayoutOption, choice: WatchChoice) -> str:
        """Tell a decision, and carry it out if that is wanted and allowed; return the job's id."""
        state, target = state_words(seen), choice.target
        if target is None:
            self._end(seen, f"{state}; {choice.words}")
            return seen.job
        if self.mover is None:
            self._end(seen, f"{state}; a move would pay: {choice.words}")
            return seen.job
        if held := self.guards.hold(self._circumstances(), choice, here.machines):
            self._end(seen, f"{state}; a move would pay: {choice.words}; but {held}")
            return seen.job
        what = "the job returns" if choice.returns else "the job is moved"
        self._end(seen, f"{state}; {what}: {choice.words}")
        return self._carry_out(self.mover, seen.job, here, choice)

    def _carry_out(
        self, mover: WatchMover, before: str, here: LayoutOption, choice: WatchChoice
    ) -> str:
        job, known = before, self._moves.keys()
        self._moved = self.monotonic()
        try:
            job = mover.carry_out(before, here, choice)
        except MoveUnderWay as error:
            self._others = str(error)
            self.tell(f"{error}; nothing is moved from now on")
        except StoreError as error:
            self.tell(f"warning: {error}; nothing is moved without a record")
        except (NoAnswer, JobWatched):
            raise
        except StreamplaceError as error:
            self.tell(f"the job is not moved: {error}")
        moves = self._moves
        new = [one for number, one in moves.items() if number not in known]
        self._memory.recall(new, self.monotonic())
        if new or job != before:
            self._measuring.forget()
            self._due = self.monotonic()
        return job

    def _notice(self, look: JobLook) -> None:
        """Notice failing checkpoints, and what others have changed.

        Moves of this watch are no changes, although they may cut and join chains.
        """
        self._fails = still_fail(self._last, look, self._fails)
        if self._last is not None and self._last.job == look.job and not self._others:
            self._others = changed_shape(self._last.shape, look.shape)
            if self._others:
                self.tell(
                    f"another controller acts on job {look.job}: {self._others}; nothing is moved "
                    "from now on"
                )

    def _circumstances(self) -> Circumstances:
        return Circumstances(
            self.local().time(),
            float("inf") if self._moved is None else self.monotonic() - self._moved,
            wasted([*self._moves.values()]),
            self._fails,
            self._others,
            self._passed,
        )

    def _say(self, words: str) -> None:
        self.tell(f"{self.local():%H:%M:%S}  {words}")

    def _end(self, seen: WatchRound, words: str) -> None:
        """Tell a round, and record it."""
        self._say(words)
        whole = replace(seen, words=words)
        self.log.add(whole)
        self.observe(whole)


def _modelled(
    seen: WatchRound, model: JobModel | None, here: LayoutOption, others: Sequence[LayoutOption]
) -> WatchRound:
    """Round with what is known of its layout and of the others."""
    if model is None:
        return seen
    low, value, high = here.carries
    all_of = (here, *others)
    return replace(
        seen,
        low=low,
        value=value,
        high=high,
        kept=model.kept,
        limit=model.limit,
        level=model.sizes.index(here.machines),
        capacity=tuple(
            max((one.sure for one in all_of if one.machines <= size), default=0.0)
            for size in model.sizes
        ),
        cost=tuple(float(size) for size in model.sizes),
    )
