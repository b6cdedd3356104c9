"""Rounds of a watch: observe a job, decide on a move, and carry it out if it is allowed.

A round reads metrics for some seconds, and prints the state of the job and its decision in one
line. If the job has to be measured, which takes a minute or two, it is observed again afterwards.
"""

import time
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol

from streamplace.errors import StreamplaceError
from streamplace.flink.decide.improving import Trial
from streamplace.flink.measure.source_lag import source_flow
from streamplace.flink.move.journal import MoveUnderWay
from streamplace.flink.move.savepoints import checkpoint_totals
from streamplace.flink.rest.client import RUNNING, FlinkError, NoAnswer, Rest
from streamplace.flink.rest.plan import layout_of
from streamplace.flink.store import seconds_since, utc_now
from streamplace.flink.watch.deciding import (
    Conclude,
    FinishMove,
    Guards,
    JobModel,
    JobSample,
    LayoutOption,
    Measure,
    PastMove,
    RateJudge,
    RoundObservation,
    WatchChoice,
    WatchRules,
    WatchState,
    decide,
)
from streamplace.flink.watch.log import JobWatched, WatchLog
from streamplace.flink.watches import BEGUN, WatchDecision, WatchRound

MeasureJob = Callable[[str, Set[str], Sequence[Trial]], JobModel]
"""Measures a job, given its id, the present TaskManagers and the layouts tried before."""


class RoundMover(Protocol):
    """Carries out decisions, each at most once."""

    def carry_out(self, job: str, here: LayoutOption, choice: WatchChoice) -> str:
        """Move a job to the chosen layout; return the id of the job that runs afterwards."""

    def finish(self, number: int) -> str | None:
        """Find the outcome of a decision, and finish it; return the job that runs."""

    def note_rate(self, decision: WatchDecision, rate: float, is_limited: bool) -> None:
        """Write the measured rate after a move."""


def sample_of(rest: Rest, job: str, at: float) -> JobSample:
    """Read the metrics of a running job for some seconds.

    Raises FlinkError when it does not run, or its sources report no rate.
    """
    document = rest.running_job(job)
    flow = source_flow(rest, job)
    if flow is None:
        raise FlinkError(f"Flink reports no rate of the sources of job {job}")
    return JobSample(
        at=at,
        job=job,
        rate=flow.rate,
        is_limited=flow.is_limited,
        backlog=flow.pending,
        layout=layout_of(rest, job, document),
        checkpoints=checkpoint_totals(rest, job),
        managers=frozenset(rest.offered()),
        started=float(document.get("timestamps", {}).get(RUNNING, 0.0)),
    )


@dataclass(slots=True)
class JobRounds:
    """Rounds of one watched job."""

    rest: Rest
    log: WatchLog
    policy: RateJudge  # its `seconds` pass between the beginnings of two rounds
    guards: Guards
    model_of: MeasureJob
    mover: RoundMover | None  # moves the job; None moves nothing
    monotonic: Callable[[], float] = time.monotonic  # clock for waiting; nothing sets it back
    local: Callable[[], datetime] = datetime.now  # clock for hours of the day
    on_round: Callable[[WatchRound], None] = lambda facts: None  # receives every round
    due: float = field(default=-1.0, init=False)  # when the next round should begin
    state: WatchState | None = field(default=None, init=False)  # None before the first round

    @property
    def is_due(self) -> bool:
        """Whether the next round should begin."""
        return self.monotonic() >= self.due

    def pass_round(self, job: str) -> str:
        """Pass one round; return the id of the job, which may have been moved.

        Raises NoAnswer when Flink does not answer. Raises FlinkError when the job does not run.
        Raises JobWatched when another process has taken over the watch.
        """
        step = self._decide(self._observe(job))
        if isinstance(step, Measure):
            self._say(step.words)
            result = self._measured(job, step.trials)
            step = self._decide(replace(self._observe(job), measurement=result))
        if isinstance(step, Conclude):
            return self._conclude(job, step)
        return self._finish(job)

    def _observe(self, job: str) -> RoundObservation:
        """Read the input of a decision; without an answer, the next round is due at once."""
        now, due = self.monotonic(), self.due
        self.due = now + self.policy.seconds
        try:
            sample = sample_of(self.rest, job, now)
        except NoAnswer:
            self.due = due
            raise
        moves = tuple(PastMove(now - seconds_since(move.at), move) for move in self.log.moves)
        return RoundObservation(sample, self.local().time(), moves)

    def _decide(self, observation: RoundObservation) -> Measure | FinishMove | Conclude:
        """Decide on the next step, and write the rate after the last move."""
        if self.state is None:  # continue after an earlier process, from its rows
            rounds = self.log.rounds(self.policy.remembered)
            for facts in rounds:
                self.policy.remember(facts)
            watched = rounds[-1].time + self.policy.seconds if rounds else 0.0
            self.state = WatchState.resumed(watched, observation.moves, observation.sample.at)
        rules = WatchRules(self.guards, self.policy, self.mover is not None)
        state, step = decide(self.state, observation, rules)
        if isinstance(step, Conclude) and step.measured_move and self.mover is not None:
            self.mover.note_rate(*step.measured_move, step.facts.shows_capacity)
        self.state = state
        return step

    def _measured(self, job: str, trials: Sequence[Trial]) -> JobModel | str:
        """Measure a job; return its model, or why it has none, which is logged once."""
        assert self.state is not None
        begun = self.state.last_measurement
        assert begun is not None
        try:
            return self.model_of(job, begun.sample.managers, trials)
        except NoAnswer:
            raise
        except StreamplaceError as error:
            if str(error) != begun.failure:
                self.log.tell(f"note: the job is not measured: {error}")
            return str(error)

    def _conclude(self, job: str, step: Conclude) -> str:
        """Log a round, and carry out its decision; return the id of the job."""
        self._say(step.facts.words)
        facts = replace(step.facts, at=utc_now())
        self.log.add(facts)
        self.on_round(facts)
        if not step.moves or self.mover is None:
            return job
        before, n_moves = job, len(self.log.moves)
        try:
            job = self.mover.carry_out(job, step.here, step.choice)
        except (NoAnswer, JobWatched):
            raise
        except StreamplaceError as error:
            self.log.tell(f"the job is not moved: {error}")
        if job != before or len(self.log.moves) > n_moves:
            self.due = self.monotonic()
        return job

    def _finish(self, job: str) -> str:
        """Finish the move that has no outcome yet; return the id of the job that runs."""
        assert self.mover is not None
        decisions = reversed(self.log.decisions.items())
        number = next(n for n, decision in decisions if decision.state == BEGUN)
        try:
            return self.mover.finish(number) or job
        except MoveUnderWay as error:
            self._say(f"the job stays; {error}")
            return job

    def _say(self, words: str) -> None:
        self.log.tell(f"{self.local():%H:%M:%S}  {words}")
