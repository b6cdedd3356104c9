"""Rounds of a watch: look at a job, decide what would pay, and do it if that is wanted and allowed.

A round reads metrics for some seconds, and says in one line what it saw and what it decides. The
job is measured, which takes a minute or two, after a start or a move, when it has begun to fall
behind, and when the last measurement is old; then it is looked at again.

The measured rates of layouts are remembered for a day. The decision after a move ends a trial: the
job stays, or returns to the best measured layout.
"""

import math
import time
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from streamplace.engines.flink.constants import OLD_SECONDS
from streamplace.engines.flink.decide.improving import Trial
from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.measure.source_lag import source_flow
from streamplace.engines.flink.move.savepoints import CheckpointTotals, checkpoint_totals
from streamplace.engines.flink.rest.client import FlinkError, NoAnswer, Rest
from streamplace.engines.flink.rest.plan import layout_of
from streamplace.engines.flink.watch.acting import WatchMover
from streamplace.engines.flink.watch.deciding import (
    Guards,
    LayoutOption,
    RateJudge,
    TriedLayouts,
    WatchChoice,
    choose,
    known_options,
    state_words,
    wasted,
)
from streamplace.engines.flink.watch.log import JobWatched, WatchLog
from streamplace.engines.flink.watch.modelling import JobModel
from streamplace.errors import StreamplaceError
from streamplace.io.ledger import NOISE
from streamplace.io.watches import MOVED, WatchDecision, WatchRound, seconds_since, utc_now
from streamplace.model.prediction_intervals import RateInterval

LAG_SECONDS = 10.0
"""A backlog that is read in less time is no lag: Flink fetches counts every ten seconds by default.
"""
MeasureJob = Callable[[str, Set[str], Sequence[Trial]], JobModel]
"""Measures a job, given the TaskManagers that are there, and the layouts that were tried before."""


@dataclass(frozen=True, slots=True)
class JobLook:
    """Metrics of a running job in a round."""

    job: str
    rate: float  # tuples/s that its sources emit
    is_limited: bool  # whether back-pressure holds a source back
    backlog: float | None  # tuples that wait for the sources; None unless all report them
    layout: Layout
    checkpoints: CheckpointTotals  # numbers of its checkpoints that completed and that failed
    managers: frozenset[str]  # TaskManagers of the cluster
    started: float = 0.0  # time of its last start or restart, in ms since 1970, if Flink reports it


def look_at(rest: Rest, job: str) -> JobLook:
    """Read the metrics of a running job for some seconds.

    Raises FlinkError when it does not run, or its sources report no rate.
    """
    document = rest.running_job(job)
    flow = source_flow(rest, job)
    if flow is None:
        raise FlinkError(f"Flink reports no rate of the sources of job {job}")
    return JobLook(
        job,
        flow.rate,
        flow.is_limited,
        flow.pending,
        layout_of(rest, job, document),
        checkpoint_totals(rest, job),
        frozenset(rest.offered()),
        float(document.get("timestamps", {}).get("RUNNING", 0.0)),
    )


def round_of(
    before: JobLook | None, now: JobLook, seconds: float, passed: float = 0.0
) -> WatchRound:
    """Compare a look with the one ``seconds`` before it: what arrives, and whether the job lags.

    The rate in between is taken as the mean of both. A job whose sources report their lag keeps up
    if the lag does not grow, whatever their back-pressure says. While the lag is large, its sources
    read as fast as they can.

    The growth is unknown if the earlier look was at another job, or the job was restarted: it
    starts with a backlog to be fetched first, and read nothing while it did not run.
    """
    seen = WatchRound(
        utc_now(),
        passed,
        now.job,
        now.rate,
        now.rate,
        now.is_limited,
        now.backlog or 0.0,
        len(now.layout.devices),
    )
    if now.backlog is None:  # only back-pressure shows it
        return replace(seen, falls_behind=now.is_limited, shows_capacity=now.is_limited)
    is_same = before is not None and (before.job, before.started) == (now.job, now.started)
    if before is None or before.backlog is None or not is_same or not seconds:
        return seen
    growth, rate = (now.backlog - before.backlog) / seconds, (before.rate + now.rate) / 2
    much = LAG_SECONDS * rate
    falls_behind = growth > NOISE * rate and now.backlog > much
    return replace(
        seen,
        arriving=max(0.0, rate + growth),
        growth=growth,
        falls_behind=falls_behind,
        shows_capacity=falls_behind or min(before.backlog, now.backlog) > much,
        is_known=True,
    )


def still_fail(before: JobLook | None, now: JobLook, failed_before: bool) -> bool:
    """Whether checkpoints fail: some have failed since the last look, and none has completed."""
    if before is None or before.job != now.job:
        return False
    if now.checkpoints.completed > before.checkpoints.completed:
        return False
    return failed_before or now.checkpoints.failed > before.checkpoints.failed


class LastMeasurement(NamedTuple):
    """When and how a job was measured last."""

    look: JobLook  # right before
    at: float  # when it ended
    was_behind: bool | None  # whether the job fell behind then; None until that is known
    model: JobModel | None  # the one before if it failed
    failure: str = ""  # why it failed

    def is_of(self, now: JobLook) -> bool:
        """Whether the job has the layout and the TaskManagers of then."""
        facts = (now.job, now.layout, now.managers)
        return facts == (self.look.job, self.look.layout, self.look.managers)


@dataclass(slots=True)
class JobRounds:
    """Rounds of one watched job."""

    rest: Rest
    log: WatchLog
    judge: RateJudge  # its `seconds` pass from the beginning of one round to that of the next
    guards: Guards
    model_of: MeasureJob
    mover: WatchMover | None  # moves the job; None only looks
    # Clock for waiting; a clock that is set does not affect it.
    monotonic: Callable[[], float] = time.monotonic
    local: Callable[[], datetime] = datetime.now  # clock for hours of the day
    observe: Callable[[WatchRound], None] = lambda seen: None  # receives every round
    _due: float = field(default=-1.0, init=False)
    _last: JobLook | None = field(default=None, init=False)  # the last look
    _looked: float = field(default=-1.0, init=False)  # when it was
    _passed: float = field(default=0.0, init=False)  # seconds that the watch has lasted
    _fails: bool = field(default=False, init=False)  # whether checkpoints fail
    _moved: float = field(default=-math.inf, init=False)  # when the last move began
    # The job that should return from a try, if that has failed.
    _returning: str | None = field(default=None, init=False)
    # None if the job has changed since.
    _measured: LastMeasurement | None = field(default=None, init=False)
    _memory: TriedLayouts = field(default_factory=TriedLayouts, init=False)

    def recall(self) -> None:
        """Continue after an earlier process, from what it has written."""
        rounds, moves = self.log.rounds(self.judge.remembered), self.log.moves
        for one in rounds:
            self.judge.remember(one)
            self._passed = one.time
        self._remember(moves)
        if moves:
            self._moved = self.monotonic() - seconds_since(moves[-1].at)

    def _remember(self, moves: Sequence[WatchDecision]) -> None:
        now = self.monotonic()
        self._memory.recall([(now - seconds_since(one.at), one) for one in moves])

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
        if self._needs_measurement(look, seen):
            self._say(f"{state_words(seen)}; it is measured before the next round")
            self._measure(look, seen)
            look, seen = self._look(job)
        model = self._model(look)
        here, others = self._options(look, model)
        if model is not None:
            seen = _modelled(seen, model, here, others)
        most = self.judge.choose(seen)
        is_tried = self._ends_try(look, seen) or self._returning == job
        choice = choose(here, others, most, seen, is_tried=is_tried)
        now = self._do(seen, here, choice)
        self._returning = job if choice.returns and now == job else None
        return now

    def _needs_measurement(self, look: JobLook, seen: WatchRound) -> bool:
        """Whether nothing valid is known of a job, or not any more.

        A job that kept up when it was measured may have shown less than it can carry. A measurement
        that has failed is as good as any, unless the job has changed since.
        """
        last = self._measured
        if last is None or not last.is_of(look):
            self._measured = None
            return True
        age, begins = self.monotonic() - last.at, bool(seen.falls_behind) and not last.was_behind
        if last.was_behind is None:
            begins, self._measured = False, last._replace(was_behind=seen.falls_behind)
        is_known = bool(last.failure) or self._model(look) is not None
        return not is_known or age >= OLD_SECONDS or begins

    def _measure(self, look: JobLook, seen: WatchRound) -> None:
        """Measure a job; the earlier model stays if that is not possible now."""
        known = self._memory.at(self.monotonic())
        trials = [one for one in known if not one.is_at(look.layout)]
        last, failure = self._measured, ""
        model = None if last is None else last.model
        try:
            model = self.model_of(look.job, look.managers, trials)
        except NoAnswer:
            raise
        except StreamplaceError as error:
            failure = str(error)
            if last is None or failure != last.failure:
                self.log.tell(f"note: the job is not measured: {failure}")
        self._measured = LastMeasurement(look, self.monotonic(), seen.falls_behind, model, failure)

    def _model(self, look: JobLook) -> JobModel | None:
        """Model of a job that was measured before, if nothing but its rate has changed since.

        If sources kept up beside others that were held back, the model does not hold for lower
        rates of the former.
        """
        last = self._measured
        model = None if last is None or not last.is_of(look) else last.model
        return None if model is not None and model.here.kept and not look.is_limited else model

    def _look(self, job: str) -> tuple[JobLook, WatchRound]:
        """Look at the job, and note what has changed and arrived since the last look.

        A round without an answer is repeated at once.
        """
        now, last, due = self.monotonic(), self._last, self._due
        self._due = now + self.judge.seconds
        try:
            look = look_at(self.rest, job)
        except NoAnswer:
            self._due = due
            raise
        self._fails = still_fail(last, look, self._fails)
        passed = self.judge.seconds if last is None else now - self._looked
        self._passed += passed
        self._last, self._looked = look, now
        seen = round_of(last, look, passed, self._passed)
        rate = look.rate if last is None or last.job != look.job else min(last.rate, look.rate)
        if seen.shows_capacity:
            rate = self._sustained(look)
        if rate > 0 and seen.falls_behind is not None:
            trial = Trial("", look.layout, rate, is_limited=seen.shows_capacity)
            self._memory.add(trial, now)
        return look, seen

    def _sustained(self, look: JobLook) -> float:
        """Tuples/s that the layout sustains, of a job that reads as fast as it can.

        Uneven subtasks are taken into account as far as they were measured in this layout.
        """
        model = self._model(look)
        return look.rate if model is None else model.lasting * look.rate

    def _options(
        self, look: JobLook, model: JobModel | None
    ) -> tuple[LayoutOption, list[LayoutOption]]:
        """Present layout, and the other known ones whose TaskManagers are all present.

        Of a job that was not measured, the layouts are known in which it has run.
        """
        if model is None:
            rate = RateInterval(look.rate, look.rate, look.rate)
            here, others = LayoutOption(look.layout, rate), tuple[LayoutOption, ...]()
        else:
            here, others = model.here, model.others
        here, known = known_options(here, others, self._memory.at(self.monotonic()))
        return here, [one for one in known if look.managers.issuperset(one.devices)]

    def _ends_try(self, look: JobLook, seen: WatchRound) -> bool:
        """Note the rate after the last move; return whether it was unknown before."""
        last = next((one for one in reversed(self.log.moves) if one.after == look.job), None)
        if self.mover is None or seen.falls_behind is None or last is None:
            return False
        if last.state != MOVED or last.measured is not None:
            return False
        rate = self._sustained(look) if seen.shows_capacity else look.rate
        self.mover.note_rate(last, rate, seen.shows_capacity)
        return last.kind == "move"

    def _do(self, seen: WatchRound, here: LayoutOption, choice: WatchChoice) -> str:
        """Log a decision, and carry it out if the guards allow it; return the job's id."""
        mover, words = self.mover, choice.words
        if choice.target is not None and mover is None:
            words = f"a move would pay: {words}"
        elif choice.target is not None and (held := self._held(here, choice)):
            mover, words = None, f"a move would pay: {words}; but {held}"
        elif choice.target is not None:
            words = f"{'the job returns' if choice.returns else 'the job is moved'}: {words}"
        seen = replace(seen, words=f"{state_words(seen)}; {words}")
        self._say(seen.words)
        self.log.add(seen)
        self.observe(seen)
        if choice.target is None or mover is None:
            return seen.job
        return self._carry_out(mover, seen.job, here, choice)

    def _held(self, here: LayoutOption, choice: WatchChoice) -> str:
        """Why nothing may be moved now; empty if something may."""
        return self.guards.hold(
            choice,
            here.machines,
            self.local().time(),
            since_move=self.monotonic() - self._moved,
            failures=wasted(self.log.moves),
            checkpoints_fail=self._fails,
            watched=self._passed,
        )

    def _carry_out(
        self, mover: WatchMover, before: str, here: LayoutOption, choice: WatchChoice
    ) -> str:
        job, known = before, len(self.log.moves)
        self._moved = self.monotonic()
        try:
            job = mover.carry_out(before, here, choice)
        except (NoAnswer, JobWatched):
            raise
        except StreamplaceError as error:
            self.log.tell(f"the job is not moved: {error}")
        new = self.log.moves[known:]
        self._remember(new)
        if new or job != before:
            self._measured = None
            self._due = self.monotonic()
        return job

    def _say(self, words: str) -> None:
        self.log.tell(f"{self.local():%H:%M:%S}  {words}")


def _modelled(
    seen: WatchRound, model: JobModel, here: LayoutOption, others: Sequence[LayoutOption]
) -> WatchRound:
    """Add the predictions for its layout and the others to a round."""
    low, value, high = here.carries
    all_of = (here, *others)
    return replace(
        seen,
        low=low,
        value=value,
        high=high,
        kept=here.kept,
        limit=model.limit,
        level=model.sizes.index(here.machines),
        capacity=tuple(
            max((one.sure for one in all_of if one.machines <= size), default=0.0)
            for size in model.sizes
        ),
        cost=tuple(float(size) for size in model.sizes),
    )
