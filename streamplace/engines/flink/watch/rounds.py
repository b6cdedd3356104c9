"""Rounds of a watch: look at a job, judge what would pay, and do it if that is wanted and allowed.

A round is cheap: it reads metrics for some seconds. The job is measured, and plans are searched,
only where nothing is known of the present layout, where what is seen contradicts the model, where
that is old, and before a move if it is not recent. That takes a minute or two, so the job is looked
at again afterwards.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

from streamplace.engines.flink.move.journal import MoveUnderWay
from streamplace.engines.flink.rest.client import FlinkError, NoAnswer, Rest
from streamplace.engines.flink.watch.acting import WatchMover
from streamplace.engines.flink.watch.judging import (
    Circumstances,
    Guards,
    RateJudge,
    reason_words,
    recalled,
    state_words,
    stay_words,
    target_of,
    wanted_rate,
)
from streamplace.engines.flink.watch.log import JobWatched, WatchLog
from streamplace.engines.flink.watch.look import (
    JobLook,
    arrived_since,
    changed_shape,
    look_at,
    still_fail,
)
from streamplace.engines.flink.watch.modelling import Measuring
from streamplace.engines.flink.watch.past_moves import PastMoves
from streamplace.engines.flink.watch.plans import JobModel, WatchPlan
from streamplace.errors import StreamplaceError
from streamplace.io.store import StoreError
from streamplace.io.watch_store import WatchRound, utc_now
from streamplace.model.intervals import USUAL_CONFIDENCE, tracked_width

FRESH_SECONDS = 300.0
"""Age of a measurement above which a job is measured again before it is moved."""


def _ignore(_: WatchRound) -> None:
    """Ignore a round."""


@dataclass(slots=True)
class JobRounds:
    """Rounds of one watched job."""

    rest: Rest
    log: WatchLog
    judge: RateJudge
    guards: Guards
    # Measures a job that was looked at, and finds plans for it.
    model_of: Callable[[JobLook], JobModel]
    mover: WatchMover | None  # moves the job; None only looks
    tell: Callable[[str], None]
    every: float = 60.0  # seconds from the beginning of one round to that of the next
    # Clock for waiting; a clock that is set does not affect it.
    monotonic: Callable[[], float] = time.monotonic
    local: Callable[[], datetime] = datetime.now  # clock for hours of the day
    observe: Callable[[WatchRound], None] = _ignore  # function that receives every round
    # Share of the rounds in which the rate should be in its interval.
    confidence: float = USUAL_CONFIDENCE
    _due: float = field(default=-1.0, init=False)
    _passed: float = field(default=0.0, init=False)
    _looked: float = field(default=-1.0, init=False)
    _last: JobLook | None = field(default=None, init=False)
    _fails: bool = field(default=False, init=False)
    _others: str = field(default="", init=False)
    _measuring: Measuring = field(init=False)
    _moves: PastMoves = field(init=False)
    _refused: float = field(default=-math.inf, init=False)
    _width: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._measuring = Measuring(self.model_of, self.tell, self.monotonic)
        self._moves = PastMoves(self.log, self.monotonic)

    def recall(self) -> None:
        """Continue after an earlier process, from what it has written."""
        rounds = self.log.rounds(recalled(self.every))
        self.judge.recall(rounds)
        if rounds:
            self._passed = rounds[-1].time
        for one in rounds:
            self._track(one.held)
        self._moves.recall()

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
        held = self._check(look)
        self._track(held)
        if self._measuring.is_due(look) and self._measuring.measure(look) is not None:
            look, seen = self._look(job)
        known = self._measuring.known(look)
        if known is None:
            seen = replace(seen, held=held)
            self.judge.remember(seen)
            self._end(seen, state_words(seen, None))
            return job
        model = known.widened(self._width)
        seen = replace(_modelled(seen, model), held=held)
        state = state_words(seen, model)
        level = self.judge.choose(seen)
        target = target_of(model, level, seen)
        if target is None:
            self._end(seen, f"{state}; {stay_words(model, level, seen)}")
            return job
        return self._wanted(seen, state, model, target)

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
        arrived = arrived_since(last, look, passed)
        are_known = last is not None and last.knows_backlog and look.knows_backlog
        seen = WatchRound(
            utc_now(),
            self._passed,
            look.job,
            look.rate,
            look.rate if arrived is None else arrived,
            look.is_limited,
            look.backlog or 0.0,
            look.machines,
            is_known=arrived is not None and are_known,
        )
        return look, seen

    def _wanted(self, seen: WatchRound, state: str, model: JobModel, target: WatchPlan) -> str:
        """Deal with a move that would pay; return the job's id."""
        if back := self._moves.came_back(len(target.devices)):
            self._end(seen, f"{state}; stays; {back}")
            return seen.job
        reason = reason_words(model, target, seen)
        if self.mover is None:
            self._end(seen, f"{state}; a move would pay: {reason}")
            return seen.job
        if held := self.guards.hold(self._circumstances(model, target, seen)):
            self._end(seen, f"{state}; a move would pay: {reason}; but {held}")
            return seen.job
        if self._measuring.age > FRESH_SECONDS:
            self._end(seen, f"{state}; a move would pay: {reason}; the job is measured first")
            self._measuring.forget()
            self._due = self.monotonic()
            return seen.job
        self._end(seen, f"{state}; the job is moved: {reason}")
        return self._carry_out(self.mover, model, target, reason)

    def _carry_out(self, mover: WatchMover, model: JobModel, target: WatchPlan, reason: str) -> str:
        began, job = self.monotonic(), model.job
        self._refused = began
        try:
            job = mover.carry_out(model, target, reason)
        except MoveUnderWay as error:
            self._others = str(error)
            self.tell(f"{error}; nothing is moved from now on")
        except StoreError as error:
            self.tell(f"warning: {error}; nothing is moved without a record")
        except (NoAnswer, JobWatched):
            raise
        except StreamplaceError as error:
            self.tell(f"the job is not moved: {error}")
        if self._moves.note(began) or job != model.job:
            self._refused = -math.inf
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

    def _check(self, look: JobLook) -> bool | None:
        """Whether the interval of an earlier round holds now; None if that is unknown."""
        model = self._measuring.known(look)
        if model is None:
            return None
        carries = model.widened(self._width).present.carries
        return carries.holds(look.rate, is_limited=look.is_limited)

    def _track(self, held: bool | None) -> None:
        """Widen the intervals from now on if one missed, and less so the longer they hold."""
        if held is not None:
            self._width = tracked_width(self._width, held=held, confidence=self.confidence)

    def _circumstances(self, model: JobModel, target: WatchPlan, seen: WatchRound) -> Circumstances:
        present = model.present
        is_up = target.machines > present.machines
        return Circumstances(
            self.local().time(),
            self._moves.since_last,
            self._fails,
            self._others,
            self._passed,
            is_down=target.machines < present.machines,
            since_fewer=self._moves.since_fewer,
            is_ahead=is_up and present.carries.low >= wanted_rate(seen),
            since_failure=self.monotonic() - self._refused,
        )

    def _end(self, seen: WatchRound, words: str) -> None:
        """Tell a round, and record it."""
        self.tell(f"{self.local():%H:%M:%S}  {words}")
        whole = replace(seen, words=words)
        self.log.add(whole)
        self.observe(whole)


def _modelled(seen: WatchRound, model: JobModel) -> WatchRound:
    """Round with what is known of its layout and of the others."""
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
