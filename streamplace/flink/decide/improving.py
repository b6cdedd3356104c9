"""Improve a running job: try promising layouts, measure each, and end in the best measured one.

    measured = {present layout: present rate}
    while tries remain:
        target = the untried layout with the largest expected gain within an hour
        stop if the gain is less than the try costs
        move there, wait until the rate is steady, measure it, and fit the model to all windows
    end in the best measured layout

With the predicted rate as a multiple p of the best measured one, and σ, the standard deviation of
the logarithm of their ratio, a try gains

    HORIZON · E max(0, p exp(σ z) - (1 + NOISE)) - stop - P(it is worse) · stop of the way back

seconds of work, for z ~ N(0, 1). A layout that is predicted to carry less than the best one is
tried only if predictions of the job were far off. If the best measured layout needs no pins, a
layout with pins counts with p / (1 + CLEAR_GAIN). Every move is a transaction: if the job does not
run in a layout, it returns, and the layout counts as tried. If the trials are interrupted, the job
returns to the best measured layout.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from math import exp, hypot, inf, isfinite, log
from statistics import NormalDist
from types import MappingProxyType
from typing import Any

from streamplace.display.report import Report, Sheet, duration
from streamplace.errors import StreamplaceError
from streamplace.flink.constants import CLEAR_GAIN, HORIZON_SECONDS, RATIO_ERROR
from streamplace.flink.decide.candidates import Candidate, Question, candidate, candidates
from streamplace.flink.engine import FlinkEngine
from streamplace.flink.layout import Layout
from streamplace.flink.ledger import note_in_ledger
from streamplace.flink.measure.cluster import Measurement, cores_of, finite_ends
from streamplace.flink.measure.cost_fit import Observed
from streamplace.flink.move.interruption import (
    Interruption,
    Interruptions,
    SentReadings,
    expected_interruptions,
    warm_up_seconds,
)
from streamplace.flink.move.journal import MovePlan, MoveUnderWay
from streamplace.flink.move.move import FlinkMove
from streamplace.flink.move.savepoints import refuse_ended, stopped_with
from streamplace.flink.move.transaction import FlinkMoved, Undecided
from streamplace.flink.program.submission import live_states
from streamplace.flink.rest.client import FINISHED, RUNNING, FlinkError, NoAnswer
from streamplace.flink.rest.plan import layout_of
from streamplace.io.ledger import MOVE, NOISE, errors_for
from streamplace.io.placements import Prediction
from streamplace.model import Cluster
from streamplace.model.defaults import TRIES
from streamplace.model.graph import CPU_ORIGIN
from streamplace.model.message_text import listed, quoted
from streamplace.model.prediction_intervals import RateInterval
from streamplace.model.profile_trust import profile_drift, profile_spread
from streamplace.model.units import digits

PRESENT, BEFORE = "present layout", "layout before"
Z_90 = NormalDist().inv_cdf(0.95)
"""Number of standard deviations within which nine of ten errors lie."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A layout in which a job has run, and the sustained rate of its sources there."""

    name: str
    layout: Layout  # by operators, with fused operators one by one
    rate: float = 0.0  # tuples/s; 0 if it was not measured
    is_limited: bool = False  # whether a source was held back, so that the rate is the capacity
    interruption: float | None = None  # interruption by the move to it, in seconds
    back: float = 0.0  # interruption by the return to it after further trials, in seconds
    line: str = ""  # line of configuration with which Flink reaches about this rate without pins
    failure: str = ""  # why the job did not run in it
    # Prediction before the trial; for the first layout, only if the job keeps up.
    predicted: RateInterval | None = None
    is_pinned: bool = True  # whether Flink needs pins to place the job so
    repeats: tuple[float, ...] = ()  # tuples/s that were measured in it earlier, in order
    # Expected interruption by the move to it, in seconds.
    expected_interruption: float | None = None

    @classmethod
    def present(cls, question: Question) -> "Trial":
        """The measured layout of a job, and its sustained rate there."""
        measured, rates = question.measured, question.rates
        predicted = None  # of a job that is held back, the measured rate is the capacity
        if not measured.flow.is_limited:
            predicted = candidate(question, PRESENT, question.present).predicted
        return cls(
            PRESENT,
            question.present,
            float(rates.sustained.sum()),
            measured.flow.is_limited,
            predicted=predicted,
            is_pinned=question.is_placed,
        )

    @property
    def stopped(self) -> float:
        """Interruption by the moves to it, in seconds; 0 if unknown."""
        return (self.interruption or 0.0) + self.back

    @property
    def runs(self) -> bool:
        """Whether the job ran and its rate was measured."""
        return not self.failure and self.rate > 0

    def is_at(self, layout: Layout) -> bool:
        """Whether a layout is the same, except for an exchange of subtasks of one operator."""
        return self.layout.keys() == layout.keys() and not layout.moved_from(self.layout)

    def row(self, *, is_where: bool) -> tuple[str, ...]:
        """Row of the table of layouts."""
        rate, stopped = "", duration(self.stopped) if self.stopped else ""
        ends = "" if self.predicted is None else self.predicted.ends
        how = "did not run" if self.failure else "not measured"
        if self.runs:
            how = "measured" if self.is_limited else "keeps up"
            if is_where:
                how = "runs now" if self.is_limited else "runs now, keeps up"
            rate = digits(self.rate)
        return self.name, rate, ends, how, stopped

    def to_json(self) -> dict[str, Any]:
        """Return the trial as a JSON document."""
        return {
            "name": self.name,
            "measured": self.rate or None,
            "keeps_up": self.runs and not self.is_limited,
            "predicted": None if self.predicted is None else finite_ends(self.predicted),
            "interruption": self.interruption,
            "expected_interruption": self.expected_interruption,
            "back": self.back or None,
            "failure": self.failure or None,
        }


@dataclass(frozen=True)
class Proposal:
    """A measured job: predictions of its layouts, and its trials so far."""

    job: str  # id of the job
    question: Question  # its last measurement
    candidates: tuple[Candidate, ...]  # by the model that was fitted to all measurements
    interruptions: Interruptions  # model of the interruptions by moves
    trials: tuple[Trial, ...]  # layouts that it has run in, in order
    where: Trial  # its present layout
    plan: MovePlan | None = None  # plan of the next move; None if its program was not checked
    savepoint: str | None = None  # state that the job was started from; None if it was not moved

    @property
    def measured(self) -> Measurement:
        """Its last measurement."""
        return self.question.measured

    def after(self, job: str, trial: Trial, savepoint: str | None = None) -> "Proposal":
        """Return the same predictions after another trial, with the job that runs now."""
        trials = (*self.trials, trial)
        if trial.failure:
            return replace(self, job=job, trials=trials, plan=None)
        return replace(self, job=job, trials=trials, where=trial, plan=None, savepoint=savepoint)

    def with_where(self, old: Trial, new: Trial) -> "Proposal":
        """Return the proposal in the layout of one of its trials."""
        trials = tuple(new if trial is old else trial for trial in self.trials)
        return replace(self, trials=trials, where=new)

    @property
    def best(self) -> Trial:
        """The best measured layout; the present one if the job keeps up or is within the noise."""
        runs = [trial for trial in self.trials if trial.runs]
        best = max(runs, key=lambda trial: trial.rate)
        now = self.where if self.where.runs else runs[-1]
        is_enough = not now.is_limited or now.rate >= (1 - NOISE) * best.rate
        return now if is_enough else best

    @cached_property
    def target(self) -> Candidate | None:
        """The layout to try next, with the largest expected gain; None if none gains anything.

        A job that keeps up is moved only if the user requests a higher rate and another layout
        should carry more of it. No measurement can confirm that before this rate arrives.
        """
        others = [c for c in self.candidates if c.can_be_pinned and not self.is_tried(c)]
        if self.where.is_limited:
            value = {other.name: self.gain(other) for other in others}
            threshold = 0.0
        else:
            offered, rates = self.question.rate, self.question.rates
            if offered is None or self.where is not self.trials[0]:
                return None
            value = {other.name: min(offered, other.predicted.value) for other in others}
            threshold = (1 + CLEAR_GAIN) * min(offered, rates.of(rates.present))
        target = max(others, key=lambda other: (value[other.name], -other.order), default=None)
        return None if target is None or value[target.name] <= threshold else target

    def gain(self, other: Candidate) -> float:
        """Seconds of work that a try is expected to gain: see the top of this file."""
        best, predicted = self.best, other.predicted
        if predicted.value < (1 - NOISE) * best.rate and not self.worst_error:
            return -inf
        times = min(predicted.value, self.question.rate or inf) / best.rate
        if not (best.is_pinned or other.line):
            times /= 1 + CLEAR_GAIN
        if not (times > 0 and isfinite(times)):  # no CPU of the job is known
            return times or -inf
        spread = 0.0
        if predicted.low > 0 and isfinite(predicted.high):
            spread = log(predicted.high / predicted.low) / 2
        there, back = (self.interruption_to(at.layout).value for at in (other, best))
        return gained_seconds(times, spread, self.worst_error, there, back)

    @property
    def worst_error(self) -> float:
        """Largest error, by logarithms, of the predictions of the job that missed their interval.

        A contradiction between the model and the present rate counts as such an error.
        """
        errors = [
            abs(log(trial.rate / trial.predicted.value))
            for trial in self.trials
            if trial.predicted is not None and trial.runs and 0 < trial.predicted.value < inf
            if trial.predicted.holds(trial.rate, is_limited=trial.is_limited) is False
        ]
        if (trust := self.question.rates.contradiction) is not None:
            errors.append(abs(log(max(NOISE, 1 + trust.error))))
        return max(errors, default=0.0)

    def is_tried(self, other: Candidate) -> bool:
        """Whether the job was tried in a layout, or ran in the same one on equal TaskManagers.

        A layout in which it failed may still work on TaskManagers that are predicted to be equal.
        """
        return any(self._is_at(trial, other.layout) for trial in self.trials)

    def _is_at(self, trial: Trial, layout: Layout) -> bool:
        """Whether a trial was in a layout, except for an exchange of equal TaskManagers."""
        if trial.failure or trial.is_at(layout):
            return trial.is_at(layout)
        here, other = self.question.measured.cluster.devices.name, trial.layout
        if layout.groups != other.groups or not layout.devices | other.devices <= {*here}:
            return False
        rate = self.question.rates.of
        return abs(rate(layout) - rate(other)) <= NOISE * rate(other)

    @property
    def interruption(self) -> Interruption:
        """Expected interruption by the next trial."""
        target = self.target
        return self.interruption_to(self.where.layout if target is None else target.layout)

    def interruption_to(self, layout: Layout) -> Interruption:
        """Expected interruption by a move to a layout.

        It is longest on TaskManagers that have not run the job yet, and shorter after every move.
        """
        used = {device for trial in self.trials if trial.runs for device in trial.layout.devices}
        cores = cores_of(self.measured.cluster.devices, self.measured.graph)
        warm, cold = (
            [cores.get(device, 1.0) for device in devices]
            for devices in (layout.devices & used, layout.devices - used)
        )
        measured = [trial.interruption for trial in self.trials if trial.interruption]
        return self.interruptions.on(warm, cold, *measured[-1:])

    def sentences(self) -> Iterator[str]:
        """Sentences on the measured rate."""
        measured, rate = self.measured, self.where.rate
        yield f"now: {digits(rate)} tuples/s (measured)"
        if CPU_ORIGIN in measured.graph.attributes:
            yield f"{CPU_ORIGIN}: {measured.graph.attributes[CPU_ORIGIN]}"
        if measured.flow.pending:
            yield measured.flow.lag
        streams = measured.graph.streams
        keyed = {stream.target for stream in streams if stream.partitioning == "hash"}
        for name, shares in measured.shares.items():
            what = quoted(name)
            why = f"keys of {what} are skewed" if name in keyed else f"{what} is uneven"
            yield (
                f"{why}: its {len(shares)} subtasks read {min(shares):.0%} to {max(shares):.0%} of "
                "its tuples each"
            )
        if self.question.errors is not None:
            yield f"intervals: {self.question.errors.words}"
        if kept := self.question.rates.kept:
            yield (
                f"only {listed(sorted(measured.flow.held_back))} can send more in another layout; "
                f"the other sources keep up, and all rates include their {digits(kept)} tuples/s"
            )
        if not measured.flow.is_limited and (carried := self.where.predicted) is not None:
            yield f"the job keeps up with its sources; its present layout should carry {carried}"

    @property
    def next_step(self) -> str:
        """Sentence on the next trial, or why there is none."""
        if self.question.rate is None and not self.measured.flow.is_limited:
            return "so moving it gains nothing; to place it for a higher rate, give --rate"
        if self.target is None:
            return self.why_none
        return f"first to be tried: {self.try_in_words(self.target)}"

    @property
    def why_none(self) -> str:
        """Why no layout is tried."""
        if line := self.line:
            return (
                "no placement is expected to beat one line of Flink's configuration, with which "
                f"the job would run as it does: {line}"
            )
        return "no other layout is expected to gain more than a try costs, so none is tried"

    @property
    def line(self) -> str:
        """Line of configuration with which Flink would reach about the present rate; or empty."""
        same = (c for c in self.candidates if c.line and self._is_at(self.where, c.layout))
        return self.where.line or next((c.line for c in same), "")

    def try_in_words(self, target: Candidate) -> str:
        """A try in words: its expected gain, and why it is tried despite a small gain."""
        words = f"{self.name_of(target)}: {target.predicted}"
        if target.predicted.high <= self.best.rate:
            factor = exp(self.worst_error)
            words += f", tried because predictions of this job were off by {factor:.1f} times"
        return f"{words}; moving there stops the job for about {self.interruption}"

    def name_of(self, other: Candidate) -> str:
        """Name of a candidate, numbered if layouts of this name were tried."""
        same = [trial for trial in self.trials if trial.name.split(" #")[0] == other.name]
        return f"{other.name} #{len(same) + 1}" if same else other.name

    def report(self) -> Report:
        """The table of layouts, with their measured or predicted rates."""
        first, *others = self.trials
        named = replace(first, name=BEFORE) if others else first
        rows = [named.row(is_where=first is self.where)]
        rows += [trial.row(is_where=trial is self.where) for trial in others]
        rows += [
            (self.name_of(other), digits(other.shown.value), other.shown.ends, "predicted", "")
            for other in self.candidates
            if not self.is_tried(other)
        ]
        shows_why = others and self.where.is_limited and self.target is None
        words = [self.why_none] if shows_why else []  # without tries, printed before the table
        if self.line and others and not words:
            words = [f"Flink's own setting gives about this rate without pins: {self.line}"]
        earlier = accumulate((trial.rate for trial in self.trials), max)
        lost = self.where.back + sum(
            trial.stopped - trial.back
            for trial, best in zip(others, earlier, strict=False)
            if trial.rate <= best
        )
        if lost:
            words.append(f"tries that gained nothing stopped the job for {duration(lost)}")
        return Report(
            (Sheet(("layout", "tuples/s", "interval", "", "stopped"), tuple(rows)), *words)
        )

    @property
    def stopped(self) -> float | None:
        """Seconds of all interruptions; None if it was not moved, or if they are unknown."""
        times = [trial.stopped for trial in self.trials if trial.stopped]
        return sum(times) if times else None

    @property
    def moved(self) -> dict[str, tuple[dict[str, int], dict[str, int]]]:
        """Moved operators, with the numbers of their subtasks by device before and now."""
        return self.where.layout.moved_from(self.trials[0].layout)

    def to_json(self) -> dict[str, Any]:
        """Return the predictions and the trials as a JSON document."""
        errors, target = self.question.errors, self.target
        document: dict[str, Any] = {
            "measured": self.where.rate,
            "cpu": self.measured.graph.attributes.get(CPU_ORIGIN),
            "errors": None if errors is None else errors.to_json(),
            "layouts": [self._row(candidate) for candidate in self.candidates],
            "next": None if target is None else target.name,
            "interruption": self.interruption.value,
        }
        if len(self.trials) > 1:
            document |= {
                "trials": [trial.to_json() for trial in self.trials],
                "runs": self.where.name,
                "configuration": self.line or None,
            }
        return document

    def _row(self, other: Candidate) -> dict[str, Any]:
        return {
            "name": other.name if self.is_tried(other) else self.name_of(other),
            **finite_ends(other.shown),
            "moves": other.layout.number_moved_from(self.where.layout),
            "configuration": other.line or None,
        }


def gained_seconds(times: float, spread: float, worst: float, there: float, back: float) -> float:
    """Seconds of work that a try is expected to gain: see the top of this file.

    ``times``: predicted rate as a multiple of the best measured one.
    ``spread``: half the width of its interval, by logarithms.
    ``worst``: largest error of a prediction of the job beyond its interval, by logarithms.
    ``there``, ``back``: seconds of interruption by the move there and by the return.
    """
    sigma = max(NOISE, hypot(RATIO_ERROR * spread, worst) / Z_90)
    off, normal = log(times / (1 + NOISE)) / sigma, NormalDist()
    gained = times * exp(sigma**2 / 2) * normal.cdf(off + sigma) - (1 + NOISE) * normal.cdf(off)
    return HORIZON_SECONDS * gained - there - normal.cdf(-off) * back


@dataclass(frozen=True, slots=True)
class JobImprover:
    """Measures a job, tries layouts, and ends in the best one."""

    engine: FlinkEngine
    move: FlinkMove | None  # carries out moves; None if the program is unknown, for a proposal
    seconds: float = 5.0  # length of each window of measurement
    rate: float | None = None  # tuples/s that arrive for all sources together, as in `Question`
    cluster: Cluster | None = None  # the devices, if known; otherwise they are measured
    tell: Callable[[str], None] = field(default=lambda _: None)
    tries: int = TRIES  # maximum number of layouts that are tried
    max_interruption: float = inf  # maximum sum of all interruptions, in seconds
    # Whether the user agrees to the next trial.
    agrees: Callable[[str], bool] = field(default=lambda _: True)
    # Finds layouts, and predicts them.
    decides: Callable[[Question], Sequence[Candidate]] = candidates

    def propose(
        self, job: str, observed: Observed = MappingProxyType({}), trials: Sequence[Trial] = ()
    ) -> Proposal:
        """Measure a running job, and predict its layouts; nothing is stopped.

        ``observed``: rates and CPU of the subtasks of its operators in earlier layouts.
        ``trials``: layouts that were measured before.
        """
        rest = self.engine.rest
        measured = self.engine.measure(job, self.seconds, cluster=self.cluster, observed=observed)
        errors = errors_for(measured.graph, by=MOVE)
        question = Question.of(rest, job, measured, self._present_layout(job), self.rate, errors)
        if (against := question.rates.contradiction) is not None and not trials:
            self.tell(f"note: {against}, and predictions may be as far off")
        predicted, present = tuple(self.decides(question)), Trial.present(question)
        expected = expected_interruptions(rest, job, is_redeployed=bool(rest.resource))
        return Proposal(job, question, predicted, expected, (*trials, present), present)

    def planned(self, proposal: Proposal) -> Proposal:
        """Check the program with the next layout, so that errors are found while the job runs."""
        if self.move is None or (target := proposal.target) is None:
            return proposal
        return replace(proposal, plan=self.move.plan(proposal.job, target.layout))

    def run(self, proposal: Proposal) -> Proposal:
        """Try layouts, measure them, and end in the best measured one."""
        try:
            for _ in range(self.tries):
                target = proposal.target
                if target is None or not self._may_try(target, proposal):
                    break
                proposal = self._try(proposal, target)
                if not proposal.where.runs:  # it could not be measured, or the job has finished
                    break
            if proposal.best is not proposal.where:
                proposal = self._measure_again(self._return(proposal))
            return proposal
        except KeyboardInterrupt:
            self.tell(
                f"interrupted; the job returns to its best measured layout: {proposal.best.name}"
            )
            try:
                ended = self._return(proposal)
                self.tell(f"job {ended.job} runs in {ended.where.name}")
            except StreamplaceError as error:
                self.tell(str(error))
            raise

    def _may_try(self, target: Candidate, proposal: Proposal) -> bool:
        """Whether another trial and the move back are within the limit, and the user agrees."""
        failed = sum(bool(trial.failure) for trial in proposal.trials)  # there and back, untimed
        there, back = proposal.interruption, proposal.interruption_to(proposal.best.layout)
        spent = (proposal.stopped or 0.0) + (there.value + back.value) * failed
        if spent + there.value + back.value > self.max_interruption:
            self.tell(
                f"no further layout is tried: moving there stops the job for about {there}, and "
                f"going back for {back}; --max-interruption allows "
                f"{duration(self.max_interruption)} in all, and {duration(spent)} are used"
            )
            return False
        return self.agrees(f"try {proposal.try_in_words(target)}")

    def _try(self, proposal: Proposal, target: Candidate) -> Proposal:
        """Move a job to a layout, and measure it there."""
        trial = Trial(
            proposal.name_of(target),
            target.layout,
            line=target.line,
            predicted=target.predicted,
            expected_interruption=proposal.interruption.value,
            is_pinned=not target.line,
        )
        try:
            moved = self._move(proposal, target.layout)
        except (Undecided, MoveUnderWay):
            raise
        except StreamplaceError as error:
            self.tell(f"{trial.name} does not run: {error}")
            if self._has_finished(proposal.job):
                return proposal.after(proposal.job, trial)
            if (job := self._running_job(proposal.job)) is None:
                raise
            return proposal.after(job, replace(trial, failure=str(error)))
        trial = replace(trial, interruption=moved.interruption)
        return self._measure_trial(proposal, target, trial, moved)

    def _move(self, proposal: Proposal, layout: Layout) -> FlinkMoved:
        """Move a job to a layout without a check of its rate, which is measured afterwards."""
        assert self.move is not None
        move, job, plan = self.move.for_trials(), proposal.job, proposal.plan
        if plan is None or plan.job != job or layout.moved_from(plan.after):
            plan = move.plan(job, layout)
        return move.run(plan)

    def _measure_trial(
        self, proposal: Proposal, target: Candidate, trial: Trial, moved: FlinkMoved
    ) -> Proposal:
        """Measure a job in a new layout, and fit the model again if possible."""
        try:
            now, warm_up = self._measure_there(proposal, moved.job)
        except StreamplaceError as error:
            if not self._has_finished(moved.job):
                self.tell(f"{trial.name} is not measured: {error}")
            return proposal.after(moved.job, trial, moved.savepoint)
        there, stopped = now.where, ""
        if moved.interruption is not None:
            trial = replace(trial, interruption=moved.interruption + warm_up)
            stopped = f", interrupted for {duration(moved.interruption + warm_up)}"
        self.tell(f"  {digits(there.rate)} tuples/s were measured there{stopped}")
        self._record(proposal, target, there)
        trial = replace(trial, rate=there.rate, is_limited=there.is_limited, layout=there.layout)
        return replace(now.with_where(there, trial), savepoint=moved.savepoint)

    def _measure_there(self, proposal: Proposal, job: str) -> tuple[Proposal, float]:
        """Measure a moved job, and the seconds of its warm-up."""
        with SentReadings(self.engine.rest, job) as sent:
            self._await_running(job)
            now = self.propose(job, proposal.measured.observed, proposal.trials)
        return now, warm_up_seconds(sent.readings, now.where.rate)

    def _record(self, proposal: Proposal, target: Candidate, there: Trial) -> None:
        """Record the predicted and the measured rate of a layout."""
        graph, errors = proposal.measured.graph, proposal.question.errors
        predicted = Prediction(
            graph.name,
            target.predicted,
            None if errors is None else errors.supported,
            profile_drift(graph),
            target.kept,
            profile_spread(graph),
        )
        note_in_ledger(MOVE, predicted, there.rate, there.is_limited, self.tell)

    def _return(self, proposal: Proposal) -> Proposal:
        """Move a job back to the best measured layout, unless it is there.

        A job that does not run any more starts there from its last checkpoint.
        """
        best, job = proposal.best, self._running_job(proposal.job) or proposal.job
        if self._has_finished(job):
            self.tell("the job has finished")
            return proposal
        try:
            self._await_running(job)
        except NoAnswer:
            raise
        except FlinkError as error:
            assert self.move is not None
            refuse_ended(self.engine.rest, job)
            self.tell(str(error))
            moved = self.move.for_trials().restart(job, best.layout)
        else:
            if best.is_at(self._present_layout(job)):
                return replace(proposal, job=job, where=best)
            moved = self._move(replace(proposal, job=job), best.layout)
        self.tell(f"back in {best.name}, the best measured layout")
        back = replace(best, back=moved.interruption or 0.0)
        now = replace(proposal, job=moved.job, savepoint=moved.savepoint)
        return now.with_where(best, back)

    def _measure_again(self, proposal: Proposal) -> Proposal:
        """Measure a job that was moved back, as its earlier rate may be stale."""
        back = proposal.where
        if not back.back:
            return proposal
        try:
            now, warm_up = self._measure_there(proposal, proposal.job)
        except StreamplaceError as error:
            self.tell(f"it is not measured there again: {error}")
            return proposal
        there = now.where
        self.tell(f"  {digits(there.rate)} tuples/s are measured there now")
        rate = replace(back, rate=there.rate, is_limited=there.is_limited, back=back.back + warm_up)
        return proposal.with_where(back, rate)

    def _running_job(self, job: str) -> str | None:
        """Id of a job or its successor that runs; None unless there is exactly one."""
        states = live_states(self.engine.rest, job)
        running = [name for name, state in states.items() if state == RUNNING]
        return running[0] if len(running) == 1 else None

    def _await_running(self, job: str) -> None:
        """Wait until all tasks of a job run: Flink may have restarted it since it was moved."""
        assert self.move is not None
        self.engine.rest.wait_running(job, self.move.settings.seconds)

    def _has_finished(self, job: str) -> bool:
        """Whether a job has ended, and was not stopped with a savepoint."""
        rest = self.engine.rest
        return rest.state(job) == FINISHED and stopped_with(rest, job) is None

    def _present_layout(self, job: str) -> Layout:
        """Operator → device of each of its subtasks, in order."""
        rest = self.engine.rest
        return layout_of(rest, job, rest.running_job(job))
