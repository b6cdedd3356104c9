"""Proposals: layouts of a measured job, what they should carry, and which one is tried next."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import exp, inf, log
from typing import Any

from streamplace.engines.flink.decide.decision import (
    MEASURED,
    PRESENT,
    Candidate,
    Decision,
    moved_subtasks,
)
from streamplace.engines.flink.decide.layouts import Layout
from streamplace.engines.flink.measure.measurement import Measurement
from streamplace.engines.flink.measure.placed_subtasks import finite
from streamplace.engines.flink.measure.sources import SourceFlow
from streamplace.engines.flink.move.move import MovePlan
from streamplace.model.intervals import PredictionErrors, RateInterval
from streamplace.model.messages import listed, quoted
from streamplace.model.report import Report, Sheet, duration
from streamplace.model.units import digits

WORTHWHILE = 0.05
"""Least gain, relative to the best measured rate, that a layout must be able to have to be tried.

Runs of one layout differ by 3 %, and a trial stops the job.
"""
UNLIKE = log(2.0)
"""How far above its interval a layout may be of which every subtask is elsewhere, as a logarithm.

Layouts that share little with the only one that was measured carried up to 3.5 times their
prediction, in the middle twice of it. Each further layout that was measured divides this.
"""

HEAD = ("layout", "tuples/s", "interval", "", "interrupted")
"""Columns of the table of layouts."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A layout that was tried, and what the sources emitted there."""

    name: str
    layout: Layout
    rate: float  # tuples/s; 0 if it was not measured
    is_limited: bool = False  # whether a source was held back, so that this is what it carries
    outage: float | None = None  # seconds for which the moves to it stopped the job
    line: str = ""  # line of configuration by which Flink produces it without pins
    failure: str = ""  # why the job did not run there

    @classmethod
    def present(cls, layout: Mapping[str, list[str]], measured: Measurement) -> "Trial":
        """The layout in which a job was measured."""
        rate = measured.graph.source_rate
        return cls(PRESENT, dict(layout), rate, is_limited=measured.is_limited)

    @classmethod
    def failed(cls, target: Candidate, reason: str) -> "Trial":
        """A layout in which the job did not run."""
        return cls(target.name, target.layout, 0.0, failure=reason)

    def measured(self, flow: SourceFlow) -> "Trial":
        """Return the trial with the rate that the sources had."""
        return replace(self, rate=flow.rate, is_limited=flow.is_limited)

    @property
    def runs(self) -> bool:
        """Whether the job ran and its rate was measured."""
        return not self.failure and self.rate > 0

    def is_at(self, layout: Layout) -> bool:
        """Whether a layout is the same, up to an exchange of subtasks of one operator."""
        return self.layout.keys() == layout.keys() and not moved_subtasks(self.layout, layout)

    def row(self, *, is_best: bool) -> tuple[str, ...]:
        """Row of the table of layouts."""
        outage = "" if self.outage is None else duration(self.outage)
        if not self.runs:
            return self.name, "", "", "did not run" if self.failure else "not measured", outage
        how = "measured" if self.is_limited else "measured, keeps up"
        return self.name, digits(self.rate), "", f"{how}; runs now" if is_best else how, outage

    def to_json(self) -> dict[str, Any]:
        """Return the trial as a JSON document."""
        return {
            "name": self.name,
            "measured": self.rate or None,
            "keeps_up": self.runs and not self.is_limited,
            "outage": self.outage,
            "failure": self.failure or None,
        }


@dataclass(frozen=True, slots=True)
class Proposal:
    """Predictions for a measured job, and its trials so far."""

    job: str  # id of the job
    measured: Measurement  # its last measurement
    decision: Decision  # its layouts, by the model that was fitted to all measurements
    outage: float  # seconds for which a move is expected to stop it
    plan: MovePlan | None = None  # plan of the next move; None if its program was not checked
    errors: PredictionErrors | None = None  # errors of predictions for the job; None if unknown
    asked: float | None = None  # tuples/s for which the user asks; None for what the sources offer
    is_contradicted: bool = False  # whether the model is wrong for the layout that was measured
    trials: tuple[Trial, ...] = ()  # layouts that were tried, the last one last

    @property
    def rate(self) -> float:
        """Tuples/s that its sources emit now."""
        return self.measured.graph.source_rate

    @property
    def where(self) -> Trial:
        """The layout in which the job is: after a trial that failed, that before it."""
        return next(trial for trial in reversed(self.trials) if not trial.failure)

    def after(self, job: str, trial: Trial) -> "Proposal":
        """Return the same predictions after one more trial, with the job that runs now."""
        return replace(self, job=job, trials=(*self.trials, trial), plan=None)

    @property
    def best(self) -> Trial:
        """The best layout that was measured: the present one if the difference may be noise."""
        runs = [trial for trial in self.trials if trial.runs]
        best, now = max(runs, key=lambda trial: trial.rate), runs[-1]
        return now if now.rate >= (1 - MEASURED) * best.rate else best

    @property
    def target(self) -> Candidate | None:
        """The layout to try next: that of the highest optimistic rate; None if none is worth it.

        A job that keeps up is moved only if the user asks for a higher rate and the model says that
        another layout carries more of it. No measurement can confirm that before the rate comes.
        """
        tried = [one for one in self.decision.candidates if one.can_be_pinned]
        others = [one for one in tried if not any(t.is_at(one.layout) for t in self.trials)]
        if not self.measured.is_limited:
            chosen = self.decision.chosen
            is_asked = self.asked is not None and len(self.trials) == 1
            return chosen if is_asked and chosen in others else None
        target = max(others, key=lambda one: (self.optimistic(one), -one.order), default=None)
        least = (1 + WORTHWHILE) * self.best.rate
        return target if target is not None and self.optimistic(target) > least else None

    def optimistic(self, candidate: Candidate) -> float:
        """Rate that a layout may carry, if all that is uncertain is in its favour."""
        if self.is_contradicted:
            return inf
        subtasks = sum(map(len, candidate.layout.values()))
        known = sum(trial.runs for trial in self.trials)
        unlike = UNLIKE / known * candidate.moves / subtasks
        high = self.capacity_of(candidate).high - candidate.kept
        high = candidate.kept + high * exp(unlike)
        return high if self.asked is None else min(high, self.asked)

    def capacity_of(self, candidate: Candidate) -> RateInterval:
        """Interval of the rate that a layout carries, however few tuples are offered.

        It is wider than the intervals for comparing layouts, because an error in the model of a job
        affects the predictions of all its layouts. Rates of sources that do not depend on the
        layout are known.
        """
        if self.errors is None or candidate is self.decision.present:
            return candidate.carries
        value = candidate.carries.value if candidate.capacity is None else candidate.capacity
        low, _, high = self.errors.interval(value - candidate.kept)
        return RateInterval(candidate.kept + low, value, candidate.kept + high)

    def sentences(self) -> Iterator[str]:
        """Sentences on the measured rate, and on what is done next."""
        yield f"now: {digits(self.rate)} tuples/s (measured)"
        streams = self.measured.graph.streams
        keyed = {stream.target for stream in streams if stream.partitioning == "hash"}
        for name, shares in self.measured.shares.items():
            why = (
                f"keys of {quoted(name)} are skewed"
                if name in keyed
                else f"{quoted(name)} is uneven"
            )
            yield (
                f"{why}: its {len(shares)} subtasks read {min(shares):.0%} to {max(shares):.0%} of "
                "its tuples each"
            )
        if kept := self.decision.present.kept:
            yield (
                f"only {listed(sorted(self.measured.held_back))} can send more in another layout; "
                f"the other sources keep up, and all rates contain their {digits(kept)} tuples/s"
            )
        if self.asked is None and not self.measured.is_limited:
            yield (
                f"the job keeps up with its sources where it runs ({digits(self.rate)} tuples/s), "
                "so moving it gains nothing; to place it for more, give --rate"
            )
        elif (target := self.target) is None:
            yield "no other layout is expected to carry more, so none is tried"
        else:
            yield (
                f"to be tried first: {target.name}; each trial stops the job for about "
                f"{duration(self.outage)}"
            )

    def report(self) -> Report:
        """The table of predicted layouts."""
        rows = [self.row(one) for one in self.decision.candidates]
        return Report((Sheet(HEAD, tuple(rows)),))

    def row(self, candidate: Candidate) -> tuple[str, ...]:
        """Row of a layout that was not tried."""
        if candidate is self.decision.present:
            return candidate.name, digits(self.rate), "", "measured", ""
        low, value, high = map(digits, self.capacity_of(candidate))
        return candidate.name, value, f"{low} to {high}", "predicted", ""

    def to_json(self) -> dict[str, Any]:
        """Return the predictions as a JSON document."""
        target = self.target
        return {
            "measured": self.rate,
            "errors": None if self.errors is None else self.errors.to_json(),
            "layouts": [self._row(candidate) for candidate in self.decision.candidates],
            "next": None if target is None else target.name,
            "outage": self.outage,
        }

    def _row(self, candidate: Candidate) -> dict[str, Any]:
        ends = self.capacity_of(candidate)._asdict().items()
        return {
            "name": candidate.name,
            **{end: finite(rate) for end, rate in ends},
            "moves": candidate.moves,
            "configuration": candidate.line or None,
        }
