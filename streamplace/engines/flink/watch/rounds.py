"""Rounds of a watch: look at a job, judge what would pay, and do it if that is wanted and allowed.

A round is cheap: it reads metrics for some seconds. The job is measured, and plans are searched,
only where nothing is known of the present layout, where what is seen contradicts the model, and
before a move if the last measurement is old.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

from streamplace.engines.flink.move.journal import MoveUnderWay
from streamplace.engines.flink.rest.client import FlinkError, NoAnswer, Rest
from streamplace.engines.flink.watch.acting import WatchMover
from streamplace.engines.flink.watch.judging import (
    RECALLED,
    Circumstances,
    Guards,
    RateJudge,
    contradicts,
    reason_words,
    state_words,
    stay_words,
    target_of,
)
from streamplace.engines.flink.watch.log import WatchLog
from streamplace.engines.flink.watch.look import (
    JobLook,
    changed_shape,
    look_at,
    still_fail,
)
from streamplace.engines.flink.watch.machines import Machines
from streamplace.engines.flink.watch.plans import JobModel, WatchPlan
from streamplace.errors import StreamplaceError
from streamplace.io.watch_store import (
    FAILED,
    RETURNED,
    StoreError,
    WatchDecision,
    WatchRound,
    seconds_since,
    utc_now,
)
from streamplace.model.intervals import USUAL_CONFIDENCE, tracked_width
from streamplace.model.messages import counted
from streamplace.model.report import duration

FRESH_SECONDS = 300.0
"""Age of a measurement above which a job is measured again before it is moved."""
RETRY_SECONDS, DAY = 1800.0, 86_400.0
"""Seconds after a move that failed until it is tried again: at first, and at most."""
AGAIN_SECONDS = 120.0
"""Least time between two measurements of a layout whose model is contradicted."""


def _ignore(_: WatchRound) -> None:
    """Ignore a round."""


@dataclass(slots=True)
class JobRounds:
    """Rounds of one watched job.

    Attributes
    ----------
    model_of
        Measures a job that was looked at, and finds plans for it.
    mover
        Moves the job; None only looks.
    every
        Seconds from the beginning of one round to that of the next.
    monotonic
        Clock for waiting; a clock that is set does not affect it.
    local
        Clock for hours of the day.
    observe
        Function that receives every round.
    machines
        Starts and stops TaskManagers; None does neither.
    confidence
        Share of the rounds in which the rate should be in its interval.
    """

    rest: Rest
    log: WatchLog
    judge: RateJudge
    guards: Guards
    model_of: Callable[[JobLook], JobModel]
    mover: WatchMover | None
    tell: Callable[[str], None]
    every: float = 60.0
    monotonic: Callable[[], float] = time.monotonic
    local: Callable[[], datetime] = datetime.now
    observe: Callable[[WatchRound], None] = _ignore
    machines: Machines | None = None
    confidence: float = USUAL_CONFIDENCE
    _due: float = field(default=-1.0, init=False)
    _passed: float = field(default=0.0, init=False)
    _looked: float = field(default=-1.0, init=False)
    _last: JobLook | None = field(default=None, init=False)
    _fails: bool = field(default=False, init=False)
    _others: str = field(default="", init=False)
    _model: JobModel | None = field(default=None, init=False)
    _modelled: JobLook | None = field(default=None, init=False)
    _measured: float = field(default=-1.0, init=False)
    _begun: float | None = field(default=None, init=False)
    _told: str = field(default="", init=False)
    _width: float = field(default=0.0, init=False)

    def recall(self) -> None:
        """Continue after an earlier process, from what it has written."""
        rounds = self.log.store.rounds(self.log.watch, RECALLED)
        self.judge.recall(rounds)
        if rounds:
            self._passed = rounds[-1].time
        for one in rounds:
            self._track(one.held)
        moves = [one for one in self.log.decisions.values() if one.starts_job]
        if moves:
            self._begun = self.monotonic() - seconds_since(moves[-1].at)
        if self.machines is not None:
            self.machines.recall()

    @property
    def is_due(self) -> bool:
        """Whether the next round should begin."""
        return self.monotonic() >= self._due

    def pass_round(self, job: str) -> str:
        """Pass one round; return the id of the job, which may have been moved.

        Raises
        ------
        NoAnswer
            When Flink does not answer.
        FlinkError
            When the job does not run.
        """
        began = self.monotonic()
        try:
            look = look_at(self.rest, job)
        except NoAnswer:  # it is asked again at once
            raise
        except FlinkError:
            self._due = began + self.every
            raise
        self._due = began + self.every
        self._notice(look)
        held, found = self._check(look), self._model_for(look)
        self._track(held)
        model = found and found.widened(self._width)
        seen = replace(self._seen(look, model, began), held=held)
        self._last, self._looked = look, began
        state = state_words(seen, model)
        if model is None:
            self._end(seen, state)
            return job
        target, words = self._target(model, seen)
        if target is None:
            self._end(seen, f"{state}; {words}")
            return job
        return self._wanted(look, seen, state, model, target)

    def _target(self, model: JobModel, seen: WatchRound) -> tuple[WatchPlan | None, str]:
        """Plan to move to, or None and words on why the job stays.

        Where nothing may be started, the job is moved to the TaskManagers that are there, if that
        pays.
        """
        level = self.judge.choose(seen)
        if self.machines is not None and self.machines.waits:
            return None, self.machines.waits
        target = target_of(model, level, seen)
        if target is None:
            return None, stay_words(model, level, seen)
        if not model.missing(target) or not (held := self.machines.hold if self.machines else ""):
            return target, ""
        there = target_of(model, model.level_without_new(level), seen)
        if there is None or model.missing(there):
            what = counted(model.missing(target), "more TaskManager")
            return None, f"stays; {what} would pay, but {held}"
        return there, ""

    def _wanted(
        self, look: JobLook, seen: WatchRound, state: str, model: JobModel, target: WatchPlan
    ) -> str:
        """Deal with a move, or a start of TaskManagers, that would pay; return the job's id."""
        if back := self._came_back(target):
            self._end(seen, f"{state}; stays; {back}")
            return seen.job
        reason, missing = reason_words(model, target, seen), model.missing(target)
        what = f"to start {counted(missing, 'TaskManager')}" if missing else "a move"
        if self.mover is None:
            self._end(seen, f"{state}; {what} would pay: {reason}")
            return seen.job
        is_down = target.machines < model.present.machines
        if held := self.guards.hold(self._circumstances(is_down=is_down)):
            self._end(seen, f"{state}; {what} would pay: {reason}; but {held}")
            return seen.job
        if self.monotonic() - self._measured > FRESH_SECONDS:
            self._end(seen, f"{state}; {what} would pay: {reason}; the job is measured first")
            self._model, self._due = None, self.monotonic()
            return seen.job
        if missing and self.machines is not None:
            number = counted(missing, "TaskManager")
            like = f"{number} like {model.new.like} {'is' if missing == 1 else 'are'} started"
            self._end(seen, f"{state}; {like}: {reason}")
            self.machines.start(look, model.new.like, missing, reason)
            return seen.job
        self._end(seen, f"{state}; the job is moved: {reason}")
        return self._carry_out(self.mover, model, target, reason)

    def _came_back(self, target: WatchPlan) -> str:
        """Why a job is not moved again to so many TaskManagers, if it came back from there.

        The time for which it is not doubles with each try.
        """
        number = len(target.devices)
        tries: list[WatchDecision] = []
        for one in self.log.decisions.values():
            if one.kind == "move" and one.machines[1] == number:
                tries = [*tries, one] if one.state in (RETURNED, FAILED) else []
        if not tries:
            return ""
        wait = min(DAY, RETRY_SECONDS * 2.0 ** (len(tries) - 1)) - seconds_since(tries[-1].at)
        what = f"a move to {counted(number, 'TaskManager')} failed"
        return f"{what}, and is tried again in {duration(wait)}" if wait > 0 else ""

    def _carry_out(self, mover: WatchMover, model: JobModel, target: WatchPlan, reason: str) -> str:
        self._begun = self.monotonic()
        try:
            job = mover.carry_out(model, target, reason)
        except MoveUnderWay as error:
            self._others = str(error)
            self.tell(f"{error}; nothing is moved from now on")
        except StoreError as error:
            self.tell(f"warning: {error}; nothing is moved without a record")
        except NoAnswer:
            raise
        except StreamplaceError as error:
            self.tell(f"the job is not moved: {error}")
        else:
            self._model = None
            self._due = self.monotonic()
            return job
        return model.job

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
        if self.machines is not None:
            self.machines.notice(look)
            if not self._others:
                self.machines.stop_left(look.job)

    def _known_model(self, look: JobLook) -> JobModel | None:
        """Model of a job that was measured before, if nothing but its rate has changed since."""
        model, before = self._model, self._modelled
        is_same = (
            model is not None
            and before is not None
            and (before.job, before.layout, before.managers, before.shape)
            == (look.job, look.layout, look.managers, look.shape)
            and (look.is_limited or not model.kept)
        )
        return model if is_same else None

    def _check(self, look: JobLook) -> bool | None:
        """Whether the interval of an earlier round holds now; None if that is unknown."""
        model = self._known_model(look)
        if model is None:
            return None
        carries = model.widened(self._width).present.carries
        return carries.holds(look.rate, is_limited=look.is_limited)

    def _track(self, held: bool | None) -> None:
        """Widen the intervals from now on if one missed, and less so the longer they hold."""
        if held is not None:
            self._width = tracked_width(self._width, held=held, confidence=self.confidence)

    def _model_for(self, look: JobLook) -> JobModel | None:
        """Model of a job as it is now, measured if need be; None if it cannot be measured."""
        model, age = self._known_model(look), self.monotonic() - self._measured
        if model is not None:
            is_wrong = contradicts(model, look.rate, is_limited=look.is_limited)
            if not is_wrong or age < AGAIN_SECONDS:
                return model
        try:
            self._model = self.model_of(look)
        except NoAnswer:
            raise
        except StreamplaceError as error:
            if str(error) != self._told:
                self.tell(f"note: the job is not measured: {error}")
            self._told = str(error)
            if model is None:
                self._model = None
        else:
            self._told, self._modelled, self._measured = "", look, self.monotonic()
        return self._model

    def _seen(self, look: JobLook, model: JobModel | None, began: float) -> WatchRound:
        """Return the round without its decision."""
        passed = self.every if self._looked < 0 else began - self._looked
        self._passed += passed
        arriving, last = look.rate, self._last
        if last is not None and look.backlog is not None and last.backlog is not None:
            arriving = max(0.0, look.rate + (look.backlog - last.backlog) / passed)
        seen = WatchRound(
            utc_now(),
            self._passed,
            look.job,
            look.rate,
            arriving,
            look.is_limited,
            look.backlog or 0.0,
            look.machines,
        )
        if model is None:
            return seen
        low, value, high = model.present.carries
        return replace(
            seen,
            low=low,
            value=value,
            high=high,
            kept=model.kept,
            limit=model.limit,
            level=model.level,
            capacity=tuple(plan.carries.low for plan in model.plans),
            cost=tuple(float(plan.machines) for plan in model.plans),
        )

    def _circumstances(self, *, is_down: bool) -> Circumstances:
        since = None if self._begun is None else self.monotonic() - self._begun
        now = self.local().time()
        return Circumstances(now, since, self._fails, self._others, self._passed, is_down)

    def _end(self, seen: WatchRound, words: str) -> None:
        """Tell a round, and record it."""
        self.tell(f"{self.local():%H:%M:%S}  {words}")
        whole = replace(seen, words=words)
        self.log.add(whole)
        self.observe(whole)
